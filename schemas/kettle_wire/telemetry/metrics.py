"""
Every metric of every service. A service measures nothing that is not declared here.

Names of people and of jobs are in no attribute, except in `kettle.schedd.submitter.jobs`, which a site has to ask for.
"""

from typing import Final

from kettle_wire.telemetry import session_metrics, worker_pool_metrics
from kettle_wire.telemetry.declaration import LONG_DURATIONS, Attribute, Metric

ALL: Final = (
    "accounting", "ce", "collector", "dagman", "gateway", "iam", "master", "negotiator", "provisioner", "scaler", "schedd", "sessions", "shadow",
    "startd",
)  # fmt: skip
_ON_THE_BUS: Final = tuple(role for role in ALL if role != "master")
_OWNERS: Final = ("ce", "collector", "dagman", "iam", "negotiator", "scaler", "schedd", "sessions")
_READERS_OF_EXPRESSIONS: Final = ("accounting", "ce", "collector", "negotiator", "scaler", "schedd", "startd")

# -- of each process ---------------------------------------------------------------------------------------------------

CPU_TIME: Final = Metric(
    name="process.cpu.time",
    kind="counter",
    unit="s",
    meaning="Seconds of a core that the process has used, in user and in system mode.",
    services=ALL,
)
MEMORY: Final = Metric(
    name="process.memory.usage",
    kind="gauge",
    unit="By",
    meaning="Resident memory of the process.",
    services=ALL,
)
OPEN_FILES: Final = Metric(
    name="process.open_file_descriptor.count",
    kind="gauge",
    unit="{file_descriptor}",
    meaning="Open file descriptors of the process.",
    services=ALL,
)
UPTIME: Final = Metric(
    name="process.uptime", kind="gauge", unit="s", meaning="Seconds since the service began.", services=ALL
)
LOOP_LAG: Final = Metric(
    name="kettle.event_loop.lag",
    kind="histogram",
    unit="s",
    meaning="How much later than asked for the event loop woke up, measured once in a second.",
    services=ALL,
)
READY: Final = Metric(
    name="kettle.service.ready",
    kind="gauge",
    unit="{service}",
    meaning="1 while the service does its work; 0 while it starts, stops or waits as a standby.",
    services=ALL,
)

# -- of the bus and the log --------------------------------------------------------------------------------------------

_ENDPOINT: Final = Attribute(name="endpoint", meaning="The command's verb.")

BUS_CONNECTED: Final = Metric(
    name="kettle.bus.connected",
    kind="gauge",
    unit="{connection}",
    meaning="1 while there is a connection to NATS.",
    services=_ON_THE_BUS,
)
BUS_RECONNECTIONS: Final = Metric(
    name="kettle.bus.reconnections",
    kind="counter",
    unit="{connection}",
    meaning="How often a lost connection to NATS came back.",
    services=_ON_THE_BUS,
)
COMMAND_DURATION: Final = Metric(
    name="kettle.command.duration",
    kind="histogram",
    unit="s",
    meaning="From the arrival of a command to its answer, the commit of what it records included.",
    services=_ON_THE_BUS,
    attributes=(
        _ENDPOINT,
        Attribute(name="outcome", meaning="Whether it was carried out.", values=("done", "refused")),
    ),
    when="a command",
)
COMMAND_REFUSALS: Final = Metric(
    name="kettle.command.refusals",
    kind="counter",
    unit="{command}",
    meaning="Commands that were refused.",
    services=_ON_THE_BUS,
    attributes=(_ENDPOINT, Attribute(name="code", meaning="The refusal's code.")),
    when="a refusal",
)
APPEND_DURATION: Final = Metric(
    name="kettle.event_log.append.duration",
    kind="histogram",
    unit="s",
    meaning="One commit to the event log.",
    services=_OWNERS,
    when="a recorded event",
)
APPENDED_EVENTS: Final = Metric(
    name="kettle.event_log.events",
    kind="counter",
    unit="{event}",
    meaning="Events that were committed to the event log.",
    services=_OWNERS,
    when="a recorded event",
)
GIVEN_UP: Final = Metric(
    name="kettle.expression.given_up",
    kind="counter",
    unit="{evaluation}",
    meaning="Evaluations of expressions that would have taken too long.",
    services=_READERS_OF_EXPRESSIONS,
)

# -- master ------------------------------------------------------------------------------------------------------------

DAEMONS: Final = Metric(
    name="kettle.master.daemons",
    kind="gauge",
    unit="{daemon}",
    meaning="Services and servers under this master.",
    services=("master",),
    attributes=(
        Attribute(
            name="status", meaning="As `kettle status` shows it: running, standby, waiting, off, left."
        ),
    ),
)
DAEMON_STARTS: Final = Metric(
    name="kettle.master.daemon.starts",
    kind="counter",
    unit="{start}",
    meaning="How often each service or server was started.",
    services=("master",),
    attributes=(Attribute(name="daemon", meaning="Its name in the daemon list."),),
)
DAEMON_HANGS: Final = Metric(
    name="kettle.master.daemon.hangs",
    kind="counter",
    unit="{hang}",
    meaning="How often each service was ended because it gave no sign of life.",
    services=("master",),
    attributes=(Attribute(name="daemon", meaning="Its name in the daemon list."),),
)
DISK_FREE: Final = Metric(
    name="kettle.master.disk.free",
    kind="gauge",
    unit="By",
    meaning="Free space of the file system with the pool's directory.",
    services=("master",),
)

# -- schedd ------------------------------------------------------------------------------------------------------------

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

# -- shadow ------------------------------------------------------------------------------------------------------------

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
    meaning="Jobs that wait for their turn to move files.",
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

# -- startd ------------------------------------------------------------------------------------------------------------

STARTD_CLAIMS: Final = Metric(
    name="kettle.startd.claims",
    kind="gauge",
    unit="{claim}",
    meaning="Claims on this machine.",
    services=("startd",),
    attributes=(Attribute(name="activity", meaning="`busy`: a job runs on it.", values=("busy", "idle")),),
)
STARTD_CPUS: Final = Metric(
    name="kettle.startd.cpus",
    kind="gauge",
    unit="{cpu}",
    meaning="Cores that this machine offers.",
    services=("startd",),
    attributes=(Attribute(name="state", meaning="Whether a claim has them.", values=("claimed", "free")),),
)
STARTD_DRAINING: Final = Metric(
    name="kettle.startd.draining",
    kind="gauge",
    unit="{machine}",
    meaning="1 while the machine is being emptied or kept empty.",
    services=("startd",),
)

# -- negotiator --------------------------------------------------------------------------------------------------------

CYCLE_DURATION: Final = Metric(
    name="kettle.negotiator.cycle.duration",
    kind="histogram",
    unit="s",
    meaning="Matchmaking and record of one cycle.",
    services=("negotiator",),
)
MATCHES: Final = Metric(
    name="kettle.negotiator.matches",
    kind="counter",
    unit="{match}",
    meaning="Matches given.",
    services=("negotiator",),
)
REJECTIONS: Final = Metric(
    name="kettle.negotiator.rejections",
    kind="counter",
    unit="{rejection}",
    meaning="Kinds of jobs (autoclusters) that got no slot, or not enough, in a cycle.",
    services=("negotiator",),
)
SUBMITTERS: Final = Metric(
    name="kettle.negotiator.submitters",
    kind="gauge",
    unit="{submitter}",
    meaning="Submitters that are known to have jobs.",
    services=("negotiator",),
)
CANDIDATE_SLOTS: Final = Metric(
    name="kettle.negotiator.candidate_slots",
    kind="gauge",
    unit="{slot}",
    meaning="Slots that the last cycle could give.",
    services=("negotiator",),
)
IDLE_DEMAND: Final = Metric(
    name="kettle.negotiator.idle_jobs",
    kind="gauge",
    unit="{job}",
    meaning="Idle jobs that the last cycle saw.",
    services=("negotiator",),
)

# -- collector ---------------------------------------------------------------------------------------------------------

ADS: Final = Metric(
    name="kettle.collector.ads",
    kind="gauge",
    unit="{ad}",
    meaning="Ads of the pool.",
    services=("collector",),
    attributes=(Attribute(name="type", meaning="Their type, in lower case."),),
    when="an ad",
)
SLOTS: Final = Metric(
    name="kettle.collector.slots",
    kind="gauge",
    unit="{slot}",
    meaning="Slots of all machines.",
    services=("collector",),
    attributes=(
        Attribute(name="state", meaning="HTCondor's states: Unclaimed, Claimed, Owner, Drained, ..."),
    ),
    when="the ad of a slot",
)
MACHINES: Final = Metric(
    name="kettle.collector.machines",
    kind="gauge",
    unit="{machine}",
    meaning="Machines that are in the pool.",
    services=("collector",),
)

# -- dagman ------------------------------------------------------------------------------------------------------------

NODES: Final = Metric(
    name="kettle.dagman.nodes",
    kind="gauge",
    unit="{node}",
    meaning="Nodes of the workflows that are not over, and of those that ended last.",
    services=("dagman",),
    attributes=(Attribute(name="state", meaning="`NodeState`, in lower case."),),
)

# -- accounting --------------------------------------------------------------------------------------------------------

PROJECTION_LAG: Final = Metric(
    name="kettle.projection.lag",
    kind="gauge",
    unit="{frame}",
    meaning="Frames on the bus that the tables do not have yet.",
    services=("accounting",),
    attributes=(Attribute(name="shard", meaning="The shard of the log."),),
    when="a recorded event",
)
PROJECTIONS_STOPPED: Final = Metric(
    name="kettle.projection.stopped",
    kind="gauge",
    unit="{projection}",
    meaning="Projections that cannot go on in a shard until somebody repairs them.",
    services=("accounting",),
)

# -- gateway -----------------------------------------------------------------------------------------------------------

PUBLISHED: Final = Metric(
    name="kettle.gateway.events",
    kind="counter",
    unit="{event}",
    meaning="Events that were published for monitoring.",
    services=("gateway",),
    attributes=(Attribute(name="kind", meaning="`noun.verb`."),),
    when="a recorded event",
)
PUBLISHED_FRAME: Final = Metric(
    name="kettle.gateway.frame",
    kind="gauge",
    unit="{frame}",
    meaning="The last frame of a shard of which events were published.",
    services=("gateway",),
    attributes=(Attribute(name="shard", meaning="The shard of the log."),),
    most=1000,
    when="a recorded event",
)
PUBLISHED_DELAY: Final = Metric(
    name="kettle.gateway.delay",
    kind="histogram",
    unit="s",
    meaning="From the record of a frame to the publication of its events.",
    services=("gateway",),
)
SESSIONS: Final = Metric(
    name="kettle.gateway.sessions",
    kind="counter",
    unit="{session}",
    meaning="How many sessions of publishing the gateway has started.",
    services=("gateway",),
)
HTTP_DURATION: Final = Metric(
    name="http.server.request.duration",
    kind="histogram",
    unit="s",
    meaning="Requests over HTTP, streams of events to their end.",
    services=("gateway",),
    attributes=(
        Attribute(name="http.request.method", meaning="The method."),
        Attribute(name="http.route", meaning="The route, with names in braces for its variables."),
        Attribute(name="http.response.status_code", meaning="The status."),
    ),
    most=600,
    when="a request to `http_port`, or to the REST interface",
)

# -- iam ---------------------------------------------------------------------------------------------------------------

REFUSALS: Final = Metric(
    name="kettle.iam.refusals",
    kind="counter",
    unit="{request}",
    meaning="Wrong credentials and misused join tokens.",
    services=("iam",),
)

METRICS: Final = (
    *(value for value in list(globals().values()) if isinstance(value, Metric)),
    *worker_pool_metrics.METRICS,
    *session_metrics.METRICS,
)
"""All of them, in the order of this module; those of pools of workers and of sessions last."""


def of_service(role: str) -> tuple[Metric, ...]:
    """What a service measures."""
    return tuple(metric for metric in METRICS if role in metric.services)
