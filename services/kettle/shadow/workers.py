"""
Talking to startds: one conversation with each, in which activations and confirmations share messages.

While one message is under way the next collects; so a busy machine costs few messages, and an idle one no wait.
"""

import asyncio
import logging
from collections.abc import AsyncIterator
from functools import partial
from typing import Final

from kettle.bus.ports import Bus, BusError, RefusedError
from kettle.shadow.outputs import PIECE, Fetch
from kettle.shadow.retry import Peer
from kettle.shadow.settings import ShadowSettings
from kettle.wire.commands.shadow import Assignment
from kettle.wire.commands.startd import (
    ACTIVATE,
    CONFIRM,
    DEACTIVATE,
    FETCH_OUTPUT,
    Activate,
    Activation,
    ActivationResult,
    Confirm,
    Deactivate,
    Deactivation,
    FetchOutput,
)
from kettle.wire.work import OutputFile, ReportKey

_log: Final = logging.getLogger(__name__)
_BATCH: Final = 64


class Worker:
    """The conversation with one startd."""

    def __init__(self, bus: Bus, startd: str, settings: ShadowSettings) -> None:
        self._bus = bus
        self._startd = startd
        self._settings = settings
        self.peer: Final = Peer(settings)
        self._activations: list[tuple[Activation, asyncio.Future[ActivationResult]]] = []
        self._recorded: list[ReportKey] = []
        self._urgent = asyncio.Event()
        self._filled = asyncio.Event()

    async def activate(self, activation: Activation) -> ActivationResult:
        """Have an attempt started; waits as long as it takes the startd to answer."""
        future: asyncio.Future[ActivationResult] = asyncio.get_running_loop().create_future()
        self._activations.append((activation, future))
        self._filled.set()
        self._urgent.set()
        return await future

    def confirm(self, report: ReportKey) -> None:
        """Let the worker forget a report, with the next message to it."""
        self._recorded.append(report)
        self._filled.set()

    async def run(self) -> None:
        """Send what collects; for ever."""
        while True:
            await self._filled.wait()
            if not self._urgent.is_set():
                await self._linger()
            batch, self._activations = self._activations[:_BATCH], self._activations[_BATCH:]
            recorded, self._recorded = self._recorded, []
            if not self._activations:
                self._filled.clear()
                self._urgent.clear()
            await self._send([b for b in batch if not b[1].done()], recorded)

    async def _linger(self) -> None:
        try:
            async with asyncio.timeout(self._settings.confirm_delay):
                await self._urgent.wait()
        except TimeoutError:
            pass  # no activation came along: the confirmations go alone

    async def _send(
        self, batch: list[tuple[Activation, asyncio.Future[ActivationResult]]], recorded: list[ReportKey]
    ) -> None:
        if not batch:
            if recorded:
                await self._confirm(recorded)
            return
        message = Activate(activations=[activation for activation, _ in batch], recorded=recorded)
        deadline = self._settings.call_deadline
        try:
            ask = partial(self._bus.call, ACTIVATE, self._startd, message, deadline=deadline)
            reply = await self.peer.ask(f"activation on {self._startd}", ask)
        except RefusedError as refusal:
            for _, future in batch:
                if not future.done():
                    future.set_exception(refusal)
            return
        for (_, future), result in zip(batch, reply.results, strict=True):
            if not future.done():
                future.set_result(result)

    async def _confirm(self, recorded: list[ReportKey]) -> None:
        try:
            deadline = self._settings.call_deadline
            await self._bus.call(CONFIRM, self._startd, Confirm(recorded=recorded), deadline=deadline)
        except BusError as error:  # the worker will repeat its reports, and is told again then
            _log.info("not confirmed", extra={"startd": self._startd, "cause": str(error)})


class Workers:
    """The startds on which jobs of this shadow run."""

    def __init__(self, bus: Bus, settings: ShadowSettings, tasks: asyncio.TaskGroup) -> None:
        self._bus = bus
        self._settings = settings
        self._tasks = tasks
        self._workers: dict[str, Worker] = {}
        self._loops: list[asyncio.Task[None]] = []

    def __getitem__(self, startd: str) -> Worker:
        worker = self._workers.get(startd)
        if worker is None:
            worker = self._workers[startd] = Worker(self._bus, startd, self._settings)
            self._loops.append(self._tasks.create_task(worker.run(), name=f"worker {startd}"))
        return worker

    def came_back(self, startd: str) -> None:
        """
        A startd has started anew: what it was asked and has not answered is asked again at once.
        """
        if startd in self._workers:
            self._workers[startd].peer.came_back()

    def close(self) -> None:
        """Say nothing more."""
        for loop in self._loops:
            loop.cancel()

    async def deactivate(self, assignment: Assignment, code: int, reason: str) -> None:
        """Have an attempt ended; its final report tells when it is."""
        order = Deactivation(
            key=assignment.key, job=assignment.job, attempt=assignment.attempt, code=code, reason=reason
        )
        message = Deactivate(attempts=[order])
        deadline = self._settings.call_deadline
        ask = partial(self._bus.call, DEACTIVATE, assignment.startd, message, deadline=deadline)
        await self[assignment.startd].peer.ask(f"end of {assignment.job} on {assignment.startd}", ask)

    def fetcher(self, assignment: Assignment) -> Fetch:
        """Reads the large output files of an attempt."""

        async def fetch(file: OutputFile) -> AsyncIterator[bytes]:
            for offset in range(0, file.size, PIECE):
                request = FetchOutput(
                    key=assignment.key,
                    job=assignment.job,
                    attempt=assignment.attempt,
                    name=file.name,
                    offset=offset,
                    length=PIECE,
                )
                ask = partial(self._bus.call, FETCH_OUTPUT, assignment.startd, request)
                worker = self[assignment.startd].peer
                piece = await worker.ask(f"output {file.name} of {assignment.job}", ask)
                yield piece.data

        return fetch
