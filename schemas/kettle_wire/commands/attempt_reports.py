"""
What shadows and their schedd tell each other of attempts: which there are, what became of them, and what comes next.
"""

from typing import Annotated

import msgspec

from kettle_wire.ads.types import Ad
from kettle_wire.attempts import AttemptResult, Transfer, Usage
from kettle_wire.commands.node_reports import NodeBegan, NodeEnded
from kettle_wire.commands.shadow import Assignment, Still, Stop
from kettle_wire.endpoint import Caller, Endpoint, Position, Repeat
from kettle_wire.jobs import JobId, Number
from kettle_wire.tasks import MOST_STEPS, Step


class Attempt(msgspec.Struct, frozen=True, forbid_unknown_fields=True, array_like=True):
    """One run of one job."""

    job: JobId
    attempt: int


class ShadowSync(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, omit_defaults=True):
    """Everything a shadow looks after; the answer is the difference to what is recorded."""

    shadow: str
    attempts: list[Attempt]
    strays: list[Attempt] = []
    """Attempts of which it has final reports and knows nothing else."""
    kept: list[JobId] = []
    """Jobs of which it keeps files for their next run."""
    spooled: list[JobId] = []
    """Jobs whose results it keeps until they are fetched."""
    spools: list[Number] = []
    """Clusters of jobs whose files it was sent."""


class ShadowOrders(msgspec.Struct, frozen=True, kw_only=True):
    """`forget`: attempts that are over in the record; `sync_interval`: seconds to the next full exchange."""

    start: list[Assignment] = []
    stop: list[Stop] = []
    still: list[Still] = []
    forget: list[Attempt] = []
    over: list[Attempt] = []
    """The `strays` that are over in the record: their reports may be confirmed."""
    drop: list[JobId] = []
    """The jobs of `kept` that will not run again."""
    spooled: list[JobId] = []
    """The jobs of `spooled` that have left the queue."""
    spools: list[int] = []
    """The clusters of `spools` that have left the queue."""
    more: bool = False
    """There is more to start than fits into one message: ask again at once."""
    sync_interval: float = 5.0


class Began(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, tag="began"):
    """The executable runs."""

    pid: int
    at: float
    input: Transfer | None = None
    """Of files that it fetched before."""


class Suspended(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, tag="suspended"):
    """The job's processes are suspended."""

    processes: int = 0
    at: float = 0.0


class Continued(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, tag="continued"):
    """They go on."""

    at: float = 0.0


class Saved(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, tag="saved"):
    """The job's checkpoint is in the spool, and its program is started again."""

    number: Number
    """Counts the checkpoints of this attempt from 1."""
    at: float = 0.0
    usage: Usage = Usage()


class Ended(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, tag="ended"):
    """The attempt is over; if the job is done its results are in their places."""

    result: AttemptResult
    claim_lost: bool = False
    """The startd does not have this claim (any more)."""


class Used(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, tag="used"):
    """
    What the attempt uses, as measured last; it is not recorded, and policies see it while the attempt lives.
    """

    usage: Usage


class Told(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, tag="told"):
    """
    What the program says of itself. `id` makes a repeat harmless: one is under way at a time.

    An attribute that no job may set is left out.
    """

    id: str
    attributes: Ad = {}
    notes: list[str] = []


class Stepped(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, tag="stepped"):
    """Steps of a job of several tasks, in their order; `first` is the number of the first of them, from 1."""

    first: Annotated[int, msgspec.Meta(ge=1, le=MOST_STEPS)]
    steps: Annotated[list[Step], msgspec.Meta(max_length=MOST_STEPS)]


class AttemptReport(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What a shadow has to say about an attempt; a repeat changes nothing."""

    job: JobId
    attempt: int
    claim: str
    news: Began | Suspended | Continued | Saved | Ended | Used | Told | Stepped | NodeBegan | NodeEnded


class ReportAttempts(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Reports of one shadow, in order."""

    shadow: str
    reports: list[AttemptReport]


class AttemptsRecorded(msgspec.Struct, frozen=True, kw_only=True):
    """
    All reports of the request are recorded (or were stale); in exchange, the next jobs for the freed claims.
    """

    start: list[Assignment]
    position: Position


SYNC = Endpoint("schedd", "sync", ShadowSync, ShadowOrders, callers=(Caller.SHADOW,), repeat=Repeat.HARMLESS)
REPORT = Endpoint(
    "schedd", "report", ReportAttempts, AttemptsRecorded, callers=(Caller.SHADOW,), repeat=Repeat.HARMLESS
)
