"""
Commands that ask a simulated pool: the questions are those for a real one, and the answers come from files.
"""

import argparse
import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, Final, TypeVar, cast

from kettle.archive import ArchiveError
from kettle.bus.ports import Bus, RefusedError, Rep, Req
from kettle.client import Client, PoolFile
from kettle.client.connections.transport import TRY_S, Waiting
from kettle.client.errors import CommandRefusedError
from kettle_services.cli.errors import CommandError, UsageError
from kettle_services.cli.times import span
from kettle_services.simulator.checked_file import CheckedFile
from kettle_services.simulator.invented.period_of_workload import SCHEDD
from kettle_services.simulator.recorded.answers import RecordedAnswers
from kettle_services.simulator.recorded.pool_then import pool_then
from kettle_services.simulator.results.run_description import FILE, RunDescriptionError, described
from kettle_services.simulator.simulation_file import rules_of
from kettle_wire.codes import RefusalCode
from kettle_wire.endpoint import Endpoint

T = TypeVar("T")

_NOBODY: Final = PoolFile(pool="simulated", nats_url="", schedd=SCHEDD)


class RecordedTransport:
    """A `Transport` without a pool behind it."""

    def __init__(self, answers: RecordedAnswers) -> None:
        self.waiting: Waiting | None = None
        self._answers = answers

    @property
    def patience(self) -> float:
        """See `Transport.patience`: an answer is there or is not."""
        return 0.0

    async def token(self) -> str:
        """See `Transport.token`: nobody asks for one."""
        return ""

    async def call(
        self,
        endpoint: Endpoint[Req, Rep],
        name: str,
        request: Req,
        *,
        patience: float | None = None,
        deadline: float = TRY_S,
        absent: float | None = None,
    ) -> Rep:
        """See `Transport.call`."""
        del endpoint, name, patience, deadline, absent
        try:
            return cast("Rep", await self._answers.answer(request))
        except RefusedError as error:
            raise CommandRefusedError(error.code, str(error)) from error

    async def connection(self) -> Bus | None:
        """See `Transport.connection`: nothing more will ever happen in this pool."""
        raise CommandRefusedError(RefusalCode.REFUSED, "a simulated pool can be asked, and not followed")


def with_recorded(arguments: argparse.Namespace, work: Callable[[Client], Coroutine[Any, Any, T]]) -> T:
    """
    What a simulated pool answers; when that was is then in `arguments.recorded_at`, in seconds.

    Raises:
        UsageError: the moment is none.
        CommandError: the directory has no events of a simulated pool.
    """
    directory: Path = arguments.simulated
    at = _moment(arguments.at)

    async def ask() -> T:
        said = described(directory).rules
        rules = rules_of(CheckedFile(directory / FILE, RunDescriptionError), said)
        pool = await pool_then(directory, rules, at)
        arguments.recorded_at = pool.now
        return await work(Client(RecordedTransport(RecordedAnswers(pool)), _NOBODY))

    try:
        return asyncio.run(ask())
    except (ArchiveError, RunDescriptionError) as error:
        raise CommandError(str(error)) from error


def _moment(text: str) -> int | None:
    """Microseconds since the simulation began; None: its end."""
    if not text:
        return None
    try:
        return round(span(text) * 1e6)
    except ValueError as error:
        raise UsageError(f"--at: {error}") from error
