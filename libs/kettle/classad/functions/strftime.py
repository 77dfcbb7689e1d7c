"""
`strftime` in the C locale over a calendar that need not exist: day 0 of a month is written as 00.

Python's own refuses such dates and reads the machine's locale.
The flags and the width between ``%`` and the letter are those of the GNU library.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from kettle.classad.times import DAY, MONTHS, WEEKDAYS, Calendar, days_from_date

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_DIRECTIVE: Final = re.compile(r"%([_0^#-]*)([0-9]*)([EO]?)(.)", re.DOTALL)
LONGEST: Final = (1 << 10) - 2
"""Characters of a date that is written: HTCondor's buffer has no room for more."""
_DIGITS: Final = 4
"""Digits of a width that are looked at: more than so many are too wide in any case."""
_COMPOSED: Final = {
    "c": "%a %b %e %H:%M:%S %Y", "D": "%m/%d/%y", "F": "%Y-%m-%d", "r": "%I:%M:%S %p", "R": "%H:%M",
    "T": "%H:%M:%S", "x": "%m/%d/%y", "X": "%H:%M:%S",
}  # fmt: skip
_TEXTS: Final[Mapping[str, Callable[[Calendar], str]]] = {
    "a": lambda date: _named(WEEKDAYS, date.weekday)[:3],
    "A": lambda date: _named(WEEKDAYS, date.weekday),
    "b": lambda date: _named(MONTHS, date.month - 1)[:3],
    "B": lambda date: _named(MONTHS, date.month - 1),
    "h": lambda date: _named(MONTHS, date.month - 1)[:3],
    "n": lambda _: "\n",
    "p": lambda date: "AM" if date.hours < 12 else "PM",
    "P": lambda date: "am" if date.hours < 12 else "pm",
    "t": lambda _: "\t",
    "z": lambda _: "+0000",
    "Z": lambda _: "UTC",
    "%": lambda _: "%",
}
_NUMBERS: Final[Mapping[str, tuple[str, Callable[[Calendar], int]]]] = {
    "C": (
        "01",
        lambda date: date.year // 100 if date.year >= 0 else -(-date.year // 100) - (date.year % 100 != 0),
    ),
    "d": ("02", lambda date: date.day),
    "e": ("_2", lambda date: date.day),
    "g": ("02", lambda date: _iso(date)[0] % 100),
    "G": ("01", lambda date: _iso(date)[0]),
    "H": ("02", lambda date: date.hours),
    "I": ("02", lambda date: _twelve(date.hours)),
    "j": ("03", lambda date: date.year_day + 1),
    "k": ("_2", lambda date: date.hours),
    "l": ("_2", lambda date: _twelve(date.hours)),
    "m": ("02", lambda date: date.month),
    "M": ("02", lambda date: date.minutes),
    "s": ("01", lambda date: _seconds(date)),  # noqa: PLW0108 - it is defined below
    "S": ("02", lambda date: date.seconds),
    "u": ("01", lambda date: (date.weekday - 1) % 7 + 1),
    "U": ("02", lambda date: _weeks(date.year_day - date.weekday + 7)),
    "V": ("02", lambda date: _iso(date)[1]),
    "w": ("01", lambda date: date.weekday),
    "W": ("02", lambda date: _weeks(date.year_day - (date.weekday - 1) % 7 + 7)),
    "y": ("02", lambda date: date.year % 100),
    "Y": ("01", lambda date: date.year),
}
"""How a number is padded, to how many places, and the number."""
_ALTERNATIVES: Final = {"E": "cCxXyY%", "O": "bBdehHImMSuUVwWy%"}
"""Which letters may stand behind ``E`` and ``O``; in the C locale both change nothing."""


def formatted(date: Calendar, layout: str) -> str | None:
    """
    `date` written as `layout` says, None if that is longer than `LONGEST`.

    Of the zone nothing is known, so ``%z`` and ``%Z`` are those of UTC.
    """
    parts: list[str] = []
    position = length = 0
    for match in _DIRECTIVE.finditer(layout):
        parts += [layout[position : match.start()], _directive(date, match)]
        position = match.end()
        length += len(parts[-2]) + len(parts[-1])
        if length > LONGEST:
            return None
    parts.append(layout[position:])
    return "".join(parts) if length + len(parts[-1]) <= LONGEST else None


def _directive(date: Calendar, match: re.Match[str]) -> str:
    flags, digits, alternative, letter = match.groups()
    if letter not in _ALTERNATIVES.get(alternative, letter):
        return match[0]
    width = int(digits.lstrip("0")[:_DIGITS] or 0)
    padding = next((flag for flag in reversed(flags) if flag in "_0-"), "")
    if number := _NUMBERS.get(letter):
        return _padded(number[1](date), padding or number[0][0], max(int(number[0][1]), width))
    text = _text(date, letter)
    if text is None:
        return match[0]
    return _cased(text, letter, flags).rjust(width, "0" if padding == "0" else " ")


def _text(date: Calendar, letter: str) -> str | None:
    if letter in _COMPOSED:
        return formatted(date, _COMPOSED[letter])
    return _TEXTS[letter](date) if letter in _TEXTS else None


def _cased(text: str, letter: str, flags: str) -> str:
    if "#" in flags and letter in "pZ":
        return text.lower()
    return text.upper() if "^" in flags or ("#" in flags and letter in "aAbBh") else text


def _padded(number: int, padding: str, places: int) -> str:
    return str(number) if padding == "-" else f"{number:{'0' if padding == '0' else ''}{places}d}"


def _named(names: tuple[str, ...], number: int) -> str:
    return names[number] if 0 <= number < len(names) else "?"


def _twelve(hours: int) -> int:
    return 12 if hours == 0 else hours - 12 if hours > 12 else hours


def _weeks(days: int) -> int:
    """Whole weeks, cut towards zero."""
    return days // 7 if days >= 0 else -(-days // 7)


def _seconds(date: Calendar) -> int:
    days = days_from_date(date.year, date.month, date.day)
    return days * DAY + date.hours * 3600 + date.minutes * 60 + date.seconds


def _iso(date: Calendar) -> tuple[int, int]:
    """The year and the week of ISO 8601: weeks start on Monday, the first one holds 4 January."""
    year, days = date.year, _iso_days(date.year_day, date.weekday)
    if days < 0:
        year -= 1
        days = _iso_days(date.year_day + _length(year), date.weekday)
    elif (beyond := _iso_days(date.year_day - _length(year), date.weekday)) >= 0:
        year, days = year + 1, beyond
    return year, _weeks(days) + 1


def _iso_days(year_day: int, weekday: int) -> int:
    """Days since the Monday of the year's first week."""
    return year_day - (year_day - weekday + 4 + 378) % 7 + 4 - 1


def _length(year: int) -> int:
    return days_from_date(year + 1, 1, 1) - days_from_date(year, 1, 1)
