"""
Claims: the slots of machines that a schedd holds, and for how long it may rely on them.

A lease is counted on the worker's clock. Each answer of a startd carries that clock; a renewal names the moment, on
that clock, up to which the claim lives: the last clock seen, plus the time that has passed here since it was seen, plus
the lease. What passed here since then is never more than what passed there since the clock was read, so the worker's
deadline is never later than `sent + lease` here, no matter how late the renewal arrives. Until then, and a margin for
killing, the attempt may live.
"""

from collections.abc import Container

import msgspec

from kettle_wire.ads import Ad
from kettle_wire.codes import Universe
from kettle_wire.events import ClaimGranted
from kettle_wire.jobs import JobId

_FOR_ONE_JOB = frozenset({"Local", "Batch"})
_BATCH_LEASE_S = 30 * 86_400.0
"""An entrypoint has what it was asked for in its record: only its word ends a claim on a batch system."""


class LeaseTerms(msgspec.Struct, frozen=True):
    """For how long claims are asked, in seconds."""

    lease: float
    """The lease of jobs without one of their own."""
    shortest: float
    longest: float

    def of(self, job: Ad) -> float:
        """
        The lease of a claim for a job: its JobLeaseDuration, within bounds.

        The claim has it for its whole life, so that both sides count with the same figure; another job gets the claim
        only if it wants the same.
        """
        if job.get("JobUniverse") == Universe.GRID:
            return _BATCH_LEASE_S
        own = job.get("JobLeaseDuration")
        if isinstance(own, bool) or not isinstance(own, int | float) or own <= 0:
            return self.lease
        return float(min(max(own, self.shortest), self.longest))

    def suits(self, job: Ad, lease: float) -> bool:
        """Whether a job would ask for a claim with this lease."""
        return self.of(job) == lease


class Claim(msgspec.Struct, frozen=True):
    """A granted claim; `job` is the job whose attempt may live on it."""

    granted: ClaimGranted
    at: int
    """When it was granted, microseconds since the epoch."""
    job: JobId | None = None

    @property
    def once(self) -> bool:
        """Whether it is for one job only: one that runs without a match, there or in a batch system."""
        return self.granted.slot_ad.get("SlotType") in _FOR_ONE_JOB

    @property
    def slot_ad(self) -> Ad:
        """The ad of the slot as it was when it was claimed."""
        return self.granted.slot_ad


class Contact(msgspec.Struct):
    """
    What is known of one startd's clock, and when it was last asked to renew (our monotonic clock, seconds).
    """

    clock: float | None = None
    seen: float = 0.0
    sent: float = 0.0
    sent_before: float = 0.0
    missed: int = 0
    """Questions that were not answered since the last answer."""

    def at(self, now: float) -> float | None:
        """
        Our moment `now` on the worker's clock, which shows no less by then; None if it is not known yet.
        """
        return None if self.clock is None else self.clock + (now - self.seen)

    def record_answer(self, clock: float, now: float) -> None:
        """An answer came that carried the worker's clock."""
        self.clock, self.seen, self.missed = clock, now, 0


class ClaimLeases:
    """Until when claims on each startd may live."""

    def __init__(self, *, margin: float) -> None:
        self.margin = margin
        self._contacts: dict[str, Contact] = {}

    def renew(self, startd: str, now: float, shortest: float) -> float | None:
        """
        The moment on the worker's clock of a renewal that is sent now, from which leases count, the shortest of which
        is given; None: ask for the clock only, and renew when that is known.

        What is not answered may have been delivered, so each renewal puts off the moment at which the claims are
        certainly dead. A startd that has not answered for half a lease is therefore only asked for its clock.
        """
        contact = self._contacts.setdefault(startd, Contact())
        if contact.clock is None or now - contact.seen > shortest / 2:
            return None
        contact.sent_before, contact.sent = contact.sent, now
        return contact.at(now)

    def not_delivered(self, startd: str) -> None:
        """The last renewal certainly reached nobody."""
        contact = self._contacts.setdefault(startd, Contact())
        contact.sent = contact.sent_before

    def trust(self, startd: str, now: float) -> None:
        """Assume that a renewal was sent just now: by our predecessor, perhaps."""
        contact = self._contacts.setdefault(startd, Contact())
        contact.sent = contact.sent_before = max(contact.sent, now)

    def record_answer(self, startd: str, clock: float, now: float) -> None:
        """The startd answered, with its clock."""
        self._contacts.setdefault(startd, Contact()).record_answer(clock, now)

    def is_over(self, startd: str, lease: float, now: float) -> bool:
        """
        Whether a claim there with this lease is certainly dead: it had no renewal for the lease and a margin.
        """
        contact = self._contacts.get(startd)
        return contact is not None and now - contact.sent > lease + self.margin

    def count_missed(self, startd: str) -> int:
        """One more question that was not answered; how many there are since the last answer."""
        contact = self._contacts.setdefault(startd, Contact())
        contact.missed += 1
        return contact.missed

    def prune(self, held: Container[str], lease: float, now: float) -> list[str]:
        """
        Forget startds that are not among those where claims are `held`, a lease and a margin after their last renewal; which
        ones they are. The next claim that one grants makes it known again.
        """
        gone = [
            startd for startd in self._contacts if startd not in held and self.is_over(startd, lease, now)
        ]
        for startd in gone:
            del self._contacts[startd]
        return gone
