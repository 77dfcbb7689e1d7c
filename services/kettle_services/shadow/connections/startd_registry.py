"""The startds on which jobs of this shadow run."""

import asyncio
from collections.abc import AsyncIterator, Generator
from contextlib import contextmanager
from functools import partial
from typing import Final

from kettle.bus.ports import Asks
from kettle_services.shadow.connections.startd import StartdMessages
from kettle_services.shadow.file_transfer.output_files import PIECE, Fetch
from kettle_services.shadow.settings import ShadowSettings
from kettle_wire.attempts import Ending
from kettle_wire.commands.shadow import Assignment
from kettle_wire.commands.startd import (
    DEACTIVATE,
    FETCH_OUTPUT,
    SUSPEND,
    Deactivate,
    Deactivation,
    FetchOutput,
    Piece,
    Suspend,
    Suspension,
)
from kettle_wire.worker_reports import OutputFile

_DEADLINE_S: Final = 10.0
"""Seconds for a piece of an output file."""


class StartdRegistry:
    """
    One conversation for each startd that is spoken with; it ends with the last attempt and its confirmations.
    """

    def __init__(self, bus: Asks, settings: ShadowSettings, tasks: asyncio.TaskGroup) -> None:
        self._bus = bus
        self._settings = settings
        self._tasks = tasks
        self._workers: dict[str, tuple[StartdMessages, asyncio.Task[None]]] = {}

    def __len__(self) -> int:
        return len(self._workers)

    def __getitem__(self, startd: str) -> StartdMessages:
        """
        The conversation with a startd. It ends by itself: say something before the next await, or be a user of it.
        """
        known = self._workers.get(startd)
        if known is None:
            worker = StartdMessages(self._bus, startd, self._settings)
            task = self._tasks.create_task(self._converse(startd, worker), name=f"worker {startd}")
            known = self._workers[startd] = (worker, task)
        return known[0]

    async def _converse(self, startd: str, worker: StartdMessages) -> None:
        try:
            await worker.run()
        finally:  # no await since it found itself idle: nobody has spoken meanwhile
            self._workers.pop(startd, None)

    @contextmanager
    def used(self, startd: str) -> Generator[StartdMessages]:
        """The conversation with a startd, for as long as the context lasts."""
        worker = self[startd]
        worker.users += 1
        try:
            yield worker
        finally:
            worker.leave()

    def came_back(self, startd: str) -> None:
        """A startd has restarted: unanswered requests are sent again at once."""
        if startd in self._workers:
            self._workers[startd][0].peer.came_back()

    def close(self) -> None:
        """Say nothing more."""
        for _, task in self._workers.values():
            task.cancel()

    async def deactivate(self, assignment: Assignment, ending: Ending, *, hard: bool = False) -> None:
        """
        End an attempt, with `hard` without a soft signal; its final report says when it has ended. Raises RefusedError.
        """
        order = Deactivation(
            key=assignment.key,
            job=assignment.job,
            attempt=assignment.attempt,
            ending=ending,
            hard=hard,
        )
        message = Deactivate(attempts=[order])
        deadline = self._settings.call_deadline
        ask = partial(self._bus.call, DEACTIVATE, assignment.startd, message, deadline=deadline)
        with self.used(assignment.startd) as worker:
            await worker.peer.ask(f"end of {assignment.job} on {assignment.startd}", ask)

    async def suspend(self, assignment: Assignment, *, suspended: bool, number: int) -> None:
        """Suspend an attempt, or continue it; its reports say when that is done. Raises RefusedError."""
        order = Suspension(
            key=assignment.key,
            job=assignment.job,
            attempt=assignment.attempt,
            suspended=suspended,
            number=number,
        )
        deadline = self._settings.call_deadline
        ask = partial(self._bus.call, SUSPEND, assignment.startd, Suspend(orders=[order]), deadline=deadline)
        with self.used(assignment.startd) as worker:
            await worker.peer.ask(f"suspension of {assignment.job} on {assignment.startd}", ask)

    def fetcher(self, assignment: Assignment) -> Fetch:
        """
        Reads the large output files of an attempt; ValueError if one has not the bytes that were reported.
        """

        async def fetch(file: OutputFile) -> AsyncIterator[bytes]:
            for offset in range(0, file.size, PIECE):
                length = min(PIECE, file.size - offset)
                request = FetchOutput(
                    key=assignment.key,
                    job=assignment.job,
                    attempt=assignment.attempt,
                    name=file.name,
                    offset=offset,
                    length=length,
                )
                piece = await self._piece(assignment, request)
                if len(piece.data) != length:
                    raise ValueError(f"{file.name} has fewer bytes than the worker reported")
                yield piece.data

        return fetch

    async def _piece(self, assignment: Assignment, request: FetchOutput) -> Piece:
        ask = partial(self._bus.call, FETCH_OUTPUT, assignment.startd, request, deadline=_DEADLINE_S)
        with self.used(assignment.startd) as worker:
            return await worker.peer.ask(f"output {request.name} of {assignment.job}", ask)
