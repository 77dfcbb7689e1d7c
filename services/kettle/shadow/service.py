"""The shadow's list of attempts, kept equal to what its schedd has recorded."""

import asyncio
import logging
import time
from typing import Final

import msgspec

from kettle.bus.ports import Bus, BusError, RefusedError
from kettle.runtime import Telemetry
from kettle.shadow.attempt import Attempt
from kettle.shadow.inputs import Inputs, read_piece
from kettle.shadow.reporter import Reporter
from kettle.shadow.settings import ShadowSettings
from kettle.shadow.workers import Workers
from kettle.wire.commands import schedd
from kettle.wire.commands.schedd import SYNC, ShadowOrders, ShadowSync
from kettle.wire.commands.shadow import Assignment, FetchInput, LookAfter, Stop
from kettle.wire.commands.startd import Done, Piece
from kettle.wire.identity import Identity
from kettle.wire.jobs import JobId
from kettle.wire.subjects import Subjects
from kettle.wire.work import Exited, Failed, Report, ReportKey, Reports

_log: Final = logging.getLogger(__name__)
_decode: Final = msgspec.msgpack.Decoder(Reports).decode
_STRAYS: Final = 10_000


class Shadow:
    """All attempts that this process looks after."""

    def __init__(
        self,
        bus: Bus,
        subjects: Subjects,
        settings: ShadowSettings,
        tasks: asyncio.TaskGroup,
        telemetry: Telemetry,
    ) -> None:
        self._bus = bus
        self._subjects = subjects
        self._settings = settings
        self._tasks = tasks
        self._telemetry = telemetry
        self._workers = Workers(bus, settings, tasks)
        self._inputs = Inputs(inline_bytes=settings.inline_bytes, cache_bytes=settings.cache_bytes)
        self.reporter = Reporter(bus, settings, self.start)
        self._attempts: dict[JobId, tuple[Attempt, asyncio.Task[None]]] = {}
        self._strays: dict[ReportKey, tuple[str, Report]] = {}
        self._sync = asyncio.Event()
        telemetry.gauge(
            "kettle.shadow.attempts",
            lambda: float(len(self._attempts)),
            unit="{attempt}",
            description="Attempts looked after",
        )

    # -- orders -------------------------------------------------------------------------------------------------------

    async def look_after(self, request: LookAfter, caller: Identity) -> Done:
        """The schedd hands over, or takes back."""
        if caller.name != "schedd":
            raise RefusedError("denied", f"only a schedd may say this, not {caller.name}")
        for assignment in request.start:
            self.start(assignment)
        for stop in request.stop:
            self._stop(stop)
        return Done()

    def start(self, assignment: Assignment) -> None:
        """Look after an attempt; one that is looked after already changes nothing."""
        known = self._attempts.get(assignment.job)
        if known is not None:
            if known[0].assignment.attempt >= assignment.attempt:
                return
            known[1].cancel()
        attempt = Attempt(assignment, self._settings.name, self._inputs, self._workers, self.reporter)
        task = self._tasks.create_task(self._follow(attempt), name=f"job {assignment.job}")
        self._attempts[assignment.job] = (attempt, task)
        task.add_done_callback(lambda _: self._over(assignment.job, attempt))

    async def _follow(self, attempt: Attempt) -> None:
        assignment = attempt.assignment
        with self._telemetry.span(
            "shadow.attempt",
            parent={"traceparent": assignment.trace},
            job=str(assignment.job),
            attempt=assignment.attempt,
            slot=assignment.slot,
        ):
            await attempt.run()

    def _over(self, job: JobId, attempt: Attempt) -> None:
        known = self._attempts.get(job)
        if known is not None and known[0] is attempt:
            del self._attempts[job]

    def _stop(self, stop: Stop) -> None:
        known = self._attempts.get(stop.job)
        if known is not None and known[0].assignment.attempt == stop.attempt:
            deactivating = self._workers.deactivate(known[0].assignment, stop.code, stop.reason)
            self._tasks.create_task(deactivating, name=f"stop {stop.job}")

    async def fetch_input(self, request: FetchInput, caller: Identity) -> Piece:
        """A worker reads an input file."""
        known = self._attempts.get(request.job)
        path = (
            known[0].source(request.key.secret, request.name) if caller.name == "startd" and known else None
        )
        if path is None:
            raise RefusedError("not_found", f"job {request.job} has no input file {request.name} for you")
        try:
            return Piece(await asyncio.to_thread(read_piece, path, request.offset, request.length))
        except OSError as error:
            raise RefusedError("unreadable", f"reading {path} failed: {error.strerror}") from error

    def close(self) -> None:
        """Look after nothing more: the attempts go on, and whoever asks the schedd next takes them over."""
        for _, task in self._attempts.values():
            task.cancel()
        self._workers.close()

    # -- the worker's reports ----------------------------------------------------------------------------------------

    async def listen(self) -> None:
        """
        Follow what the workers say; for ever.

        A batch is acknowledged at once: what a job's end depends on, its worker repeats until it is confirmed.
        """
        subject = self._subjects.work_of(self._settings.schedd)
        durable = f"shadow-{self._settings.schedd}"
        async for batch in self._bus.consume(self._subjects.work_stream, durable, subject=subject):
            for message in batch.messages:
                reports = _decode(message.data)
                for report in reports.reports:
                    self._hear(reports.startd, report)
            await batch.ack()

    def _hear(self, startd: str, report: Report) -> None:
        known = self._attempts.get(report.job)
        if known is not None and known[0].assignment.attempt == report.attempt:
            known[0].hear(report)
        elif isinstance(report.body, Exited | Failed) and len(self._strays) < _STRAYS:
            self._strays[report.key] = (startd, report)
            self._sync.set()

    # -- the full exchange -------------------------------------------------------------------------------------------

    async def keep_in_step(self) -> None:
        """Compare lists with the schedd, now and then and whenever there is a reason; for ever."""
        while True:
            self._sync.clear()
            interval = await self._exchange()
            try:
                async with asyncio.timeout(interval):
                    await self._sync.wait()
            except TimeoutError:
                pass  # the interval has passed

    def schedd_came_back(self) -> None:
        """
        The schedd has started anew: it may have forgotten what it was asked, and lists are to be compared.
        """
        self.reporter.schedd.came_back()
        self._sync.set()

    def startd_came_back(self, startd: str) -> None:
        """
        A startd has started anew.
        """
        self._workers.came_back(startd)

    async def _exchange(self) -> float:
        listed = [
            schedd.Attempt(attempt.assignment.job, attempt.assignment.attempt)
            for attempt, _ in self._attempts.values()
        ]
        strays, began = dict(self._strays), time.monotonic()
        request = ShadowSync(shadow=self._settings.name, attempts=listed)
        try:
            orders = await self._bus.call(
                SYNC, self._settings.schedd, request, deadline=self._settings.call_deadline
            )
        except BusError as error:
            _log.info("schedd not reached", extra={"cause": str(error), "after_s": time.monotonic() - began})
            return self._settings.retry
        self._obey(orders)
        self._settle(strays)
        return orders.sync_interval

    def _obey(self, orders: ShadowOrders) -> None:
        for assignment in orders.start:
            self.start(assignment)
        for stop in orders.stop:
            self._stop(stop)
        for over in orders.forget:
            known = self._attempts.get(over.job)
            if known is not None and known[0].assignment.attempt == over.attempt:
                known[1].cancel()

    def _settle(self, strays: dict[ReportKey, tuple[str, Report]]) -> None:
        """Reports about attempts that were not known: they belong to one that is now, or to none that is on record."""
        for key, (startd, report) in strays.items():
            del self._strays[key]
            known = self._attempts.get(report.job)
            if known is not None and known[0].assignment.attempt == report.attempt:
                known[0].hear(report)
            else:
                self._workers[startd].confirm(key)
