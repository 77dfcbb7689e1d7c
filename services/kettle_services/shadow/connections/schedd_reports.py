"""Telling the schedd what happened, in order: while one message is under way the next collects."""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Final

from kettle.bus.ports import Bus, RefusedError
from kettle_services.shadow.connections.retry import Peer
from kettle_services.shadow.settings import ShadowSettings
from kettle_wire.commands.attempt_reports import REPORT, AttemptReport, AttemptsRecorded, ReportAttempts
from kettle_wire.commands.shadow import Assignment

_log: Final = logging.getLogger(__name__)
_BATCH: Final = 500
"""
Reports in one message; a reason has a few kilobytes at most, so that this is far below what a message holds.
"""


class ScheddReporter:
    """
    The line to the schedd. What it returns in exchange, the next jobs for freed claims, goes to `start`.
    """

    def __init__(self, bus: Bus, settings: ShadowSettings, start: Callable[[Assignment], None]) -> None:
        self._bus = bus
        self._settings = settings
        self._start = start
        self._waiting: deque[tuple[AttemptReport, asyncio.Future[None]]] = deque()
        self._filled = asyncio.Event()
        self._most = _BATCH
        self.schedd: Final = Peer(settings)

    def queue_report(self, report: AttemptReport) -> asyncio.Future[None]:
        """Queue a report; the future is done when it is recorded."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((report, future))
        self._filled.set()
        return future

    async def send_reports(self) -> None:
        """Send collected reports; never returns."""
        while True:
            await self._filled.wait()
            batch = [self._waiting.popleft() for _ in range(min(self._most, len(self._waiting)))]
            try:
                recorded = await self._send([report for report, _ in batch])
            except RefusedError as refusal:
                await self._refused(batch, refusal)
                continue
            self._most = _BATCH
            if not self._waiting:
                self._filled.clear()
            for assignment in recorded.start:
                self._start(assignment)
            for _, future in batch:
                if not future.done():
                    future.set_result(None)

    async def _refused(
        self, batch: list[tuple[AttemptReport, asyncio.Future[None]]], refusal: RefusedError
    ) -> None:
        """
        What happened does not become untrue by a refusal: fewer at a time, and what is refused alone goes last.
        """
        _log.error("the schedd refuses reports", extra={"cause": str(refusal), "reports": len(batch)})
        if len(batch) > 1:
            self._waiting.extendleft(reversed(batch))
            self._most = max(1, len(batch) // 2)
            return
        self._waiting.extend(batch)
        await self.schedd.wait_after_refusal()

    async def _send(self, reports: list[AttemptReport]) -> AttemptsRecorded:
        settings = self._settings
        message = ReportAttempts(shadow=settings.name, reports=reports)

        def ask() -> Awaitable[AttemptsRecorded]:
            return self._bus.call(REPORT, settings.schedd, message, deadline=settings.call_deadline)

        return await self.schedd.ask("report to the schedd", ask)
