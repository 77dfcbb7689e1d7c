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
from kettle_wire.commands.startd import RELEASE, Release

_log: Final = logging.getLogger(__name__)


class ClaimReleases:
    """`lease`: seconds after which a claim without renewal has ended."""

    def __init__(self, bus: Asks, secrets: ClaimSecrets, tasks: asyncio.TaskGroup, *, lease: float) -> None:
        self._bus = bus
        self._secrets = secrets
        self._tasks = tasks
        self._lease = lease
        self._owed: dict[str, dict[str, float]] = {}
        """Startd -> claims that it was not told are given back -> when their lease has ended them anyway."""

    async def release(self, startd: str, claims: list[str], reason: str) -> None:
        """Notify a startd; if that fails, `settle` does it later."""
        release = Release(claims=[self._secrets.key(claim) for claim in claims], reason=reason)
        try:
            await self._bus.call(RELEASE, startd, release)
        except BusError as error:
            _log.warning("claims not given back yet", extra={"startd": startd, "cause": str(error)})
            self.release_later(startd, claims, self._lease)

    def release_later(self, startd: str, claims: Iterable[str], lease: float) -> None:
        """Notify the startds of these claims later, for `lease` seconds."""
        until = time.monotonic() + lease
        self._owed.setdefault(startd, {}).update((claim, until) for claim in claims)

    def retry_releases(self) -> None:
        """Try again to give back what could not be given back, as long as its lease may last."""
        now = time.monotonic()
        owed, self._owed = self._owed, {}
        for startd, claims in owed.items():
            if open_claims := [claim for claim, until in claims.items() if until > now]:
                self._tasks.create_task(self.release(startd, open_claims, "no more jobs for the claim"))
