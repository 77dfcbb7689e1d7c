"""Claims and attempts of one machine, and the request to drain it."""

import hmac
from typing import Literal

import msgspec

from kettle.classad import FOREIGN_STEPS, Context
from kettle.execution.attempts.job_spec import AttemptId
from kettle_services.startd.domain.slots.resources import Resources
from kettle_services.startd.domain.slots.slot import LOCAL
from kettle_wire.ads import Ad
from kettle_wire.attempts import Ending
from kettle_wire.commands.startd import ClaimKey
from kettle_wire.jobs import JobId


class Now(msgspec.Struct, frozen=True):
    """The moment of a decision, on both clocks."""

    clock: float
    """Seconds since boot: leases."""
    time: float
    """Seconds since the epoch, for display."""

    @property
    def context(self) -> Context:
        """What expressions see of it, and how much of the machine's time one may take."""
        return Context(now=lambda: int(self.time), max_steps=FOREIGN_STEPS)


class StopOrder(msgspec.Struct, frozen=True):
    """The attempt is to be ended, and its final report shall say this."""

    ending: Ending
    hard: bool = False
    """Without time to end."""
    at: float = 0.0
    """When it was ordered, seconds since boot."""


class RunningAttempt(msgspec.Struct, frozen=True, kw_only=True):
    """An attempt without a final report."""

    job: JobId
    attempt: int
    sequence: int
    """Number of the last report of the claim before this attempt."""
    global_job_id: str = ""
    trace: str = ""
    began: float = 0.0
    """Seconds since the epoch."""
    clock: float = 0.0
    """That moment on the machine's clock since boot."""
    ad: Ad = {}
    """What the machine's policy may ask of the job."""
    suspended: float | None = None
    """Since when it is suspended, seconds since boot; None: it is not."""
    suspension: float = 0.0
    """Seconds of suspensions that are over."""
    still: bool = False
    """
    Its owner has suspended it, independently of the policy of the machine; its time limits continue meanwhile.
    """
    ordered: int = 0
    """Number of the last order of its owner, 0 before the first."""
    pid: int = 0
    """The starter's process id; 0: it has not registered yet."""
    start_time: int = 0
    stop: StopOrder | None = None

    @property
    def stands_still(self) -> bool:
        """Whether the machine or the owner of the job, or both, want it so."""
        return self.still or self.suspended is not None

    def run_time(self, clock: float) -> float:
        """Seconds that it has run at a moment, suspensions by the machine not counted."""
        return (clock if self.suspended is None else self.suspended) - self.clock - self.suspension


class Claim(msgspec.Struct, frozen=True, kw_only=True):
    """A slot that belongs to a schedd for a while: a dynamic one that was carved for it, or a static one."""

    key: ClaimKey
    schedd: str
    submitter: str
    slot: int
    """
    Number that no other claim of the machine has: that of the dynamic slot, and of the account that jobs run as.
    """
    resources: Resources
    lease: float
    deadline: float
    """When it ends without a renewal, on this machine's clock since boot."""
    until: float = 0.0
    """When it ends without a renewal from the moment on at which a job begins; 0: its schedd has renewed it at once."""
    made: float
    """Seconds since the epoch."""
    changed: float
    """When it came into its activity, seconds since the epoch."""
    sequence: int = 0
    """Number of the last report: reports of one claim never share a number, whatever their attempt."""
    attempt: RunningAttempt | None = None
    ending: str = ""
    """Why it ends as soon as its attempt is over; empty: it goes on."""
    then: StopOrder | None = None
    """
    How its attempt is ended if it is not over with its retirement time; None where it is being ended already, or ends by itself.
    """
    entered: float = 0.0
    """When it came into its state, seconds since the epoch; 0: when it was made."""
    rank: float = 0.0
    """
    RANK of the machine for the job that runs on it or ran last, before the first for the one that asked for it.
    """
    parent: int = 1
    """Number of the slot that it was carved out of, or that it is."""
    whole: bool = False
    """It has the slot `parent` as a whole."""
    devices: dict[str, list[str]] = {}
    """Ids of custom resources that are assigned to it, by tag."""
    after: list[str] = []
    """
    Claims for whose resources it waits; it has those of the others already, and no slot before it has all.
    """

    def proves(self, key: ClaimKey) -> bool:
        """Whether `key` is the right to use this claim."""
        return hmac.compare_digest(self.key.secret.encode(), key.secret.encode())

    @property
    def local(self) -> bool:
        """
        Whether its jobs run here because they were submitted here: the machine's policy and draining are not about them.
        """
        return self.parent == LOCAL

    @property
    def preempting(self) -> bool:
        """Whether it is being ended now: its lease is not renewed any more."""
        return bool(self.ending) and (self.attempt is None or self.attempt.stop is not None)

    def attempt_id(self) -> AttemptId | None:
        """The attempt that has no final report yet."""
        if self.attempt is None:
            return None
        return AttemptId(self.key.claim, self.attempt.job, self.attempt.attempt)


Speed = Literal["peaceful", "graceful", "quick", "fast"]
"""When jobs are over by themselves; with retirement time and vacate time; with vacate time only; at once."""


class DrainInForce(msgspec.Struct, frozen=True, kw_only=True):
    """The machine is being emptied on request."""

    id: str
    """The id of the request; a repeat changes nothing."""
    speed: Speed
    at: float
    """When it began, seconds since the epoch."""
    by: str = ""
    reason: str = ""
    start: str = "false"
    """START meanwhile."""
    resume: bool = False
    """It is over when the machine is empty."""
    staying: list[str] = []
    """Claims that were there when it began; later ones came by `start` and stay until these have ended."""
