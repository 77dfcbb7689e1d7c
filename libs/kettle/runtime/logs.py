"""
Structured logging on the standard library: one JSON object per line off a terminal, coloured text on one.

Fields are passed as `extra`; whatever looks like a secret is not written, by name of the field and in URLs.
"""

import datetime as dt
import logging
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Literal, TextIO

import msgspec

from kettle.runtime.log_rotation import RotatingHandler, file_of
from kettle.runtime.setting_types import redact

_STANDARD: Final = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
_SECRET_NAME: Final = re.compile(
    r"password|secret|token|seed|passfile|authorization|private_key", re.IGNORECASE
)
_COLOURS: Final = {logging.DEBUG: "2", logging.INFO: "32", logging.WARNING: "33", logging.ERROR: "31"}
_NOISY: Final = ("asyncio", "nats", "aiohttp.access", "opentelemetry", "urllib3")


class Rotation(msgspec.Struct, frozen=True):
    """Of which directory files are put aside when they are how large, and how many old ones are kept."""

    directory: Path
    limit_bytes: int
    count: int


def setup(
    role: str,
    *,
    level: str = "info",
    style: Literal["auto", "json", "text"] = "auto",
    stream: TextIO | None = None,
    rotation: Rotation | None = None,
) -> None:
    """
    Send everything that the process logs to `stream` (standard error).  Replaces what was set up before.

    With `rotation` a stream that is a file of its directory does not grow without end.
    """
    target: TextIO = sys.stderr if stream is None else stream
    terminal = target.isatty()
    text = style == "text" or (style == "auto" and terminal)
    handler = _handler(target, rotation)
    handler.setFormatter(TextFormatter(role, colour=terminal) if text else JsonFormatter(role))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    change_level(level)
    logging.captureWarnings(capture=True)


def change_level(level: str) -> None:
    """From now on log what is at least so important; of libraries that say much only warnings, at most."""
    root = logging.getLogger()
    root.setLevel(level.upper())
    for name in _NOISY:
        logging.getLogger(name).setLevel(max(logging.WARNING, root.level))


def _handler(target: TextIO, rotation: Rotation | None) -> logging.StreamHandler[TextIO]:
    if rotation is None or not rotation.limit_bytes or (path := file_of(target, rotation.directory)) is None:
        return logging.StreamHandler(target)
    return RotatingHandler(target, path, limit_bytes=rotation.limit_bytes, rotations=rotation.count)


def fields(record: logging.LogRecord) -> dict[str, Any]:
    """What was passed as `extra`, without secrets."""
    return {
        name: "***" if _SECRET_NAME.search(name) else redact(value) if isinstance(value, str) else value
        for name, value in vars(record).items()
        if name not in _STANDARD
    }


class JsonFormatter(logging.Formatter):
    """One JSON object per line: `ts level role logger msg`, then the fields, then `exc`."""

    def __init__(self, role: str) -> None:
        super().__init__()
        self._role = role

    def format(self, record: logging.LogRecord) -> str:
        """The line; a field that JSON has no notion of is written as its `repr`."""
        line: dict[str, Any] = {
            "ts": _utc(record.created).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "role": self._role,
            "logger": record.name,
            "msg": redact(record.getMessage()),
        }
        line |= {name: value for name, value in fields(record).items() if name not in line}
        if trace := _trace_id():
            line["trace_id"] = trace
        if record.exc_info:
            line["exc"] = redact(self.formatException(record.exc_info))
        return msgspec.json.encode(line, enc_hook=repr).decode()


class TextFormatter(logging.Formatter):
    """One line for a person: time, level, service, sentence, fields."""

    def __init__(self, role: str, *, colour: bool) -> None:
        super().__init__()
        self._role = role
        self._colour = colour

    def format(self, record: logging.LogRecord) -> str:
        """The line, and below it the traceback if there is one."""
        when = _utc(record.created).astimezone().strftime("%H:%M:%S.%f")[:-3]
        level = record.levelname.lower()
        extra = _pairs(fields(record))
        if self._colour:
            level = f"\x1b[{_COLOURS.get(record.levelno, '1;31')}m{level}\x1b[0m"
            when, extra = f"\x1b[2m{when}\x1b[0m", f"\x1b[2m{extra}\x1b[0m" if extra else ""
        line = f"{when} {level} {self._role}: {redact(record.getMessage())}{extra}"
        if record.exc_info:
            line += "\n" + redact(self.formatException(record.exc_info))
        return line


def _utc(timestamp: float) -> dt.datetime:
    return dt.datetime.fromtimestamp(timestamp, tz=dt.UTC)


def _pairs(values: Mapping[str, Any]) -> str:
    return "".join(f" {name}={value}" for name, value in values.items())


def _trace_id() -> str:
    """The trace that the log line belongs to; a process that does not trace never imports the library."""
    if (trace := sys.modules.get("opentelemetry.trace")) is None:
        return ""
    context = trace.get_current_span().get_span_context()
    return format(context.trace_id, "032x") if context.is_valid else ""
