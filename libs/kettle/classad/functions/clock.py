"""Times: read from the context's clock, made, taken apart, written."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from kettle.classad.ad import ClassAd
from kettle.classad.errors import EvaluationFailed
from kettle.classad.functions.registry import Function, strict
from kettle.classad.functions.strftime import formatted
from kettle.classad.nodes import Node
from kettle.classad.times import DAY, Calendar, calendar, day_numbers, units
from kettle.classad.values import ERROR, UNDEFINED, AbsTime, Exceptional, RelTime, Value, low_half, narrowed

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from kettle.classad.scope import Scope

_DATE_FIELDS: Final[Mapping[str, Callable[[Calendar], int]]] = {
    "getyear": lambda date: date.year,
    "getmonth": lambda date: date.month,
    "getdayofyear": lambda date: date.year_day,
    "getdayofmonth": lambda date: date.day,
    "getdayofweek": lambda date: date.weekday,
    "gethours": lambda date: date.hours,
    "getminutes": lambda date: date.minutes,
    "getseconds": lambda date: date.seconds,
}
_DURATION_FIELDS: Final = ("getdays", "gethours", "getminutes", "getseconds")


def _time(_: Sequence[Value], scope: Scope) -> Value:
    return scope.state.now()


def _current_time(_: Sequence[Value], scope: Scope) -> Value:
    now = scope.state.now()
    return now if isinstance(now, Exceptional) else AbsTime(now, scope.state.utc_offset(now))


def _day_time(_: Sequence[Value], scope: Scope) -> Value:
    now = scope.state.now()
    return now if isinstance(now, Exceptional) else RelTime(float((now + scope.state.utc_offset(now)) % DAY))


def _time_zone_offset(_: Sequence[Value], scope: Scope) -> Value:
    now = scope.state.now()
    return now if isinstance(now, Exceptional) else RelTime(float(scope.state.utc_offset(now)))


def _seconds(value: Value) -> int | None:
    """A number of seconds in 32 bits; None if the value is not a number."""
    match value:
        case bool():
            return None
        case int():
            return low_half(value)
        case float():
            return narrowed(value)
        case RelTime():
            return narrowed(value.seconds)
        case _:
            return None


def _abs_time(arguments: Sequence[Value], scope: Scope) -> Value:
    """Text that is a literal has become a time when it was parsed; other text stays what it is."""
    if not arguments:
        return _current_time(arguments, scope)
    value = arguments[0]
    offset = _seconds(arguments[1]) if len(arguments) > 1 else 0
    if offset is None:
        return ERROR
    if isinstance(value, str | AbsTime) or value is UNDEFINED:
        return value
    seconds = _seconds(value)
    if seconds is None:
        return ERROR
    if len(arguments) == 1:
        return AbsTime(seconds, scope.state.utc_offset(seconds))
    if offset == -1 and isinstance(value, int):
        raise EvaluationFailed("a zone cannot be one second west of UTC")
    return AbsTime(seconds, offset)


def _rel_time(arguments: Sequence[Value], _: Scope) -> Value:
    if len(arguments) > 1:
        return ERROR
    match arguments[0]:
        case bool():
            return ERROR
        case int() as seconds:
            return RelTime(float(low_half(seconds)))
        case float() as seconds:
            return RelTime(seconds)
        case AbsTime() as time:
            return RelTime(float(time.seconds))
        case RelTime() as duration:
            return duration
        case str():
            return RelTime(0.0)
        case value:
            return UNDEFINED if value is UNDEFINED else ERROR


def _field(name: str) -> Function:
    """Of an instant the field in the local zone, of a duration the field with its sign."""
    of_date = _DATE_FIELDS.get(name)
    unit = _DURATION_FIELDS.index(name) if name in _DURATION_FIELDS else None

    def body(arguments: Sequence[Value], scope: Scope) -> Value:
        match arguments[0]:
            case AbsTime(seconds=seconds) if of_date is not None:
                return of_date(calendar(seconds + scope.state.utc_offset(seconds)))
            case RelTime(seconds=seconds) if unit is not None:
                return units(narrowed(seconds))[unit]
            case _:
                return ERROR

    return strict(body, 1)


def _split_time(arguments: Sequence[Value], scope: Scope) -> Value:
    value = arguments[0]
    if isinstance(value, RelTime):
        return _split_duration(value.seconds)
    instant = _instant(value, scope)
    if instant is None:
        return UNDEFINED if value is UNDEFINED else ERROR
    date = calendar(instant.seconds + instant.offset)
    return ClassAd(
        {
            "Type": "AbsoluteTime",
            "Year": date.year,
            "Month": date.month,
            "Day": date.day,
            "Hours": date.hours,
            "Minutes": date.minutes,
            "Seconds": date.seconds,
            "Offset": instant.offset,
        }
    )


def _split_duration(seconds: float) -> ClassAd:
    """The sign goes to the largest unit that is not zero."""
    size = abs(seconds)
    days, hours, minutes, rest = units(narrowed(size))
    parts: dict[str, int | float] = {
        "Days": days,
        "Hours": hours,
        "Minutes": minutes,
        "Seconds": rest + (size - math.floor(size) if math.isfinite(size) else math.nan),
    }
    if seconds < 0:
        largest = next((name for name in ("Days", "Hours", "Minutes") if parts[name] > 0), "Seconds")
        parts[largest] = -parts[largest]
    return ClassAd({"Type": "RelativeTime", **parts})


def _instant(value: Value, scope: Scope) -> AbsTime | None:
    match value:
        case bool():
            return None
        case AbsTime():
            return value
        case int():
            return AbsTime(value, scope.state.utc_offset(value))
        case float():
            seconds = narrowed(value)
            return AbsTime(seconds, scope.state.utc_offset(seconds))
        case _:
            return None


def _format_time(arguments: Sequence[Value], scope: Scope) -> Value:
    value: Value = arguments[0] if arguments else scope.state.now()
    layout = arguments[1] if len(arguments) > 1 else "%c"
    if not arguments and isinstance(value, Exceptional):
        return value
    if isinstance(value, ClassAd):
        date: Calendar | None = _date_of(value, scope)
    else:
        instant = _instant(value, scope)
        date = None if instant is None else calendar(instant.seconds + instant.offset)
    text = formatted(date, layout) if isinstance(layout, str) and date is not None else None
    return ERROR if text is None else text


def _date_of(ad: ClassAd, scope: Scope) -> Calendar:
    """The fields of a split time; what is no integer is 0, the year 1900, the month January."""

    def field(name: str, missing: int) -> int:
        stored = ad.find(name)
        value = scope.state.scope_of(ad).evaluate(stored) if isinstance(stored, Node) else stored
        return low_half(value) if type(value) is int else missing

    year, month, day = field("year", 1900), field("month", 1), field("day", 0)
    weekday, year_day = day_numbers(year, month, day)
    return Calendar(
        year, month, day, field("hours", 0), field("minutes", 0), field("seconds", 0), weekday, year_day
    )


FAMILY: Final[Mapping[str, Function]] = {
    "time": strict(_time, 0),
    "currenttime": strict(_current_time, 0),
    "daytime": strict(_day_time, 0),
    "timezoneoffset": strict(_time_zone_offset, 0),
    "abstime": strict(_abs_time, 0, 2),
    "reltime": strict(_rel_time, 1, 2),
    **{name: _field(name) for name in (*_DATE_FIELDS, *_DURATION_FIELDS)},
    "splittime": strict(_split_time, 1),
    "formattime": strict(_format_time, 0, 2),
}
