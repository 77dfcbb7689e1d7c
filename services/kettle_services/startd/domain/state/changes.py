"""
Every change that can happen to the claims of one machine.

The changes are what the journal holds: a restarted startd folds them and knows what its predecessor knew.
"""

import msgspec

from kettle_services.startd.domain.state.claim import Claim, DrainInForce, RunningAttempt, StopOrder
from kettle_wire.jobs import JobId


class Claimed(msgspec.Struct, frozen=True, tag="claimed"):
    """A claim was accepted."""

    claim: Claim


class Renewed(msgspec.Struct, frozen=True, tag="renewed"):
    """Leases go on until `deadline`."""

    claims: list[str]
    deadline: float


class AttemptAccepted(msgspec.Struct, frozen=True, tag="begun"):
    """An attempt was accepted; whatever happens now ends in a final report."""

    claim: str
    attempt: RunningAttempt
    rank: float | None = None
    """RANK of the machine for its job; None: as it was for the job before."""


class StarterConnected(msgspec.Struct, frozen=True, tag="met"):
    """The attempt's starter has registered."""

    claim: str
    pid: int
    start_time: int


class AttemptSuspended(msgspec.Struct, frozen=True, tag="suspended"):
    """The attempt's processes have to be suspended."""

    claim: str
    clock: float
    """Seconds since boot."""
    at: float
    """Seconds since the epoch."""


class AttemptContinued(msgspec.Struct, frozen=True, tag="continued"):
    """The attempt's processes are to go on."""

    claim: str
    clock: float
    """Seconds since boot."""
    at: float
    """Seconds since the epoch."""


class OwnerOrderChanged(msgspec.Struct, frozen=True, tag="ordered"):
    """The job's owner has suspended its processes, or has continued them."""

    claim: str
    still: bool
    number: int
    """Of the order: what has a smaller one comes late."""
    at: float
    """Seconds since the epoch."""


class AttemptStopped(msgspec.Struct, frozen=True, tag="stopped"):
    """The attempt is to be ended."""

    claim: str
    stop: StopOrder
    at: float = 0.0
    """Seconds since the epoch; 0: unknown."""


class AttemptFinished(msgspec.Struct, frozen=True, tag="over"):
    """The attempt's final report, number `sequence`, is on disk."""

    claim: str
    job: JobId
    attempt: int
    sequence: int
    at: float
    """Seconds since the epoch."""


class PastAttemptsRecorded(msgspec.Struct, frozen=True, tag="remembered"):
    """Attempts of the claim that are over: a late repeat of their activation must not run them again."""

    claim: str
    done: list[tuple[JobId, int]]


class ClaimClosing(msgspec.Struct, frozen=True, tag="closing"):
    """The claim ends with its attempt."""

    claim: str
    reason: str
    then: StopOrder | None = None
    """How the attempt is ended when its retirement is over; None: another change ends it now, or it ends by itself."""
    at: float = 0.0
    """Seconds since the epoch; 0: unknown."""


class Reopened(msgspec.Struct, frozen=True, tag="reopened"):
    """The claim continues after its attempt, because the reason to end it no longer exists."""

    claim: str
    at: float
    """Seconds since the epoch."""


class ClaimWaiting(msgspec.Struct, frozen=True, tag="waiting"):
    """A claim will inherit the resources of others as soon as they end."""

    claim: Claim


class ClaimRemoved(msgspec.Struct, frozen=True, tag="gone"):
    """The claim is over; its resources are free, or pass to the claim that waits for them."""

    claim: str


class Draining(msgspec.Struct, frozen=True, tag="draining"):
    """The machine has to be emptied; earlier requests no longer count."""

    drain: DrainInForce


class Drained(msgspec.Struct, frozen=True, tag="drained"):
    """The machine is in use again."""

    at: float
    """Seconds since the epoch."""


Change = (
    Claimed
    | Renewed
    | AttemptAccepted
    | StarterConnected
    | AttemptSuspended
    | AttemptContinued
    | OwnerOrderChanged
    | AttemptStopped
    | AttemptFinished
    | PastAttemptsRecorded
    | ClaimClosing
    | Reopened
    | ClaimWaiting
    | ClaimRemoved
    | Draining
    | Drained
)
