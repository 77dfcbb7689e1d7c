"""
Calendar arithmetic and the text forms of times: pure, without a clock and without a zone database.

Out-of-range fields roll over (day 0 is the last day of the month before), as C's `mktime` does.
"""

import math
import re
from typing import Final, NamedTuple

from kettle.classad.values import AbsTime, low_half, narrowed, octets

DAY: Final = 86_400
WEEKDAYS: Final = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
MONTHS: Final = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip

_DIGITS: Final = re.compile(rb"[0-9]+")
_ZONE: Final = re.compile(rb"([+-])([0-9]{2}):?([0-9]{2})\Z")
_UTC: Final = re.compile(rb"(?<=.)[zZ](?=[ \t\n\v\f\r]*\Z)", re.DOTALL)
# A duration is read from its end: units may be missing at the front, and ":" is minutes before it is hours.
_RELATIVE: Final = re.compile(
    r"\s*+(?:(?=[sS0-9])[sS]?+\s*+(?P<seconds>[0-9]*+(?:\.[0-9]*+)?+))?+"
    r"\s*+(?:[mM:]\s*+(?P<minutes>[0-9]*+))?+"
    r"\s*+(?:[hH:]\s*+(?P<hours>[0-9]*+))?+"
    r"\s*+(?:[dD+]\s*+(?P<days>[0-9]*+))?+"
    r"\s*+(?P<sign>-?+)\s*+(?!\S)",
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


def day_numbers(year: int, month: int, day: int) -> tuple[int, int]:
    """
    Day of the week and day of the year, counted the way HTCondor counts them.

    A month that does not exist is 30 or 31 days like any other, and what lies before the year 1 is negative.
    """

    def fixed(month: int, day: int) -> int:
        before = year - 1
        leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
        days = 365 * before + sum(sign * int(before / years) for sign, years in ((1, 4), (-1, 100), (1, 400)))
        late = 0 if month <= 2 else -1 if leap else -2
        return days + int((367 * month - 362) / 12) + late + day

    days = low_half(fixed(month, day))
    return int(math.fmod(days, 7)), days - low_half(fixed(1, 1))


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
    data, offset = _without_zone(octets(text))
    year, position = _digits(data, 0, 4)
    if year is None:
        return None
    fields: list[int] = []
    for missing in (1, 0, 0, 0, 0):
        number, position = _digits(data, position, 2)
        fields.append(missing if number is None else number)
    if _DIGITS.search(data, position):
        return None
    month, day, hours, minutes, seconds = fields
    local = days_from_date(year, month, day) * DAY + hours * 3600 + minutes * 60 + seconds
    return AbsTime(local - offset, offset) if local != -1 else None


def _without_zone(data: bytes) -> tuple[bytes, int]:
    """The text before and after the zone, and the zone's offset."""
    if utc := _UTC.search(data):
        return data[: utc.start()] + data[utc.end() :], 0
    zone = _ZONE.search(data)
    if zone is None or zone.start() == 0:
        return data, 0
    offset = int(zone[2]) * 3600 + int(zone[3]) * 60
    return data[: zone.start()], -offset if zone[1] == b"-" else offset


def _digits(data: bytes, position: int, width: int) -> tuple[int | None, int]:
    """
    The number within the next `width` octets that start with a digit, and where to go on.

    None if there are not that many; ``1-`` is a field of two octets as well.
    """
    digit = _DIGITS.search(data, position)
    if digit is None or digit.start() + width > len(data):
        return None, position if digit is None else digit.start()
    start = digit.start()
    number = _DIGITS.match(data, start, start + width)
    return int(number[0]) if number else None, start + width


def parse_relative(text: str) -> float | None:
    """Read ``[-][[[days+]hh:]mm:]ss[.fff]`` or ``1d2h3m4.5s``; None if it is neither."""
    fields = _RELATIVE.match(text[::-1])
    if fields is None or fields.end() != len(text):
        return None
    days, hours, minutes = (_count(fields[name] or "") for name in ("days", "hours", "minutes"))
    whole = low_half(days * DAY + hours * 3600 + minutes * 60)
    seconds = (fields["seconds"] or "")[::-1]
    total = whole + (float(seconds) if seconds not in {"", "."} else 0.0)
    return -total if fields["sign"] else total


def _count(reversed_digits: str) -> int:
    """A number of units; one that takes more than 32 bits is 0."""
    number = int(reversed_digits[::-1] or 0)
    return number if number == low_half(number) else 0


def absolute_text(time: AbsTime) -> str:
    """ISO 8601 in the time's own zone, but the year as it is; UTC is written ``-00:00``."""
    date = calendar(time.seconds + time.offset)
    sign, zone = ("+", time.offset) if time.offset > 0 else ("-", -time.offset)
    return (
        f"{date.year}-{date.month:02d}-{date.day:02d}T{date.hours:02d}:{date.minutes:02d}:{date.seconds:02d}"
        f"{sign}{zone // 3600:02d}:{zone // 60 % 60:02d}"
    )


def units(seconds: int) -> tuple[int, int, int, int]:
    """Days, hours, minutes and seconds, each with the sign of the whole."""
    sign, whole = (-1, -seconds) if seconds < 0 else (1, seconds)
    return sign * (whole // DAY), sign * (whole // 3600 % 24), sign * (whole // 60 % 60), sign * (whole % 60)


def relative_text(seconds: float) -> str:
    """``[-][d+]hh:mm:ss`` without leading zero units; a fraction of a second is dropped."""
    return exact_relative_text(float(narrowed(seconds)))


def exact_relative_text(seconds: float) -> str:
    """Relative time with the fraction of a second, as a literal in an expression is written."""
    size = abs(seconds)
    fraction = size - math.floor(size) if math.isfinite(size) else math.nan
    days, hours, minutes, rest = units(narrowed(size))
    text = f"{rest + fraction:02g}" if fraction else f"{rest:02d}"
    if days or hours or minutes:
        text = f"{minutes:02d}:{text}"
    if days or hours:
        text = f"{hours:02d}:{text}"
    return ("-" if seconds < 0 else "") + (f"{days}+{text}" if days else text)
