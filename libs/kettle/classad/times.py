"""
Calendar arithmetic and the text forms of times: pure, without a clock and without a zone database.

Out-of-range fields roll over (day 0 is the last day of the month before), as C's `mktime` does.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from kettle.classad.values import AbsTime

DAY: Final = 86_400
WEEKDAYS: Final = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
MONTHS: Final = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip

_ZONE: Final = re.compile(r"(?:([+-])([0-9]{2}):?([0-9]{2})|[zZ])[ \t\n\v\f\r]*\Z")
_FIELDS: Final = re.compile(
    r"[^0-9]*([0-9]{4})" + r"(?:[^0-9]*([0-9]{2}))?" * 5 + r"[^0-9]*(?P<rest>[0-9]?)", re.DOTALL
)
_RELATIVE: Final = re.compile(
    r"\s*(?P<sign>-?)\s*(?:(?P<days>[0-9]*)\s*[dD+])?\s*(?:(?P<hours>[0-9]*)\s*[hH:])?\s*"
    r"(?:(?P<minutes>[0-9]*)\s*[mM:])?\s*(?:(?P<seconds>[0-9]*(?:\.[0-9]*)?)\s*[sS]?)?\s*\Z",
    re.ASCII,
)


class Calendar(NamedTuple):
    """A date and time of day; `weekday` counts from Sunday = 0, `year_day` from 0, `month` from 1."""

    year: int
    month: int
    day: int
    hours: int
    minutes: int
    seconds: int
    weekday: int
    year_day: int


def days_from_date(year: int, month: int, day: int) -> int:
    """Days since 1970-01-01 in the Gregorian calendar; any month and day number is meaningful."""
    year, month = year + (month - 1) // 12, (month - 1) % 12 + 1
    shifted = year - (month <= 2)
    era_year = shifted % 400
    year_day = (153 * (month + (-3 if month > 2 else 9)) + 2) // 5
    return (
        shifted // 400 * 146_097 + era_year * 365 + era_year // 4 - era_year // 100 + year_day + day - 719_469
    )


def calendar(seconds: int) -> Calendar:
    """The date and time of day of so many seconds since 1970-01-01T00:00:00."""
    days, rest = divmod(seconds, DAY)
    era, era_day = divmod(days + 719_468, 146_097)
    era_year = (era_day - era_day // 1460 + era_day // 36_524 - era_day // 146_096) // 365
    year_day = era_day - (365 * era_year + era_year // 4 - era_year // 100)
    shifted = (5 * year_day + 2) // 153
    day = year_day - (153 * shifted + 2) // 5 + 1
    month = shifted + (3 if shifted < 10 else -9)
    year = era_year + era * 400 + (month <= 2)
    return Calendar(
        year, month, day, rest // 3600, rest // 60 % 60, rest % 60,
        (days + 4) % 7, days - days_from_date(year, 1, 1),
    )  # fmt: skip


def parse_absolute(text: str) -> AbsTime | None:
    """
    Read ``2003-01-25T09:00:00-06:00`` and its abbreviations; None if it is no time.

    Fields are found by their digits alone.  Text without a zone is read as UTC: a parsed expression is shared,
    so it cannot depend on where it is evaluated.
    """
    offset = 0
    if zone := _ZONE.search(text):
        if zone[1]:
            offset = (int(zone[2]) * 3600 + int(zone[3]) * 60) * (-1 if zone[1] == "-" else 1)
        text = text[: zone.start()]
    fields = _FIELDS.match(text)
    if fields is None or fields["rest"]:
        return None
    year, month, day, hours, minutes, seconds = (
        int(fields[number] or (1 if number == 2 else 0)) for number in range(1, 7)
    )
    local = days_from_date(year, month, day) * DAY + hours * 3600 + minutes * 60 + seconds
    return AbsTime(local - offset, offset) if local != -1 else None


def parse_relative(text: str) -> float | None:
    """Read ``[-][[[days+]hh:]mm:]ss[.fff]`` or ``1d2h3m4.5s``; None if it is neither."""
    fields = _RELATIVE.match(_aligned(text))
    if fields is None:
        return None
    whole = sum(
        int(fields[name] or 0) * unit for name, unit in (("days", DAY), ("hours", 3600), ("minutes", 60))
    )
    seconds = fields["seconds"] or "0"
    total = whole + (float(seconds) if seconds != "." else 0.0)
    return -total if fields["sign"] else float(total)


def _aligned(text: str) -> str:
    """A single colon separates minutes from seconds, never hours from minutes: say so with the letter."""
    return text.replace(":", "m", 1) if text.count(":") == 1 and "h" not in text.lower() else text


def absolute_text(time: AbsTime) -> str:
    """ISO 8601 in the time's own zone; UTC is written ``-00:00``."""
    date = calendar(time.seconds + time.offset)
    sign, zone = ("+", time.offset) if time.offset > 0 else ("-", -time.offset)
    return (
        f"{date.year:04d}-{date.month:02d}-{date.day:02d}T{date.hours:02d}:{date.minutes:02d}:{date.seconds:02d}"
        f"{sign}{zone // 3600:02d}:{zone // 60 % 60:02d}"
    )


def relative_text(seconds: float) -> str:
    """``[-][d+]hh:mm:ss`` without leading zero units; a fraction of a second is dropped."""
    sign, whole = ("-" if seconds < 0 else ""), int(abs(seconds))
    days, hours, minutes = whole // DAY, whole // 3600 % 24, whole // 60 % 60
    text = f"{whole % 60:02d}"
    if whole >= 60:
        text = f"{minutes:02d}:{text}"
    if whole >= 3600:
        text = f"{hours:02d}:{text}"
    return f"{sign}{days}+{text}" if days else sign + text
