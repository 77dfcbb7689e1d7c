"""
The times of a job with a calendar: the fields of a crontab, as HTCondor reads them, and the next time that they name.

A field is a list of `*`, numbers and ranges, each perhaps with a step: `0`, `*/15`, `1-5`, `0,30`, `8-18/2`. Times are
local times of the caller.
"""

import re
from collections.abc import Iterator, Mapping
from datetime import date, datetime, time, timedelta, tzinfo
from itertools import product
from typing import Final

import msgspec

FIELDS: Final[Mapping[str, tuple[int, int]]] = {
    "CronMinute": (0, 59),
    "CronHour": (0, 23),
    "CronDayOfMonth": (1, 31),
    "CronMonth": (1, 12),
    "CronDayOfWeek": (0, 7),
}
"""Attribute -> smallest and largest number; of the days of the week both 0 and 7 are Sunday."""

_PART: Final = re.compile(r"(?:\*|(\d{1,2})(?:-(\d{1,2}))?)(?:/(\d{1,2}))?")
_HOURS: Final = 24
_MOST_DAYS: Final = 366 * 8 + 2
"""The 29th of February may be eight years away."""


class Crontab(msgspec.Struct, frozen=True):
    """
    The minutes, hours and days that were named; `either`: a day needs to be one of the month's or one of the week's.
    """

    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    either: bool

    def names(self, day: date) -> bool:
        """Whether there are times on this day."""
        if day.month not in self.months:
            return False
        in_month, in_week = day.day in self.days, day.isoweekday() % 7 in self.weekdays
        return in_month or in_week if self.either else in_month and in_week


def crontab(fields: Mapping[str, str]) -> Crontab:
    """
    The schedule that these attributes say; one that is not there is any. Raises ValueError with a sentence.
    """
    said = {name: fields.get(name, "*") for name in FIELDS}
    numbers = {name: frozenset(numbers_of(name, text)) for name, text in said.items()}
    return Crontab(
        minutes=tuple(sorted(numbers["CronMinute"])),
        hours=tuple(sorted(numbers["CronHour"])),
        days=numbers["CronDayOfMonth"],
        months=numbers["CronMonth"],
        weekdays=frozenset(day % 7 for day in numbers["CronDayOfWeek"]),
        either=not any(said[name].lstrip().startswith("*") for name in ("CronDayOfMonth", "CronDayOfWeek")),
    )


def numbers_of(name: str, text: str) -> Iterator[int]:
    """What one field names. Raises ValueError with a sentence."""
    least, most = FIELDS[name]
    for part in text.replace(" ", "").split(","):
        match = _PART.fullmatch(part)
        if match is None:
            raise ValueError(
                f"'{part}' is neither *, a number nor a range of numbers with perhaps a step, like 1-5 or */15"
            )
        first, last, step = match[1], match[2], int(match[3] or 1)
        low = least if first is None else int(first)
        high = int(last) if last is not None else most if first is None else low
        if not (least <= low <= high <= most) or not step:
            raise ValueError(f"'{part}' names no numbers from {least} to {most}")
        yield from range(low, high + 1, step)


def next_run(schedule: Crontab, after: int, zone: tzinfo | None = None) -> int | None:
    """
    The first time after `after`, both in seconds since 1970; None if the days that were named do not exist.

    `zone`: where the clock hangs; None: here. A time that the change to summer's leaves out comes as much later. In
    the hour that comes twice in autumn, what runs every hour runs twice, and what names its hours once.
    """
    folds = (0, 1) if len(schedule.hours) == _HOURS else (0,)
    start = datetime.fromtimestamp(after, zone)
    for ahead in range(_MOST_DAYS):
        day = start.date() + timedelta(days=ahead)
        if not schedule.names(day):
            continue
        for hour in schedule.hours:
            if not ahead and hour < start.hour:
                continue
            for fold, minute in product(folds, schedule.minutes):
                found = int(datetime.combine(day, time(hour, minute, fold=fold), zone).timestamp())
                if found > after:
                    return found
    return None
