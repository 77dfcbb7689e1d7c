"""Evaluates the owner's policy for every slot repeatedly, and carries out the draining of the machine."""

import asyncio
from collections.abc import Callable, Sequence

from kettle_services.startd.advertiser import Advertiser
from kettle_services.startd.domain.policy import draining, evaluation
from kettle_services.startd.domain.state.changes import Change
from kettle_services.startd.domain.state.claim import DrainInForce, Now
from kettle_services.startd.domain.state.machine import Machine
from kettle_services.startd.policy.backfill import Backfilling
from kettle_services.startd.policy.load_and_keyboard import Observer


class PolicyEvaluator:
    """Decides by the clock what nobody asks for; `record` has it happen."""

    def __init__(
        self,
        machine: Machine,
        record: Callable[[Sequence[Change]], None],
        moment: Callable[[], Now],
        advertiser: Advertiser,
        observer: Observer,
        backfilling: Backfilling,
        *,
        interval: float,
        ends: float,
    ) -> None:
        """
        `interval`: seconds between two looks; `ends`: seconds since boot at which the machine goes, 0: it stays.
        """
        self._ends = ends
        self._machine = machine
        self._record = record
        self._moment = moment
        self._advertiser = advertiser
        self._observer = observer
        self._backfilling = backfilling
        self._interval = interval
        self._wake = asyncio.Event()

    async def evaluate_forever(self) -> None:
        """Evaluate the policy repeatedly; never returns."""
        while True:
            self._wake.clear()
            self.evaluate_policy()
            try:
                async with asyncio.timeout(self._interval):
                    await self._wake.wait()
            except TimeoutError:
                pass  # it is time to look

    def wake(self) -> None:
        """Something has happened that others have waited for: look soon."""
        self._wake.set()

    def evaluate_policy(self) -> None:
        """Do what the policy wants of the slots now."""
        now, machine = self._moment(), self._machine
        running = [claim.attempt.pid for claim in machine.claims.values() if claim.attempt is not None]
        machine.conditions = self._observer.observe([*running, *self._backfilling.pids.values()], now)
        if self._ends:
            machine.conditions |= {"TimeToLive": max(0, int(self._ends - now.clock))}
        owned = evaluation.owned(machine, now)
        if owned != machine.owned:
            machine.owned, machine.changed = owned, now.time
            self._advertiser.now()
        self._record(evaluation.evaluate(machine, now))
        self._record(draining.proceed(machine, now))
        self._backfilling.evaluate()

    def drain(self, wish: DrainInForce, check: str = "") -> None:
        """
        Begin to empty the machine.

        Raises:
            DrainRefused: it is drained as fast already, or a slot does not meet `check`.
        """
        self._record(draining.begin(self._machine, wish, check, self._moment()))

    def cancel(self, request: str) -> None:
        """
        Take the machine into use again.

        Raises:
            DrainRefused: it is not being drained, or not by that request.
        """
        self._record(draining.cancel(self._machine, request, self._moment()))
