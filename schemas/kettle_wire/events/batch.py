"""
What happens to a job at a batch system, on the stream `batch/<claim>`: one claim is for one job, and the stream ends with it.

Before the batch system is asked for anything that is recorded; times are seconds since the epoch.
"""

from kettle_wire.attempts import Ending
from kettle_wire.batch import BatchEnd, BatchId, BatchRequest, BatchState, Intent, Said
from kettle_wire.events.base import Event
from kettle_wire.jobs import JobId


class BatchClaimed(Event, frozen=True, tag="batch.claimed/1"):
    """A place at a batch system is given to a schedd, for one job."""

    claim: str
    proof: str
    """SHA-256 of the claim's secret, in hexadecimal digits: the secret is recorded nowhere."""
    system: str
    schedd: str
    submitter: str
    lease: float
    """Seconds without renewal after which it is over."""
    until: float


class BatchRenewed(Event, frozen=True, tag="batch.renewed/1"):
    """Its lease goes on. This is recorded seldom: what is lost by it is less than half a lease."""

    until: float


class BatchActivated(Event, frozen=True, tag="batch.activated/1"):
    """A job came for it. Its files are on their way into its sandbox."""

    job: JobId
    attempt: int
    owner: str
    """The account whose job it is there; empty: that of this service."""
    intent: Intent
    request: BatchRequest
    at: float
    trace: str = ""


class BatchSubmitting(Event, frozen=True, tag="batch.submitting/1"):
    """
    The batch system is about to be asked to take it. After a crash it is looked for before it is asked again.
    """

    number: int
    """Counts the times that it is asked, from 1."""
    at: float


class BatchInDoubt(Event, frozen=True, tag="batch.in_doubt/1"):
    """The batch system was asked, and nobody knows the answer: the job is looked for."""

    words: Said
    at: float


class BatchDeferred(Event, frozen=True, tag="batch.deferred/1"):
    """The batch system does not take it now, and has not taken it: it is asked again."""

    words: Said
    again: float


class BatchSubmitted(Event, frozen=True, tag="batch.submitted/1"):
    """The batch system has it."""

    id: BatchId
    at: float
    found: bool = False
    """It was found, after nobody had heard the answer."""


class BatchSeen(Event, frozen=True, tag="batch.seen/1"):
    """It is in another state there."""

    state: BatchState
    at: float
    words: Said = ""
    host: str = ""
    """Where it runs."""


class BatchStopOrdered(Event, frozen=True, tag="batch.stop_ordered/1"):
    """It is to be removed from the batch system, and then has ended so."""

    ending: Ending
    at: float


class BatchHoldOrdered(Event, frozen=True, tag="batch.hold_ordered/1"):
    """Its owner wants it stopped there, or to go on."""

    held: bool
    number: int
    """Counts these orders: an earlier one that comes later changes nothing."""


class BatchEnded(Event, frozen=True, tag="batch.ended/1"):
    """It is over, and is reported until the report is recorded; its sandbox stays until then."""

    at: float
    end: BatchEnd | None = None
    """None: it never was in the batch system."""
    ending: Ending | None = None
    """What ended it otherwise than by the end of its program."""


class BatchReleased(Event, frozen=True, tag="batch.released/1"):
    """The claim is over, and all that there was of it is gone: the stream ends."""

    reason: str


BatchEvent = (
    BatchClaimed
    | BatchRenewed
    | BatchActivated
    | BatchSubmitting
    | BatchInDoubt
    | BatchDeferred
    | BatchSubmitted
    | BatchSeen
    | BatchStopOrdered
    | BatchHoldOrdered
    | BatchEnded
    | BatchReleased
)
