"""
`strftime` in the C locale over a calendar that need not exist: day 0 of a month is written as 00.

Python's own refuses such dates and reads the machine's locale.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from kettle.classad.times import DAY, MONTHS, WEEKDAYS, Calendar, days_from_date

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_DIRECTIVE: Final = re.compile(r"%[EO]?(.)", re.DOTALL)
_COMPOSED: Final = {
    "c": "%a %b %e %H:%M:%S %Y", "D": "%m/%d/%y", "F": "%Y-%m-%d", "r": "%I:%M:%S %p", "R": "%H:%M",
    "T": "%H:%M:%S", "x": "%m/%d/%y", "X": "%H:%M:%S", "h": "%b",
}  # fmt: skip
_SIMPLE: Final[Mapping[str, Callable[[Calendar], str]]] = {
    "a": lambda date: WEEKDAYS[date.weekday][:3],
    "A": lambda date: WEEKDAYS[date.weekday],
    "b": lambda date: MONTHS[(date.month - 1) % 12][:3],
    "B": lambda date: MONTHS[(date.month - 1) % 12],
    "C": lambda date: f"{date.year // 100:02d}",
    "d": lambda date: f"{date.day:02d}",
    "e": lambda date: f"{date.day:2d}",
    "g": lambda date: f"{_iso(date)[0] % 100:02d}",
    "G": lambda date: str(_iso(date)[0]),
    "H": lambda date: f"{date.hours:02d}",
    "I": lambda date: f"{(date.hours - 1) % 12 + 1:02d}",
    "j": lambda date: f"{date.year_day + 1:03d}",
    "k": lambda date: f"{date.hours:2d}",
    "l": lambda date: f"{(date.hours - 1) % 12 + 1:2d}",
    "m": lambda date: f"{date.month:02d}",
    "M": lambda date: f"{date.minutes:02d}",
    "n": lambda _: "\n",
    "p": lambda date: "AM" if date.hours < 12 else "PM",
    "P": lambda date: "am" if date.hours < 12 else "pm",
    "s": lambda date: str(_seconds(date)),
    "S": lambda date: f"{date.seconds:02d}",
    "t": lambda _: "\t",
    "u": lambda date: str(date.weekday or 7),
    "U": lambda date: f"{(date.year_day + 7 - date.weekday) // 7:02d}",
    "V": lambda date: f"{_iso(date)[1]:02d}",
    "w": lambda date: str(date.weekday),
    "W": lambda date: f"{(date.year_day + 7 - (date.weekday - 1) % 7) // 7:02d}",
    "y": lambda date: f"{date.year % 100:02d}",
    "Y": lambda date: str(date.year),
    "%": lambda _: "%",
}


def formatted(date: Calendar, layout: str, offset: int = 0) -> str:
    """`date` written as `layout` says; `offset` is its zone in seconds east of UTC, for ``%z`` and ``%Z``."""

    def directive(match: re.Match[str]) -> str:
        letter = match[1]
        if letter in _COMPOSED:
            return formatted(date, _COMPOSED[letter], offset)
        if letter == "z":
            return f"{'-' if offset < 0 else '+'}{abs(offset) // 3600:02d}{abs(offset) // 60 % 60:02d}"
        if letter == "Z":
            return "GMT"
        simple = _SIMPLE.get(letter)
        return match[0] if simple is None else simple(date)

    return _DIRECTIVE.sub(directive, layout)


def _seconds(date: Calendar) -> int:
    days = days_from_date(date.year, date.month, date.day)
    return days * DAY + date.hours * 3600 + date.minutes * 60 + date.seconds


def _iso(date: Calendar) -> tuple[int, int]:
    """The year and the week of ISO 8601: weeks start on Monday, the first one holds 4 January."""
    days = days_from_date(date.year, date.month, date.day)
    thursday = days + 3 - (date.weekday - 1) % 7
    year = date.year
    while thursday >= days_from_date(year + 1, 1, 1):
        year += 1
    while thursday < days_from_date(year, 1, 1):
        year -= 1
    return year, (thursday - days_from_date(year, 1, 1)) // 7 + 1
