"""What queues measure: schedds with their shadows, and workflows."""

from typing import Final

from kettle_wire.telemetry.declaration import LONG_DURATIONS, Attribute, Metric

# -- schedd --------------------------------------------------------------------------------------------------------------

JOBS: Final = Metric(
    name="kettle.schedd.jobs",
    kind="gauge",
    unit="{job}",
    meaning="Jobs in the queue.",
    services=("schedd",),
    attributes=(Attribute(name="state", meaning="Their status.", values=("idle", "running", "held")),),
)
SUBMITTER_JOBS: Final = Metric(
    name="kettle.schedd.submitter.jobs",
    kind="gauge",
    unit="{job}",
    meaning="Jobs in the queue of each submitter.",
    services=("schedd",),
    attributes=(
        Attribute(name="submitter", meaning="Whose jobs they are."),
        Attribute(name="state", meaning="Their status.", values=("idle", "running", "held")),
    ),
    most=3000,
    when="`owners = true` in `[telemetry]`",
)
CLAIMS: Final = Metric(
    name="kettle.schedd.claims", kind="gauge", unit="{claim}", meaning="Claims held.", services=("schedd",)
)
BACKLOG: Final = Metric(
    name="kettle.schedd.backlog",
    kind="gauge",
    unit="{event}",
    meaning="Events that are decided and not yet committed.",
    services=("schedd",),
)
JOBS_SUBMITTED: Final = Metric(
    name="kettle.schedd.jobs.submitted",
    kind="counter",
    unit="{job}",
    meaning="Jobs that came into the queue.",
    services=("schedd",),
)
JOBS_ENDED: Final = Metric(
    name="kettle.schedd.jobs.ended",
    kind="counter",
    unit="{job}",
    meaning="Jobs that ended, and holds.",
    services=("schedd",),
    attributes=(
        Attribute(
            name="outcome",
            meaning="`completed`: exit code 0; `failed`: another code, or a signal.",
            values=("completed", "failed", "removed", "held"),
        ),
    ),
    when="a job that ended",
)
ATTEMPTS_ENDED: Final = Metric(
    name="kettle.schedd.attempts.ended",
    kind="counter",
    unit="{attempt}",
    meaning="Attempts to run jobs that ended.",
    services=("schedd",),
    attributes=(
        Attribute(
            name="outcome",
            meaning="`completed`: the job left with it; `vacated`: the job did not.",
            values=("completed", "vacated"),
        ),
    ),
    when="an attempt that ended",
)
JOB_CPU_TIME: Final = Metric(
    name="kettle.schedd.job.cpu.time",
    kind="counter",
    unit="s",
    meaning="Seconds of cores that programs of jobs have used, when their attempt ended.",
    services=("schedd",),
    attributes=(
        Attribute(
            name="use",
            meaning="`delivered`: the job completed with this attempt; `wasted`: it did not.",
            values=("delivered", "wasted"),
        ),
    ),
    when="an attempt that ended",
)
JOB_WALL_TIME: Final = Metric(
    name="kettle.schedd.job.wall.time",
    kind="counter",
    unit="s",
    meaning="Seconds that attempts took on their machines.",
    services=("schedd",),
    attributes=JOB_CPU_TIME.attributes,
    when="an attempt that ended",
)
JOB_WAIT: Final = Metric(
    name="kettle.schedd.job.wait",
    kind="histogram",
    unit="s",
    meaning="From submission to the first start of a job's program.",
    services=("schedd",),
    buckets=LONG_DURATIONS,
    when="a job that started",
)

# -- shadow --------------------------------------------------------------------------------------------------------------

SHADOW_ATTEMPTS: Final = Metric(
    name="kettle.shadow.attempts",
    kind="gauge",
    unit="{attempt}",
    meaning="Attempts that the shadow looks after.",
    services=("shadow",),
)
TRANSFERS_WAITING: Final = Metric(
    name="kettle.shadow.transfers.waiting",
    kind="gauge",
    unit="{job}",
    meaning="Jobs that wait for their turn to move files, and nodes of parallel ones.",
    services=("shadow",),
)
INPUT_SENT: Final = Metric(
    name="kettle.shadow.input.sent",
    kind="counter",
    unit="By",
    meaning="Bytes of input files that machines read from this shadow.",
    services=("shadow",),
)
OBJECTS_SENT: Final = Metric(
    name="kettle.shadow.objects.sent",
    kind="counter",
    unit="By",
    meaning="Bytes of input files that this shadow put into the object store.",
    services=("shadow",),
)

# -- dagman --------------------------------------------------------------------------------------------------------------

NODES: Final = Metric(
    name="kettle.dagman.nodes",
    kind="gauge",
    unit="{node}",
    meaning="Nodes of the workflows that are not over, and of those that ended last.",
    services=("dagman",),
    attributes=(Attribute(name="state", meaning="`NodeState`, in lower case."),),
)

METRICS: Final = tuple(value for value in list(globals().values()) if isinstance(value, Metric))
"""All of them, in the order of this module."""
