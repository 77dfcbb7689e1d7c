"""Progress bars on standard error, for work that takes a while; nothing where no person looks."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Generator

    from kettle_services.cli.output.screen import Screen


class Bar(Protocol):
    """Receives the progress of one of several things."""

    def __call__(self, name: str, done: int, total: int) -> None:
        """`done` of `total`, of the thing of this name."""
        ...


def _nowhere(name: str, done: int, total: int) -> None:
    """Nobody looks."""


def is_watched(screen: Screen) -> bool:
    """Whether a person looks, to whom progress is shown."""
    return not screen.as_json and screen.err.isatty()


@contextmanager
def bars(screen: Screen, unit: str) -> Generator[Bar]:
    """One bar for each name that is updated, as long as the context lasts."""
    if not is_watched(screen):
        yield _nowhere
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TaskID,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn(unit),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(file=screen.err), transient=True) as progress:
        tasks: dict[str, TaskID] = {}

        def show(name: str, done: int, total: int) -> None:
            if name not in tasks:
                tasks[name] = progress.add_task(name, total=total)
            progress.update(tasks[name], completed=done, total=total)

        yield show
