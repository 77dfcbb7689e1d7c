"""The last log lines of a service, for a person who wants to know why something did not start."""

from pathlib import Path
from typing import Final

import msgspec

_TAIL_LINES: Final = 15
_TAIL_BYTES: Final = 1 << 16


def log_tail(log: Path, after: int) -> str:
    """
    The last lines that were written after the offset, the fields of JSON lines that a person wants first.
    """
    try:
        with log.open("rb") as file:
            end = file.seek(0, 2)
            # a log that was put aside begins again
            file.seek(max(after if after <= end else 0, end - _TAIL_BYTES))
            lines = file.read().decode(errors="replace").splitlines()
    except OSError:
        return ""
    return "\n".join(_readable(line) for line in lines[-_TAIL_LINES:])


def _readable(line: str) -> str:
    try:
        entry = msgspec.json.decode(line, type=dict[str, object])
    except msgspec.DecodeError:
        return line
    return f"{entry.get('level', '')}: {entry.get('role', '')}: {entry.get('msg', line)}"
