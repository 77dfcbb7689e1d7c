"""
The wall clock of one process, to be turned: `libfaketime` below the process, told by a file what to add.

The monotonic clock stays true, as it does where somebody sets a machine's time.

A process shares what it knows of the time with its children, by a piece of memory and a semaphore that are named after
its number and that only it removes.  What is killed leaves both behind.
"""

import re
from collections.abc import Generator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Final

_LIBRARY: Final = "vendor/libfaketime/src/libfaketime.so.1"
_MEMORY: Final = Path("/dev/shm")  # noqa: S108 - where the C library keeps what processes share
_SHARED: Final = "faketime_shm_"
_SEMAPHORE: Final = "sem.faketime_sem_"
_PROC: Final = Path("/proc")
_MAPPED: Final = re.compile(rf" {_MEMORY}/{_SHARED}(\d+)\b")


class Clock:
    """The clock of one service."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self.turn(0.0)

    def turn(self, seconds: float) -> None:
        """Let the clock be ahead by so many seconds, or behind."""
        stage = self._file.with_suffix(".new")
        stage.write_text(f"{seconds:+.3f}\n", encoding="ascii")
        stage.replace(self._file)

    def environ(self) -> dict[str, str]:
        """What a service has to be started with."""
        return {
            "LD_PRELOAD": str(library()),
            "FAKETIME_TIMESTAMP_FILE": str(self._file),
            "FAKETIME_CACHE_DURATION": "1",  # a look at the file each second, not at each question for the time
            "FAKETIME_DONT_RESET": "1",
            "DONT_FAKE_MONOTONIC": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            "NO_FAKE_STAT": "1",
        }


def library() -> Path | None:
    """The library below the Python package that carries it; None where that is not installed."""
    found = find_spec("libfaketime")
    if found is None or found.origin is None:
        return None
    path = Path(found.origin).parent / _LIBRARY
    return path if path.is_file() else None


@contextmanager
def tidied(memory: Path = _MEMORY) -> Generator[None]:
    """
    At the end, remove what processes that died meanwhile have left behind.

    What somebody else's process left in that time goes as well, and is as little missed: nobody has it open, and a
    process that was told of it makes its own.
    """
    before = _makers(memory)
    try:
        yield
    finally:
        used = _used()
        for pid in _makers(memory) - before:
            if pid not in used and not (_PROC / str(pid)).exists():
                for name in (_SHARED, _SEMAPHORE):
                    (memory / f"{name}{pid}").unlink(missing_ok=True)


def _makers(memory: Path) -> set[int]:
    """The processes, dead or alive, whose memory or semaphore is there."""
    names = {path.name.removeprefix(_SHARED).removeprefix(_SEMAPHORE) for path in memory.glob("*faketime_s*")}
    return {int(name) for name in names if name.isdecimal()}


def _used() -> set[int]:
    """The processes, dead or alive, whose memory a living one uses."""
    found: set[int] = set()
    for maps in _PROC.glob("[0-9]*/maps"):
        with suppress(OSError):  # it has ended, or is not ours and so does not use what is
            found.update(map(int, _MAPPED.findall(maps.read_text(errors="replace"))))
    return found
