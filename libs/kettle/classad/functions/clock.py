"""Times: read from the context's clock, made, taken apart, written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kettle.classad.ad import ClassAd
from kettle.classad.conversions import truncated
from kettle.classad.errors import EvaluationFailed
from kettle.classad.functions.registry import Function, strict
from kettle.classad.functions.strftime import formatted
from kettle.classad.nodes import Node
from kettle.classad.times import DAY, Calendar, calendar, days_from_date
from kettle.classad.values import ERROR, UNDEFINED, AbsTime, Exceptional, RelTime, Value

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
_DURATION_FIELDS: Final[Mapping[str, Callable[[int], int]]] = {
    "getdays": lambda seconds: seconds // DAY,
    "gethours": lambda seconds: seconds % DAY // 3600,
    "getminutes": lambda seconds: seconds % 3600 // 60,
    "getseconds": lambda seconds: seconds % 60,
}


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


def _offset(value: Value) -> int | None:
    if isinstance(value, RelTime):
        return int(value.seconds)
    return truncated(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _abs_time(arguments: Sequence[Value], scope: Scope) -> Value:
    """Text that is a literal has become a time when it was parsed; other text stays what it is."""
    if not arguments:
        return _current_time(arguments, scope)
    value = arguments[0]
    offset = _offset(arguments[1]) if len(arguments) > 1 else 0
    if offset is None:
        return ERROR
    if isinstance(value, str | AbsTime) or value is UNDEFINED:
        return value
    seconds = _offset(value)
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
        case int() | float() as seconds:
            return RelTime(float(seconds))
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
    of_date, of_duration = _DATE_FIELDS.get(name), _DURATION_FIELDS.get(name)

    def body(arguments: Sequence[Value], scope: Scope) -> Value:
        match arguments[0]:
            case AbsTime(seconds=seconds) if of_date is not None:
                return of_date(calendar(seconds + scope.state.utc_offset(seconds)))
            case RelTime(seconds=seconds) if of_duration is not None:
                whole = of_duration(int(abs(seconds)))
                return -whole if seconds < 0 else whole
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
    whole = int(abs(seconds))
    parts: dict[str, Value] = {
        "Days": whole // DAY,
        "Hours": whole // 3600 % 24,
        "Minutes": whole // 60 % 60,
        "Seconds": whole % 60 + abs(seconds) - whole,
    }
    largest = next((name for name, part in parts.items() if part), "Seconds")
    leading = parts[largest]
    if seconds < 0 and isinstance(leading, int | float):
        parts[largest] = -leading
    return ClassAd({"Type": "RelativeTime", **parts})


def _instant(value: Value, scope: Scope) -> AbsTime | None:
    if isinstance(value, AbsTime):
        return value
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    seconds = truncated(value)
    return AbsTime(seconds, scope.state.utc_offset(seconds))


def _format_time(arguments: Sequence[Value], scope: Scope) -> Value:
    value: Value = arguments[0] if arguments else scope.state.now()
    layout = arguments[1] if len(arguments) > 1 else "%c"
    if not arguments and isinstance(value, Exceptional):
        return value
    if isinstance(value, ClassAd):
        date, offset = _date_of(value, scope), 0
    else:
        instant = _instant(value, scope)
        if instant is None:
            return ERROR
        date, offset = calendar(instant.seconds + instant.offset), instant.offset
    return formatted(date, layout, offset) if isinstance(layout, str) else ERROR


def _date_of(ad: ClassAd, scope: Scope) -> Calendar:
    """The fields of a split time; what is missing is 0, the year 1900, the month January."""

    def field(name: str, missing: int) -> int:
        stored = ad.find(name)
        value = scope.state.scope_of(ad).evaluate(stored) if isinstance(stored, Node) else stored
        return truncated(value) if isinstance(value, int | float) else missing

    year, month, day = field("year", 1900), field("month", 1), field("day", 0)
    days = days_from_date(year, month, day)
    return Calendar(
        year, month, day, field("hours", 0), field("minutes", 0), field("seconds", 0),
        (days + 4) % 7, days - days_from_date(year, 1, 1),
    )  # fmt: skip


FAMILY: Final[Mapping[str, Function]] = {
    "time": strict(_time, 0),
    "currenttime": strict(_current_time, 0),
    "daytime": strict(_day_time, 0),
    "timezoneoffset": strict(_time_zone_offset, 0),
    "abstime": strict(_abs_time, 0, 2),
    "reltime": strict(_rel_time, 1, 2),
    **{name: _field(name) for name in {**_DATE_FIELDS, **_DURATION_FIELDS}},
    "splittime": strict(_split_time, 1),
    "formattime": strict(_format_time, 0, 2),
}
