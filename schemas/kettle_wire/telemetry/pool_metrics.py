"""What masters, machines and the services of the whole pool measure."""

from typing import Final

from kettle_wire.telemetry.declaration import Attribute, Metric

# -- master --------------------------------------------------------------------------------------------------------------

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

# -- startd --------------------------------------------------------------------------------------------------------------

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

# -- collector -----------------------------------------------------------------------------------------------------------

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

# -- negotiator ----------------------------------------------------------------------------------------------------------

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

# -- accounting ----------------------------------------------------------------------------------------------------------

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

# -- iam -----------------------------------------------------------------------------------------------------------------

REFUSALS: Final = Metric(
    name="kettle.iam.refusals",
    kind="counter",
    unit="{request}",
    meaning="Wrong credentials and misused join tokens.",
    services=("iam",),
)

METRICS: Final = tuple(value for value in list(globals().values()) if isinstance(value, Metric))
"""All of them, in the order of this module."""
