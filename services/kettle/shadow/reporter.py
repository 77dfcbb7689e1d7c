"""Telling the schedd what happened, in order: while one message is under way the next collects."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from kettle.bus.ports import Bus
from kettle.shadow.retry import Peer
from kettle.shadow.settings import ShadowSettings
from kettle.wire.commands.schedd import REPORT, AttemptReport, AttemptsRecorded, ReportAttempts
from kettle.wire.commands.shadow import Assignment


class Reporter:
    """The line to the schedd. What it returns in exchange, the next jobs for freed claims, goes to `start`."""

    def __init__(self, bus: Bus, settings: ShadowSettings, start: Callable[[Assignment], None]) -> None:
        self._bus = bus
        self._settings = settings
        self._start = start
        self._waiting: list[tuple[AttemptReport, asyncio.Future[None]]] = []
        self._filled = asyncio.Event()
        self.schedd: Final = Peer(settings)

    def tell(self, report: AttemptReport) -> "asyncio.Future[None]":
        """Queue a report; the future is done when it is recorded."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((report, future))
        self._filled.set()
        return future

    async def run(self) -> None:
        """Send what collects; for ever."""
        while True:
            await self._filled.wait()
            self._filled.clear()
            batch, self._waiting = self._waiting, []
            recorded = await self._send([report for report, _ in batch])
            for assignment in recorded.start:
                self._start(assignment)
            for _, future in batch:
                if not future.done():
                    future.set_result(None)

    async def _send(self, reports: list[AttemptReport]) -> AttemptsRecorded:
        settings = self._settings
        message = ReportAttempts(shadow=settings.name, reports=reports)

        def ask() -> Awaitable[AttemptsRecorded]:
            return self._bus.call(REPORT, settings.schedd, message, deadline=settings.call_deadline)

        return await self.schedd.ask("report to the schedd", ask)
