"""Asking startds for claims: new ids, and an answer even if the first one is lost."""

import logging
import time
from collections.abc import Callable, Iterable
from typing import Final

import msgspec

from kettle.bus.ports import Asks, BusError, NoResponderError, RefusedError
from kettle_services.schedd.claim_secrets import ClaimSecrets
from kettle_services.schedd.claims.releases import ClaimReleases
from kettle_services.schedd.claims.request_outcomes import Undecided
from kettle_services.schedd.domain.claims.claim import ClaimLeases
from kettle_services.schedd.domain.claims.claim_states import ClaimStates
from kettle_services.schedd.domain.claims.states import ASKING, ClaimStimulus
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
        states: ClaimStates,
        releases: ClaimReleases,
        leases: ClaimLeases,
        settings: ScheddSettings,
        named: Callable[[str], str],
    ) -> None:
        """`named`: with what the ids of claims in a pool begin, beside what those of our own pool have."""
        self._bus = bus
        self._recorder = recorder
        self._secrets = secrets
        self._states = states
        self._releases = releases
        self._leases = leases
        self._settings = settings
        self._named = named
        self._minted = 0

    def new_ids(self, startd: str, count: int) -> list[str]:
        """
        Ids of new claims, which are asked for: ours in our pool, and those of the visitor that we are in another.
        """
        us, shard = self._named(pool_of(startd)), self._recorder.shard
        first, self._minted = self._minted + 1, self._minted + count
        claims = [f"{us}{shard.name}#{shard.tenure.epoch}#{number}" for number in range(first, first + count)]
        for claim in claims:
            self._states.feed(claim, ClaimStimulus.REQUESTED)
        return claims

    def request(
        self, match: MatchedSlot, ad: Ad, claims: list[str], lease: float, *, instead_of: Iterable[str] = ()
    ) -> RequestClaims:
        """
        The request for claims on a matched slot, for jobs with this ad; `instead_of`: claims of ours that make room.
        """
        return RequestClaims(
            schedd=self._recorder.queue.schedd,
            slot=match.slot,
            capability=match.capability,
            submitter=match.submitter,
            job=ad,
            claims=[self._secrets.key(claim) for claim in claims],
            lease=lease,
            also=match.also,
            instead_of=[self._secrets.key(claim) for claim in instead_of],
        )

    async def ask(self, startd: str, request: RequestClaims) -> ClaimsDecided | Undecided:
        """
        A lost answer is asked for again: the ids make the repeat harmless.

        Of a decision only what was asked for counts, and each claim once.
        """
        decided = await self._ask(startd, request)
        if isinstance(decided, Undecided):
            return decided
        open_claims = {key.claim for key in request.claims}
        granted = {grant.claim: grant for grant in decided.granted if grant.claim in open_claims}
        waiting = [claim for claim in dict.fromkeys(decided.waiting) if claim in open_claims - granted.keys()]
        for claim in waiting:
            self._states.feed(claim, ClaimStimulus.DEFERRED)
        return msgspec.structs.replace(decided, granted=list(granted.values()), waiting=waiting)

    async def _ask(self, startd: str, request: RequestClaims) -> ClaimsDecided | Undecided:
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
        return Undecided(reason, certain=False)

    def conclude(self, startd: str, request: RequestClaims, decided: ClaimsDecided | Undecided) -> None:
        """
        No other answer is waited for: what is not granted is over, or is given back as soon as that is possible.
        """
        stimulus, granted = ClaimStimulus.REFUSED, set[str]()
        if isinstance(decided, Undecided):
            stimulus = ClaimStimulus.NOT_DELIVERED if decided.certain else ClaimStimulus.NOT_ANSWERED
        else:
            granted = {grant.claim for grant in decided.granted}
            now = time.monotonic()
            # A first lease begins when the startd makes the claim, which is before now.
            self._leases.trust(startd, now)
            self._leases.record_answer(startd, decided.clock, now)
        left = (key.claim for key in request.claims if key.claim not in granted)
        self.give_up(startd, left, stimulus, request.lease)

    def give_up(self, startd: str, claims: Iterable[str], stimulus: ClaimStimulus, lease: float) -> None:
        """Nobody waits for an answer about these claims any more, as far as they are asked for at all."""
        asked = [claim for claim in claims if self._states.state(claim).phase in ASKING]
        self._releases.settle(startd, asked, stimulus, until=time.monotonic() + lease)
