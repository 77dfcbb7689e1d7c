"""
Renews the leases of all claims, compares both sides' lists of them, and ends claims that are certainly dead.
"""

import asyncio
import contextlib
import logging
import time
from typing import Final

from kettle.bus.ports import Asks, BusError, NoResponderError
from kettle_services.schedd.claim_secrets import ClaimSecrets
from kettle_services.schedd.claims.disconnects import Disconnects
from kettle_services.schedd.claims.ends import ClaimEnds
from kettle_services.schedd.claims.releases import ClaimReleases
from kettle_services.schedd.domain.claims.claim import ClaimLeases
from kettle_services.schedd.domain.claims.claim_states import ClaimStates
from kettle_services.schedd.domain.claims.renewal_schedule import RenewalSchedule
from kettle_services.schedd.domain.claims.states import ClaimInstruction, ClaimPhase, ClaimStimulus
from kettle_services.schedd.queue.recorder import QueueRecorder
from kettle_services.schedd.settings import ScheddSettings
from kettle_wire.attempts import Ending
from kettle_wire.codes import VacateCode
from kettle_wire.commands.startd import ALIVE, Alive, AliveReply

_log: Final = logging.getLogger(__name__)
_LONGEST_ANSWER: Final = 30.0
"""Seconds for a startd to answer a renewal."""
_TOGETHER_S: Final = 0.05
"""For so long claims are granted before their startds are looked up: that looks at all claims there are."""
_NOT_HELD: Final = frozenset({ClaimPhase.OVER, ClaimPhase.RETURNING})


class ClaimRenewer:
    """The conversations with startds about claims that they have granted."""

    def __init__(
        self,
        bus: Asks,
        recorder: QueueRecorder,
        states: ClaimStates,
        leases: ClaimLeases,
        ends: ClaimEnds,
        releases: ClaimReleases,
        secrets: ClaimSecrets,
        tasks: asyncio.TaskGroup,
        settings: ScheddSettings,
    ) -> None:
        self._bus = bus
        self._recorder = recorder
        self._queue = recorder.queue
        self._states = states
        self._leases = leases
        self._ends = ends
        self._releases = releases
        self._secrets = secrets
        self._tasks = tasks
        self._settings = settings
        self._silence = Disconnects(recorder, states)
        self._schedule = RenewalSchedule(
            interval=settings.alive_interval, lease=settings.lease, reconnect=settings.reconnect_interval
        )
        self._granted = asyncio.Event()
        """Claims were granted that have to be renewed at once."""

    def renew_soon(self, startd: str) -> None:
        """A startd has granted claims, and waits for their first renewal."""
        self._schedule.soon(startd)
        self._granted.set()

    async def renew_leases(self) -> None:
        """
        Renew all claims, compare both sides' lists, and end claims that are certainly dead; never returns.

        No startd waits for the answer of another: new claims that are not renewed soon are ended there.
        """
        async with asyncio.TaskGroup() as renewals:
            while True:
                self._granted.clear()
                by_startd: dict[str, list[str]] = {}
                shortest: dict[str, float] = {}
                for claim, held in self._queue.claims.items():
                    startd, lease = held.granted.startd, held.granted.lease
                    by_startd.setdefault(startd, []).append(claim)
                    shortest[startd] = min(lease, shortest.get(startd, lease))
                due = self._schedule.due(shortest, time.monotonic())
                for startd, claims in by_startd.items():
                    if startd in due:
                        renewals.create_task(self._renew(startd, claims))
                for startd in self._leases.prune(by_startd, self._settings.lease, time.monotonic()):
                    self._queue.live.renewed.pop(startd, None)
                self._releases.retry_releases()
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._granted.wait(), self._schedule.pause(time.monotonic()))
                await asyncio.sleep(_TOGETHER_S)

    async def _renew(self, startd: str, claims: list[str]) -> None:
        answered = await self._compare(startd, claims)
        self._end_expired(startd, claims)
        if self._schedule.over(startd, time.monotonic(), answered=answered):
            self._granted.set()

    async def _compare(self, startd: str, claims: list[str]) -> bool:
        """Whether a startd says which of these claims it has; what follows from that is recorded."""
        reply = await self._alive(startd, claims)
        if reply is not None and reply[0] is None:
            # The first answer had the clock that a renewal must name.
            reply = await self._alive(startd, claims)
        if reply is None:
            times = self._leases.count_missed(startd)
            self._silence.record_missed(claims, times, f"the startd {startd} does not answer")
            return False
        answer = reply[1]
        unknown = set(answer.unknown)
        for claim in claims:
            if claim not in unknown:
                self._silence.record_answer(claim)
                continue
            silent = self._silence.is_disconnected(claim)
            code = VacateCode.ReconnectFailed if silent else VacateCode.ActivationRefusedClaimNotFound
            reason = f"the startd {startd} does not have the claim any more"
            self._ends.lose(claim, ClaimStimulus.NOT_FOUND, Ending(code=code, reason=reason))
        if extra := self._not_held(answer.extra):
            # Beside the renewals, which must go on while the database is away.
            self._tasks.create_task(self._release_unknown(startd, extra))
        return True

    async def _release_unknown(self, startd: str, claims: list[str]) -> None:
        """Give back claims that are not on record, unless a successor of ours may have been granted them."""
        await self._recorder.shard.look()
        listed = [claim for claim in self._not_held(claims) if self._is_released(claim)]
        if listed:
            await self._releases.release(startd, listed, "the claim is not on record")

    def _is_released(self, claim: str) -> bool:
        return ClaimInstruction.RELEASE in self._states.feed(claim, ClaimStimulus.LISTED)

    def _not_held(self, claims: list[str]) -> list[str]:
        return [claim for claim in claims if self._states.state(claim).phase in _NOT_HELD]

    async def _alive(self, startd: str, claims: list[str]) -> tuple[float | None, AliveReply] | None:
        usual = self._settings.lease
        leases = {
            held.granted.lease for claim in claims if (held := self._queue.claims.get(claim)) is not None
        }
        at = self._leases.renew(startd, time.monotonic(), min((usual, *leases)))
        deadline = None if at is None else at + usual
        alive = Alive(
            schedd=self._queue.schedd,
            claims=[self._secrets.key(claim) for claim in claims],
            deadline=deadline,
            at=at if leases - {usual} else None,
        )
        try:
            patience = min(_LONGEST_ANSWER, self._settings.alive_interval / 2, min((usual, *leases)) / 12)
            reply = await self._bus.call(ALIVE, startd, alive, deadline=max(1.0, patience))
        except BusError as error:
            if deadline is not None and isinstance(error, NoResponderError):
                self._leases.not_delivered(startd)
            _log.warning("claims not renewed", extra={"startd": startd, "cause": str(error)})
            return None
        self._leases.record_answer(startd, reply.clock, time.monotonic())
        self._queue.live.renewed[startd] = int(time.time())
        return deadline, reply

    def _end_expired(self, startd: str, claims: list[str]) -> None:
        """End what certainly is dead, after its startd was asked once more."""
        now = time.monotonic()
        for claim in claims:
            held = self._queue.claims.get(claim)
            if held is not None and self._leases.is_over(startd, held.granted.lease, now):
                lease = held.granted.lease
                reason = f"the lease of the claim on {startd} ran out: no contact for {lease:g} s"
                ending = Ending(code=VacateCode.ReconnectFailed, reason=reason)
                self._ends.lose(claim, ClaimStimulus.LEASE_OVER, ending)
