"""What the claims of a queue are used for."""

from typing import Final

import msgspec

from kettle_services.schedd.domain.claims.claim import Claim
from kettle_services.schedd.domain.negotiation.concurrency_limits import LimitsInUse
from kettle_services.schedd.domain.queue.alike import JobsAlike
from kettle_wire.events import ClaimGranted
from kettle_wire.flocking import pool_of
from kettle_wire.jobs import JobId


class ClaimUse:
    """Which job each of `claims` is for, which of them are elsewhere, and what they take of limits."""

    def __init__(self, claims: dict[str, Claim]) -> None:
        self._claims = claims
        self.abroad: Final[dict[str, str]] = {}
        """Claims of machines of other pools -> the pool."""
        self.limits: Final = LimitsInUse()
        """Concurrency limits that claims use."""

    def granted(self, event: ClaimGranted, at: int) -> None:
        """Take a claim in, granted at `at` microseconds."""
        self._claims[event.claim] = Claim(event, at)
        if pool := pool_of(event.startd):
            self.abroad[event.claim] = pool
        self.limits.count(event.submitter, event.limits, 1)

    def ended(self, claim: str) -> None:
        """Inverse of `granted`; nothing, if there is no such claim."""
        self.abroad.pop(claim, None)
        if (ended := self._claims.pop(claim, None)) is not None:
            self.limits.count(ended.granted.submitter, ended.granted.limits, -1)

    def enter(self, alike: JobsAlike) -> None:
        """The claims of a job are for it: those of all nodes, if it has several."""
        self._use(alike, alike.jobs[-1])

    def leave(self, alike: JobsAlike) -> None:
        """Inverse of `enter`."""
        self._use(alike, None)

    def _use(self, alike: JobsAlike, job: JobId | None) -> None:
        for claim in alike.entry.job.attempt.claims:
            if (held := self._claims.get(claim)) is not None:
                self._claims[claim] = msgspec.structs.replace(held, job=job)
