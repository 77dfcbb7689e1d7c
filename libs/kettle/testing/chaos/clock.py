"""
The wall clock of one process, to be turned: `libfaketime` below the process, told by a file what to add.

The monotonic clock stays true, as it does where somebody sets a machine's time.
"""

from importlib.util import find_spec
from pathlib import Path
from typing import Final

_LIBRARY: Final = "vendor/libfaketime/src/libfaketime.so.1"


class Clock:
    """
    The clock of one service.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self.turn(0.0)

    def turn(self, seconds: float) -> None:
        """
        Let the clock be ahead by so many seconds, or behind.
        """
        stage = self._file.with_suffix(".new")
        stage.write_text(f"{seconds:+.3f}\n", encoding="ascii")
        stage.replace(self._file)

    def environ(self) -> dict[str, str]:
        """
        What a service has to be started with.
        """
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
    """
    The library below the Python package that carries it; None where that is not installed.
    """
    found = find_spec("libfaketime")
    if found is None or found.origin is None:
        return None
    path = Path(found.origin).parent / _LIBRARY
    return path if path.is_file() else None
