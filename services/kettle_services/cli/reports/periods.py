"""Days and months of local time, as the moments at which they begin."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Final

import msgspec

from kettle_services.cli.times import micros

PERIODS: Final = ("day", "month")
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class Slices(msgspec.Struct, frozen=True):
    """A span of time in pieces; moments are microseconds since the epoch."""

    cuts: list[int]
    """One more than there are pieces, rising."""
    names: list[str]


def slices(since: int, until: int, period: str = "") -> Slices:
    """
    The days or months of a span, the first and the last one as far as they are in it; without a period, the span.
    """
    if not period:
        return Slices([since, until], [""])
    begun, following, form = _PERIODS[period]
    cuts = [since]
    names: list[str] = []
    while cuts[-1] < until:
        day = begun(_local(cuts[-1]))
        names.append(day.strftime(form))
        cuts.append(min(until, micros(following(day))))
    return Slices(cuts, names)


def midnight(at: datetime, days: int = 0) -> int:
    """When the day of a moment began, or one so many days after it."""
    return micros(_date(at.astimezone()) + timedelta(days=days))


def _local(at: int) -> datetime:
    return (_EPOCH + timedelta(microseconds=at)).astimezone()


def _date(at: datetime) -> datetime:
    """Without its zone, which may change during a day: a date is one of local time."""
    return at.replace(hour=0, minute=0, second=0, microsecond=0, tzinfo=None)


def _month(at: datetime) -> datetime:
    return _date(at).replace(day=1)


_PERIODS: Final[Mapping[str, tuple[Callable[[datetime], datetime], Callable[[datetime], datetime], str]]] = {
    "day": (_date, lambda day: day + timedelta(days=1), "%Y-%m-%d"),
    "month": (_month, lambda month: _month(month + timedelta(days=31)), "%Y-%m"),
}
