"""
Log events as plain values: what the lines of a job event log say.

`at` is in seconds since the epoch; the file shows it in some time zone, and in whole seconds unless it is to show more.
Of a cluster as a whole events have the number -1 for the job.
"""

from typing import ClassVar

import msgspec

from kettle_wire.ads.types import Ad
from kettle_wire.attempts import ExitRecord
from kettle_wire.jobs import JobId

OF_CLUSTER = -1
"""The number of the job in events of a whole cluster."""


class CpuTimes(msgspec.Struct, frozen=True):
    """Whole seconds of processor time."""

    user: int = 0
    system: int = 0


class Resource(msgspec.Struct, frozen=True, kw_only=True):
    """
    One line of the table of resources; empty where there is nothing to say.

    The cells are texts because the table mixes whole numbers, reals with two decimals and names of devices.
    """

    label: str
    """With its unit, as in `Memory (MB)`."""
    usage: str = ""
    request: str = ""
    allocated: str = ""
    assigned: str | None = None
    """None in every line: the table has no such column."""


class LogEvent(msgspec.Struct, frozen=True, kw_only=True):
    """What all events have."""

    number: ClassVar[int]
    job: JobId
    at: float


class Submitted(LogEvent, frozen=True, kw_only=True):
    """000: the job is in the queue."""

    number: ClassVar[int] = 0
    host: str
    """Address of the access point, with its angle brackets."""
    notes: list[str] = []
    """Log notes, the submitter's notes, warnings: in this order; an empty one is not there."""


class Executing(LogEvent, frozen=True, kw_only=True):
    """001: the executable runs."""

    number: ClassVar[int] = 1
    host: str
    slot: str = ""
    attributes: list[tuple[str, str]] = []
    """Names and expressions in old ClassAd syntax."""


class Checkpointed(LogEvent, frozen=True, kw_only=True):
    """003: what the job has done so far is saved, and it goes on."""

    number: ClassVar[int] = 3
    remote: CpuTimes = CpuTimes()
    local: CpuTimes = CpuTimes()
    sent: int = 0


class Evicted(LogEvent, frozen=True, kw_only=True):
    """004: the attempt ended, the job did not; `requeued` if the process had exited by itself."""

    number: ClassVar[int] = 4
    code: int | None = None
    subcode: int = 0
    checkpointed: bool = False
    requeued: ExitRecord | None = None
    remote: CpuTimes = CpuTimes()
    local: CpuTimes = CpuTimes()
    sent: int = 0
    received: int = 0
    reason: str = ""
    resources: list[Resource] = []


class Terminated(LogEvent, frozen=True, kw_only=True):
    """005: the job has run to its end."""

    number: ClassVar[int] = 5
    exit: ExitRecord
    run_remote: CpuTimes = CpuTimes()
    run_local: CpuTimes = CpuTimes()
    total_remote: CpuTimes = CpuTimes()
    total_local: CpuTimes = CpuTimes()
    sent: int = 0
    received: int = 0
    total_sent: int = 0
    total_received: int = 0
    resources: list[Resource] = []
    ticket: str = ""
    """Sentence that says who ended the job, and when."""


class ImageSize(LogEvent, frozen=True, kw_only=True):
    """006: memory in use."""

    number: ClassVar[int] = 6
    image_kib: int
    memory_mib: int | None = None
    resident_kib: int | None = None
    proportional_kib: int | None = None


class Generic(LogEvent, frozen=True, kw_only=True):
    """008: free text."""

    number: ClassVar[int] = 8
    info: str


class Aborted(LogEvent, frozen=True, kw_only=True):
    """009: the job was removed."""

    number: ClassVar[int] = 9
    reason: str = ""


class Suspended(LogEvent, frozen=True, kw_only=True):
    """010: the job's processes are stopped."""

    number: ClassVar[int] = 10
    processes: int = 0


class Unsuspended(LogEvent, frozen=True, kw_only=True):
    """011: they go on."""

    number: ClassVar[int] = 11


class Held(LogEvent, frozen=True, kw_only=True):
    """012: the job waits for somebody."""

    number: ClassVar[int] = 12
    reason: str = ""
    code: int = 0
    subcode: int = 0


class Released(LogEvent, frozen=True, kw_only=True):
    """013: a held job may run again."""

    number: ClassVar[int] = 13
    reason: str = ""


class Disconnected(LogEvent, frozen=True, kw_only=True):
    """022: the machine does not answer."""

    number: ClassVar[int] = 22
    slot: str
    host: str
    """Address of the startd, with its angle brackets."""
    reason: str = ""


class Reconnected(LogEvent, frozen=True, kw_only=True):
    """023: the machine answers again, and the job has continued to run."""

    number: ClassVar[int] = 23
    slot: str
    host: str


class ReconnectFailed(LogEvent, frozen=True, kw_only=True):
    """024: there was no contact with the machine before its lease was over; the job is in the queue again."""

    number: ClassVar[int] = 24
    slot: str
    reason: str = ""


class JobAdInformation(LogEvent, frozen=True, kw_only=True):
    """028: attributes of the job's ad when another event was written."""

    number: ClassVar[int] = 28
    attributes: Ad
    """The attributes of the other event, the requested attributes, and which event it was."""


class ClusterSubmit(LogEvent, frozen=True, kw_only=True):
    """035: a submission whose jobs will come little by little."""

    number: ClassVar[int] = 35
    host: str
    notes: list[str] = []
    """As of event 000."""


class ClusterRemove(LogEvent, frozen=True, kw_only=True):
    """036: no job of it is left, and none will come."""

    number: ClassVar[int] = 36
    jobs: int
    """So many came."""
    items: int
    """Of so many."""
    completion: int = 1
    """0: not all of them came, 1: all did, 2: somebody had stopped it; less: an error."""
    reason: str = ""


class FactoryPaused(LogEvent, frozen=True, kw_only=True):
    """037: for now no more jobs of it come."""

    number: ClassVar[int] = 37
    reason: str = ""
    code: int = 0
    """1: somebody has stopped it."""
    hold_code: int = 0


class FactoryResumed(LogEvent, frozen=True, kw_only=True):
    """038: more jobs of it come again."""

    number: ClassVar[int] = 38
    reason: str = ""


class FileTransfer(LogEvent, frozen=True, kw_only=True):
    """040: the job's files wait for their turn, are being moved, or have been."""

    number: ClassVar[int] = 40
    kind: int
    """1, 2, 3: input queued, started, finished; 4, 5, 6: output."""
    queued: int | None = None
    """Seconds that they have waited."""
    host: str = ""
    """Where they are moved to, with its angle brackets."""


class Other(LogEvent, frozen=True, kw_only=True):
    """An event that Kettle does not write: its kind, ids as written and lines as they stand, or its ad."""

    kind: int
    ids: str
    lines: list[str]
    ad: Ad = {}
    """What it says, where the log is in XML or JSON."""
