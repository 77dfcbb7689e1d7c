"""
Claims that are given back: their startds are notified repeatedly, until they confirm or the lease has ended the claims
anyway.
"""

import asyncio
import logging
import time
from collections.abc import Iterable
from typing import Final

from kettle.bus.ports import Asks, BusError
from kettle_services.schedd.claim_secrets import ClaimSecrets
from kettle_services.schedd.domain.claims.claim_states import ClaimStates
from kettle_services.schedd.domain.claims.states import ClaimInstruction, ClaimStimulus
from kettle_wire.commands.startd import RELEASE, Release

_log: Final = logging.getLogger(__name__)


class ClaimReleases:
    """`lease`: seconds after which a claim without renewal has ended."""

    def __init__(
        self, bus: Asks, secrets: ClaimSecrets, states: ClaimStates, tasks: asyncio.TaskGroup, *, lease: float
    ) -> None:
        self._bus = bus
        self._secrets = secrets
        self._states = states
        self._tasks = tasks
        self._lease = lease
        self._owed: dict[str, dict[str, float]] = {}
        """Startd -> claims that it was not told are given back -> when their lease has ended them anyway."""

    async def release(
        self, startd: str, claims: Iterable[str], reason: str, *, until: float | None = None
    ) -> None:
        """
        Notify a startd of claims that are over; if that fails, it is tried again until they have ended by themselves.
        """
        claims = list(claims)
        until = time.monotonic() + self._lease if until is None else until
        release = Release(claims=[self._secrets.key(claim) for claim in claims], reason=reason)
        try:
            await self._bus.call(RELEASE, startd, release)
            stimulus = ClaimStimulus.CONFIRMED
        except BusError as error:
            _log.warning("claims not given back yet", extra={"startd": startd, "cause": str(error)})
            stimulus = ClaimStimulus.NOT_ANSWERED
        self.settle(startd, claims, stimulus, until=until)

    def settle(self, startd: str, claims: Iterable[str], stimulus: ClaimStimulus, *, until: float) -> None:
        """
        Nobody is asked about these claims any more, for that reason: what may be at the startd yet is released later, as long
        as it may be.
        """
        for claim in claims:
            if ClaimInstruction.RELEASE_LATER in self._states.feed(claim, stimulus):
                self._owed.setdefault(startd, {})[claim] = until

    def retry_releases(self) -> None:
        """Try again to give back what could not be given back, as long as its lease may last."""
        now = time.monotonic()
        owed, self._owed = self._owed, {}
        for startd, claims in owed.items():
            again: dict[float, list[str]] = {}
            for claim, until in claims.items():
                if until > now:
                    again.setdefault(until, []).append(claim)
                else:
                    self._states.feed(claim, ClaimStimulus.LEASE_OVER)
            for until, some in again.items():
                reason = "no more jobs for the claim"
                self._tasks.create_task(self.release(startd, some, reason, until=until))
