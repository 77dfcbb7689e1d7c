"""Moments in the forms that people type, and as a log has them: microseconds since the epoch."""

import argparse
import re
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final, TypeVar

N = TypeVar("N")

FORMS: Final = "as 2026-11-20T14:00:00Z, '2026-11-20 14:00' (local time), 14:00 (today), 10m or -10m, 2h30m, 3d (ago), or now"

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_UNITS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_SPAN: Final = re.compile(r"(?:\d+(?:\.\d+)?[smhdw])+")
_PART: Final = re.compile(r"(\d+(?:\.\d+)?)([smhdw])")
_AGO: Final = re.compile(r"-(\d.*[A-Za-z].*)")
"""Text that is meant as a time; a mistake in it is reported by the parser of times."""


class TimeParser(argparse.ArgumentParser):
    """
    A parser for which `-10m` is the moment `10m`, not an option; it has no options that begin with a digit.
    """

    def parse_known_args(  # type: ignore[override]  # argparse's stubs have three overloads for one function
        self, args: Sequence[str] | None = None, namespace: N | None = None
    ) -> tuple[N, list[str]]:
        """See argparse."""
        words = [_AGO.sub(r"\1", word) if _AGO.fullmatch(word) else word for word in args or ()]
        return super().parse_known_args(words, namespace)  # type: ignore[return-value]  # as above


def span(text: str) -> float:
    """Seconds of `30d`, `2h30m`, `90s`; raises ValueError."""
    if not _SPAN.fullmatch(text):
        raise ValueError(f"'{text}' is no span of time: write it as 90s, 10m, 2h30m, 30d or 4w")
    return sum(float(number) * _UNITS[unit] for number, unit in _PART.findall(text))


def span_argument(text: str) -> float:
    """The type of an argument that is a span of time."""
    try:
        return span(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def span_up_to(longest: str) -> Callable[[str], float]:
    """The type of an argument that is a span of time, longer than none and not longer than this one."""

    def limited(text: str) -> float:
        seconds = span_argument(text)
        if not 0 < seconds <= span(longest):
            raise argparse.ArgumentTypeError(f"'{text}' is not possible: more than 0s, and at most {longest}")
        return seconds

    return limited


def moment(text: str, *, now: datetime) -> int:
    """
    Microseconds since the epoch of a moment in one of `FORMS`; what names no zone is local time, a span is so long ago.

    Raises:
        ValueError: it is none of them.
    """
    text = text.strip()
    if text == "now":
        return micros(now)
    try:
        if _SPAN.fullmatch(text.removeprefix("-")):
            return micros(now - timedelta(seconds=span(text.removeprefix("-"))))
        if re.fullmatch(r"\d{1,2}:\d{2}(:\d{2}(\.\d+)?)?", text):
            text = f"{now.astimezone():%Y-%m-%d} {text.rjust(5, '0') if text.count(':') == 1 else text}"
        return micros(datetime.fromisoformat(text))
    except (ValueError, OverflowError, OSError) as error:
        raise ValueError(f"'{text}' is no moment: write it {FORMS}") from error


def moment_argument(text: str) -> int:
    """The type of an argument that is a moment."""
    try:
        return moment(text, now=datetime.now(UTC))
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def micros(when: datetime) -> int:
    """Microseconds since the epoch; a moment without a zone is one of local time."""
    return (when.astimezone(UTC) - _EPOCH) // timedelta(microseconds=1)


def precise(at: int) -> str:
    """A moment in local time, to the microsecond."""
    return f"{time.strftime('%Y-%m-%d %H:%M:%S', time.localtime(at // 1_000_000))}.{at % 1_000_000:06}"


def rfc3339(at: int) -> str:
    """A moment for programs."""
    return (_EPOCH + timedelta(microseconds=at)).isoformat(timespec="microseconds").replace("+00:00", "Z")
