"""
What demonstrations have in common: a pool that is thrown away, the audit of its log, and what is said meanwhile.
"""

import shutil
import tempfile
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from kettle import pool
from kettle.client import Progress
from kettle.runtime import make_lifeline
from kettle_services.cli.commands.wait import Bar
from kettle_services.cli.log.audit import audit
from kettle_services.cli.output.screen import Screen


class DemonstrationPool(msgspec.Struct, frozen=True):
    """Where a demonstration takes place."""

    place: Path
    """The directory of all its files."""
    lifeline_fd: int
    """Ends when this program does; what is started with it ends then, too."""

    @property
    def home(self) -> Path:
        """The directory of the pool."""
        return self.place / "pool"

    def up(self, screen: Screen, settings: Mapping[str, Mapping[str, Any]]) -> None:
        """
        Start the pool, which is thrown away.

        Raises:
            StartFailedError: the pool did not come up.
        """
        tables = {name: dict(table) for name, table in settings.items()}
        tables["master"] = {"throwaway": True, **tables.get("master", {})}
        pool.up(
            self.home,
            settings=tables,
            progress=lambda text: aside(screen, text),
            lifeline_fd=self.lifeline_fd,
        )


@contextmanager
def demonstration_pool(screen: Screen, *, keep: bool) -> Generator[DemonstrationPool]:
    """
    A place for a pool, until the context ends: then the pool is down, and its files are gone unless somebody wants to `keep` them.
    """
    made = Path(tempfile.mkdtemp(prefix="kettle-demo-"))
    lifeline = make_lifeline()
    shown = DemonstrationPool(made, lifeline.read_fd)
    try:
        yield shown
    finally:
        pool.down(shown.home, purge=not keep)
        lifeline.close()
        if keep:
            screen.note(f"Left for a look: {made}")
        else:
            shutil.rmtree(made, ignore_errors=True)


async def audited(home: Path) -> tuple[bool, int]:
    """Whether the log of a pool is clean, and how many frames it has."""
    report = await audit(home)
    return report.clean, sum(shard.frames for shard in report.shards)


def say(screen: Screen, text: str) -> None:
    """A line, at once; nothing where a program listens."""
    if not screen.as_json:
        screen.say(text)
        screen.flush()


def aside(screen: Screen, text: str) -> None:
    """What goes on meanwhile, on a terminal."""
    if screen.terminal:
        say(screen, screen.paint(f"  {text} ...", "dim"))


def title(screen: Screen, text: str) -> None:
    """What comes next."""
    say(screen, "")
    say(screen, screen.paint(text, "strong"))


@contextmanager
def meter(screen: Screen, jobs: int) -> Generator[Callable[[Progress], None]]:
    """A bar on a terminal, a line for each quarter off it."""
    if screen.terminal:
        with Bar() as bar:
            yield bar
    else:
        yield _Quarters(screen, jobs)


class _Quarters:
    """Progress for a log file."""

    def __init__(self, screen: Screen, jobs: int) -> None:
        self._screen = screen
        self._jobs = jobs
        self._told = 0

    def __call__(self, progress: Progress) -> None:
        if (quarter := 4 * progress.done // self._jobs) > self._told:
            self._told = quarter
            say(self._screen, f"  {progress.done} of {self._jobs} done")
