"""
Claims that are kept for a while without a next job, because their last jobs ask for it (KeepClaimIdle).

A user who submits one short job after the other, each when the previous one has ended, then does not wait for a
negotiation.
"""

import asyncio
import time
from collections.abc import Callable
from typing import Final

from kettle_services.schedd.domain import evaluation
from kettle_wire.ads import Ad
from kettle_wire.events import Event

ATTRIBUTE: Final = "KeepClaimIdle"
_FLOOR_S: Final = 0.05
"""Between two looks, however much happens to the queue meanwhile."""


class IdleClaims:
    """
    The claims of one schedd that wait for a job, or would; it is not recorded: a restart gives them back.
    """

    def __init__(self) -> None:
        self._wanted: dict[str, float] = {}
        """Claim -> for how many seconds its job wants it kept."""
        self._until: dict[str, float] = {}
        """Claim that waits -> when it has waited long enough, on the monotonic clock."""
        self._news = asyncio.Event()

    def begin(self, claim: str, job: Ad) -> None:
        """A job with this ad begins on a claim: what it wants counts, not what one before it wanted."""
        self.forget(claim)
        if seconds := evaluation.seconds(job, ATTRIBUTE, time.time()):
            self._wanted[claim] = seconds

    def keeps(self, claim: str) -> bool:
        """
        Whether a claim that has no job is kept; from the first time on that it is asked, for as long as was wanted.
        """
        now = time.monotonic()
        if claim not in self._until and claim in self._wanted:
            self._until[claim] = now + self._wanted[claim]
            self._news.set()
        return self._until.get(claim, now) > now

    @property
    def waiting(self) -> list[str]:
        """Those that are kept now."""
        return list(self._until)

    def forget(self, claim: str) -> None:
        """The claim has a job again, or has ended."""
        self._wanted.pop(claim, None)
        self._until.pop(claim, None)

    def on_event(self, event: Event) -> None:
        """Something was recorded: there may be a job for a claim that waits."""
        del event
        if self._until:
            self._news.set()

    async def watch_claims(self, look: Callable[[str], None]) -> None:
        """
        Check waiting claims whenever something has happened, and when one has waited long enough; never returns.
        """
        while True:
            soonest = min(self._until.values(), default=float("inf"))
            try:
                async with asyncio.timeout(
                    None if soonest == float("inf") else max(0.0, soonest - time.monotonic())
                ):
                    await self._news.wait()
            except TimeoutError:
                pass  # one has waited long enough
            self._news.clear()
            for claim in self.waiting:
                look(claim)
            await asyncio.sleep(_FLOOR_S)
