"""What is asked about usage: accounting adds it up."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import msgspec

from kettle.bus.ports import Bus
from kettle_services.gateway.rest.application import Answer, Asked
from kettle_services.gateway.rest.freshness import Freshness
from kettle_services.gateway.rest.refusals import refused_field
from kettle_wire.commands.accounting import REPORT_USAGE, Axis, ReportUsage, UsageRow
from kettle_wire.rest.usage import GetUsage, UsageAnswer, UsageGroup, UsageOf

_MONTH: Final = timedelta(days=30)
_EARLIEST: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MOST_SLICES: Final = 10_000
"""Accounting takes no more."""
_PATIENCE_S: Final = 90.0
"""Some more than accounting takes before it refuses."""
_HOUR_US: Final = 3_600_000_000
_PERIODS: Final = frozenset({"day", "month"})


class UsageQuestions:
    """Answers them."""

    def __init__(self, bus: Bus, accounting: str, freshness: Freshness) -> None:
        self._bus = bus
        self._accounting = accounting
        self._freshness = freshness

    async def get(self, asked: Asked) -> Answer:
        """What attempts have used."""
        parameters: GetUsage = asked.parameters
        by: list[UsageGroup] = parameters.group_by or ["owner"]
        if len(set(by)) < len(by) or set(by) >= _PERIODS:
            raise refused_field(
                "/query/group_by",
                "the parameter group_by has to name two different things, and one kind of time",
            )
        until = min(parameters.until or datetime.now(UTC), _latest())
        since = max(parameters.since or until - _MONTH, _EARLIEST)
        if since >= until:
            raise refused_field(
                "/query/since", "the parameter since has to be before until, and both between 1970 and now"
            )
        period = next((axis for axis in by if axis in _PERIODS), "")
        cuts, names = slices(since, until, period, _zone(parameters.zone))
        if len(names) > _MOST_SLICES:
            raise refused_field(
                "/query/group_by",
                f"these are more than {_MOST_SLICES:,} days: name a later since, or group by month",
            )
        await self._freshness.wait(parameters.at_least)
        request = ReportUsage(
            by=[_axis(axis) for axis in by],
            cuts=[moment.timestamp() for moment in cuts],
            owners=parameters.owner,
            groups=parameters.group,
            projects=parameters.project,
            machines=parameters.machine,
        )
        found = await self._bus.call(REPORT_USAGE, self._accounting, request, deadline=_PATIENCE_S)
        rows = [_used(by, names, row) for row in found.rows]
        return Answer(UsageAnswer(since=since, until=until, rows=rows, total=_total(rows)))


def slices(since: datetime, until: datetime, period: str, zone: ZoneInfo) -> tuple[list[datetime], list[str]]:
    """
    The moments at which the days or months of a span begin and its end, and their names; without a period, the span.
    """
    if not period:
        return [since, until], [""]
    cuts, names = [since], list[str]()
    while cuts[-1] < until and len(names) <= _MOST_SLICES:
        # Without its zone, which may change during a day: a date is one of local time.
        day = cuts[-1].astimezone(zone).replace(hour=0, minute=0, second=0, microsecond=0, tzinfo=None)
        if period == "month":
            day = day.replace(day=1)
            following = (day + timedelta(days=31)).replace(day=1)
        else:
            following = day + timedelta(days=1)
        names.append(f"{day:%Y-%m}" if period == "month" else f"{day:%Y-%m-%d}")
        cuts.append(min(until, following.replace(tzinfo=zone).astimezone(UTC)))
    return cuts, names


def _latest() -> datetime:
    """Nothing is recorded of later times."""
    return datetime.now(UTC) + timedelta(days=1)


def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise refused_field(
            "/query/zone", f"there is no time zone {name}: name one as in Europe/Berlin"
        ) from error


def _axis(group: UsageGroup) -> Axis:
    match group:
        case "owner" | "group" | "project" | "machine":
            return group
        case "day" | "month":
            return "time"


def _used(by: Sequence[UsageGroup], names: Sequence[str], row: UsageRow) -> UsageOf:
    key: dict[str, str] = {
        axis: names[value] if isinstance(value, int) else value
        for axis, value in zip(by, row.key, strict=True)
    }
    return UsageOf(
        key=key,
        jobs=row.jobs,
        attempts=row.attempts,
        wall=row.wall / _HOUR_US,
        core=row.slot_time / _HOUR_US,
        cpu=row.cpu / _HOUR_US,
        good=row.good / _HOUR_US,
        lost=row.lost / _HOUR_US,
        uncharged=row.uncharged / _HOUR_US,
    )


def _total(rows: Sequence[UsageOf]) -> UsageOf:
    none = UsageOf(key={})
    amounts = msgspec.structs.asdict(none)
    del amounts["key"]
    for row in rows:
        amounts = {name: amount + getattr(row, name) for name, amount in amounts.items()}
    return msgspec.structs.replace(none, **amounts)
