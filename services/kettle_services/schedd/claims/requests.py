"""Asking startds for claims: new ids, and an answer even if the first one is lost."""

import logging
import time
from collections.abc import Callable
from typing import Final

from kettle.bus.ports import Asks, BusError, NoResponderError, RefusedError
from kettle_services.schedd.claim_secrets import ClaimSecrets
from kettle_services.schedd.claims.releases import ClaimReleases
from kettle_services.schedd.claims.request_outcomes import Undecided
from kettle_services.schedd.domain.claims.claim import ClaimLeases
from kettle_services.schedd.queue.recorder import QueueRecorder
from kettle_services.schedd.settings import ScheddSettings
from kettle_wire.ads import Ad
from kettle_wire.commands.schedd import MatchedSlot
from kettle_wire.commands.startd import REQUEST_CLAIMS, ClaimsDecided, RequestClaims
from kettle_wire.flocking import pool_of

_log: Final = logging.getLogger(__name__)
_TRIES: Final = 3


class ClaimRequests:
    """The questions of one schedd for claims."""

    def __init__(
        self,
        bus: Asks,
        recorder: QueueRecorder,
        secrets: ClaimSecrets,
        returns: ClaimReleases,
        leases: ClaimLeases,
        settings: ScheddSettings,
        named: Callable[[str], str],
    ) -> None:
        """`named`: with what the ids of claims in a pool begin, beside what those of our own pool have."""
        self._bus = bus
        self._recorder = recorder
        self._secrets = secrets
        self._returns = returns
        self._leases = leases
        self._settings = settings
        self._named = named
        self._minted = 0
        self.asking: Final[set[str]] = set()
        """Claims of which nobody knows yet whether they are granted."""

    def new_ids(self, startd: str, count: int) -> list[str]:
        """Ids of new claims: ours in our pool, and those of the visitor that we are in another."""
        us, shard = self._named(pool_of(startd)), self._recorder.shard
        first, self._minted = self._minted + 1, self._minted + count
        return [f"{us}{shard.name}#{shard.tenure.epoch}#{number}" for number in range(first, first + count)]

    def request(self, match: MatchedSlot, ad: Ad, claims: list[str], lease: float) -> RequestClaims:
        """The request for claims on a matched slot, for jobs with this ad."""
        return RequestClaims(
            schedd=self._recorder.queue.schedd,
            slot=match.slot,
            capability=match.capability,
            submitter=match.submitter,
            job=ad,
            claims=[self._secrets.key(claim) for claim in claims],
            lease=lease,
            also=match.also,
        )

    async def ask(self, startd: str, request: RequestClaims) -> ClaimsDecided | Undecided:
        """
        A lost answer is asked for again: the ids make the repeat harmless. What is never answered ends by its lease.
        """
        reason = f"the startd {startd} does not answer"
        for tries in range(_TRIES):
            try:
                return await self._bus.call(
                    REQUEST_CLAIMS, startd, request, deadline=self._settings.claim_deadline
                )
            except (RefusedError, NoResponderError) as error:
                _log.info("claims not granted", extra={"startd": startd, "cause": str(error)})
                if tries == 0:
                    return Undecided(str(error) if isinstance(error, RefusedError) else reason, certain=True)
                break  # but a try before may have been carried out
            except BusError as error:
                _log.warning("no answer about claims", extra={"startd": startd, "cause": str(error)})
        # Perhaps it granted them.
        self._returns.release_later(startd, [key.claim for key in request.claims], request.lease)
        return Undecided(reason, certain=False)

    def trust(self, startd: str, decided: ClaimsDecided) -> None:
        """Claims were granted: a first lease begins when the startd makes the claim, which is before now."""
        now = time.monotonic()
        self._leases.trust(startd, now)
        self._leases.record_answer(startd, decided.clock, now)
