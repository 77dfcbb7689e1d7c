"""What the daemons of a host wrote into their logs, for who reads it there."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import msgspec

LEVELS: Final = ("debug", "info", "warning", "error", "critical")
"""How important a line is, the least first."""
_MOST_BYTES: Final = 4 << 20
"""So much of the end of each file is looked through."""


def files_of(directory: Path) -> dict[str, Path]:
    """The file that each daemon writes, by the daemon's name, as `schedd` or `schedd.ap1`."""
    return {path.name.removesuffix(".log"): path for path in sorted(directory.glob("*.log"))}


class LogLine(msgspec.Struct, frozen=True):
    """One line of a daemon; what is no JSON, such as a traceback, has no time of its own."""

    daemon: str
    fields: Mapping[str, object]

    @property
    def at(self) -> str:
        """Its time as text, which sorts."""
        return str(self.fields.get("ts", ""))

    def least(self, level: str) -> bool:
        """Whether it is at least so important."""
        return LEVELS.index(str(self.fields.get("level", "info"))) >= LEVELS.index(level)


class LogFile:
    """One log, read from near its end on."""

    def __init__(self, path: Path) -> None:
        self.daemon: Final = path.name.removesuffix(".log")
        self._path = path
        self._at = max(0, path.stat().st_size - _MOST_BYTES)
        self._last = ""

    def more(self) -> Iterator[LogLine]:
        """What was added since the last call; a file that was put aside begins again."""
        size = self._path.stat().st_size
        with self._path.open("rb") as file:
            file.seek(self._at if self._at <= size else 0)
            data = file.read()
            self._at = file.tell()
        if data and not data.endswith(b"\n"):
            rest = data.rpartition(b"\n")[2]
            self._at -= len(rest)
            data = data[: len(data) - len(rest)]
        for line in data.decode(errors="replace").splitlines():
            fields = _fields(line)
            self._last = str(fields.setdefault("ts", self._last))
            yield LogLine(self.daemon, fields)


def _fields(line: str) -> dict[str, object]:
    try:
        fields = msgspec.json.decode(line, type=dict[str, object])
    except msgspec.MsgspecError:
        return {"line": line}
    return fields if str(fields.get("level", "info")) in LEVELS else {**fields, "level": "info"}
