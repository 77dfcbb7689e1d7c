"""How a run goes on, for the person who waits: a bar with counts on a terminal, lines elsewhere."""

import asyncio
from collections.abc import Sequence
from types import TracebackType
from typing import Final, Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from kettle.testing.chaos.liveness import Pulse
from kettle.testing.chaos.nemesis import Outcome
from kettle.testing.chaos.plan import Plan
from kettle.testing.chaos.schedule import Fault
from kettle.testing.chaos.workload import Workload

_REFRESH_S: Final = 0.25


class Silent:
    """Who does not want to know."""

    def phase(self, what: str) -> None:
        """Something else begins."""

    def planned(self, faults: Sequence[Fault]) -> None:
        """These are to be made."""

    def fault(self, outcome: Outcome) -> None:
        """A fault is over."""

    def watching(self, pulse: Pulse, workload: Workload) -> None:
        """These have counts to show."""


class Screen:
    """Told by a run what happens."""

    def __init__(self, console: Console, plan: Plan) -> None:
        self._console = console
        self._plan = plan
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.completed}{task.fields[of]} faults"),
            TimeElapsedColumn(),
            TextColumn("{task.fields[counts]}"),
            console=console,
            disable=not console.is_terminal,
        )
        self._bar = self._progress.add_task("", total=None, counts="", of="")
        self._counting: asyncio.Task[None] | None = None

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()

    def phase(self, what: str) -> None:
        """Something else begins."""
        self._progress.update(self._bar, description=what)
        if not self._console.is_terminal:
            self._console.print(what, markup=False)

    def planned(self, faults: Sequence[Fault]) -> None:
        """These are to be made."""
        self._progress.update(self._bar, total=len(faults), of=f"/{len(faults)}")

    def fault(self, outcome: Outcome) -> None:
        """A fault is over."""
        fault, took = outcome.fault, outcome.recovered_seconds
        if outcome.skipped:
            end = f"skipped: {outcome.skipped}"
        else:
            end = f"{outcome.done}; " + (
                "DID NOT WORK AGAIN" if took is None else f"worked again after {took:.2f} s"
            )
        lasted = f" for {fault.seconds:.1f} s" if fault.seconds else ""
        self._progress.console.print(
            f"{fault.number:4} {fault.at:7.1f} s  {fault.kind} {fault.target}{lasted}: {end}",
            markup=False,
            highlight=False,
            soft_wrap=True,
        )
        self._progress.advance(self._bar)

    def watching(self, pulse: Pulse, workload: Workload) -> None:
        """These have counts to show."""
        if self._console.is_terminal:
            self._counting = asyncio.ensure_future(self._count(pulse, workload))

    async def _count(self, pulse: Pulse, workload: Workload) -> None:
        while True:
            seen = pulse.seen
            counts = f"{workload.ledger.acknowledged} jobs, {seen['JobCompleted']} completed, {pulse.queued} in the queue"
            self._progress.update(self._bar, counts=counts)
            await asyncio.sleep(_REFRESH_S)
