"""
Claims and attempts of one machine, and every change that can happen to them.

The changes are what the journal holds: a restarted startd folds them and knows what its predecessor knew.
"""

import hmac

import msgspec

from kettle.classad import FOREIGN_STEPS, Context
from kettle.execution.attempt import AttemptId
from kettle.startd.domain.resources import Resources
from kettle.wire.commands.startd import ClaimKey
from kettle.wire.jobs import JobId


class Now(msgspec.Struct, frozen=True):
    """
    The moment of a decision, on both clocks.
    """

    clock: float
    """Seconds since boot: leases."""
    time: float
    """Seconds since the epoch: what people read."""

    @property
    def context(self) -> Context:
        """What expressions see of it, and how much of the machine's time one may take."""
        return Context(now=lambda: int(self.time), max_steps=FOREIGN_STEPS)


class Stop(msgspec.Struct, frozen=True):
    """
    The attempt is to be ended, and its final report shall say this.
    """

    code: int
    reason: str
    hard: bool = False


class Attempt(msgspec.Struct, frozen=True, kw_only=True):
    """
    An attempt without a final report.
    """

    job: JobId
    attempt: int
    sequence: int
    """Number of the last report of the claim before this attempt."""
    global_job_id: str = ""
    trace: str = ""
    began: float = 0.0
    """Seconds since the epoch."""
    pid: int = 0
    """The starter's; 0: it has not said hello yet."""
    start_time: int = 0
    stop: Stop | None = None


class Claim(msgspec.Struct, frozen=True, kw_only=True):
    """
    A slot that belongs to a schedd for a while: a dynamic one that was carved for it, or a static one.
    """

    key: ClaimKey
    schedd: str
    submitter: str
    slot: int
    """Number that no other claim of the machine has: that of the dynamic slot, and of the account that jobs run as."""
    resources: Resources
    lease: float
    deadline: float
    """When it ends without a renewal, on this machine's clock since boot."""
    made: float
    """Seconds since the epoch."""
    changed: float
    """When it became idle or busy, seconds since the epoch."""
    sequence: int = 0
    """Number of the last report: reports of one claim never share a number, whatever their attempt."""
    attempt: Attempt | None = None
    ending: str = ""
    """Why it ends as soon as its attempt is over; empty: it goes on."""
    parent: int = 1
    """Number of the slot that it was carved out of, or that it is."""
    whole: bool = False
    """It has the slot `parent` as a whole."""
    devices: dict[str, list[str]] = {}
    """Ids of custom resources that are assigned to it, by tag."""

    def proves(self, key: ClaimKey) -> bool:
        """
        Whether `key` is the right to use this claim.
        """
        return hmac.compare_digest(self.key.secret.encode(), key.secret.encode())

    def attempt_id(self) -> AttemptId | None:
        """
        The attempt that has no final report yet.
        """
        if self.attempt is None:
            return None
        return AttemptId(self.key.claim, self.attempt.job, self.attempt.attempt)


class Claimed(msgspec.Struct, frozen=True, tag="claimed"):
    """
    A claim was accepted.
    """

    claim: Claim


class Renewed(msgspec.Struct, frozen=True, tag="renewed"):
    """
    Leases go on until `deadline`.
    """

    claims: list[str]
    deadline: float


class Begun(msgspec.Struct, frozen=True, tag="begun"):
    """
    An attempt was accepted; whatever happens now ends in a final report.
    """

    claim: str
    attempt: Attempt


class Met(msgspec.Struct, frozen=True, tag="met"):
    """
    The attempt's starter has said hello.
    """

    claim: str
    pid: int
    start_time: int


class Stopped(msgspec.Struct, frozen=True, tag="stopped"):
    """
    The attempt is to be ended.
    """

    claim: str
    stop: Stop


class Over(msgspec.Struct, frozen=True, tag="over"):
    """
    The attempt's final report, number `sequence`, is on disk.
    """

    claim: str
    job: JobId
    attempt: int
    sequence: int
    at: float
    """Seconds since the epoch."""


class Remembered(msgspec.Struct, frozen=True, tag="remembered"):
    """
    Attempts of the claim that are over: a late repeat of their activation must not run them again.
    """

    claim: str
    done: list[tuple[JobId, int]]


class Closing(msgspec.Struct, frozen=True, tag="closing"):
    """
    The claim ends with its attempt.
    """

    claim: str
    reason: str


class Gone(msgspec.Struct, frozen=True, tag="gone"):
    """
    The claim is over; its resources are free.
    """

    claim: str


Change = Claimed | Renewed | Begun | Met | Stopped | Over | Remembered | Closing | Gone
