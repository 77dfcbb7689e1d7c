"""A report of usage: rows with their names, totals, and what is drawn of them."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec

from kettle_services.cli.output.plots import Plot
from kettle_services.cli.reports.periods import PERIODS, Slices
from kettle_wire.commands.accounting import Axis, UsageRow

AXES: Final = ("owner", "group", "project", "machine", *PERIODS)
_US: Final = 1_000_000
_AMOUNTS: Final = ("wall", "slot_time", "good", "lost", "cpu", "uncharged")
_HOUR_US: Final = 3600 * _US


class UsedResources(msgspec.Struct, kw_only=True):
    """What was used; times in whole microseconds."""

    names: list[str]
    """One for each of what it is by."""
    jobs: int = 0
    attempts: int = 0
    wall: int = 0
    slot_time: int = 0
    good: int = 0
    lost: int = 0
    cpu: int = 0
    uncharged: int = 0

    @property
    def efficiency(self) -> float:
        """The part of the cores' time in which they worked; 0 if there was none."""
        return self.cpu / self.slot_time if self.slot_time else 0.0

    def hours(self, amount: str) -> float:
        """One of the times."""
        return int(getattr(self, amount)) / _HOUR_US

    def exported(self, by: Sequence[str]) -> dict[str, str | int | float]:
        """As programs get it: times in seconds."""
        times = {_SECONDS[amount]: getattr(self, amount) / _US for amount in _AMOUNTS}
        counts = {"jobs": self.jobs, "attempts": self.attempts}
        return dict(zip(by, self.names, strict=True)) | counts | times | {"efficiency": self.efficiency}


_SECONDS: Final = {
    "wall": "wall_seconds",
    "slot_time": "core_seconds",
    "good": "good_core_seconds",
    "lost": "lost_core_seconds",
    "cpu": "cpu_seconds",
    "uncharged": "uncharged_core_seconds",
}


class UsageTable(msgspec.Struct, frozen=True, kw_only=True):
    """A report."""

    by: list[str]
    """One or two of `AXES`."""
    slices: Slices
    rows: list[UsedResources]
    total: UsedResources


def asked(by: Iterable[str]) -> list[Axis]:
    """What accounting is asked to add up by: it knows slices of time, and not which of them are days."""
    axes: list[Axis] = []
    for one in by:
        match one:
            case "owner" | "group" | "project" | "machine":
                axes.append(one)
            case _:
                axes.append("time")
    return axes


def ledger(by: list[str], slices: Slices, rows: Iterable[UsageRow]) -> UsageTable:
    """What accounting answered, with names and totals."""
    total = UsedResources(names=["total", *[""] * (len(by) - 1)])
    found: list[UsedResources] = []
    for row in rows:
        names = [slices.names[key] if isinstance(key, int) else key for key in row.key]
        used = UsedResources(names=names, jobs=row.jobs, attempts=row.attempts)
        for amount in _AMOUNTS:
            setattr(used, amount, getattr(row, amount))
        for amount in ("jobs", "attempts", *_AMOUNTS):
            setattr(total, amount, getattr(total, amount) + getattr(used, amount))
        found.append(used)
    return UsageTable(by=by, slices=slices, rows=found, total=total)


def columns(by: Sequence[str]) -> Mapping[str, type]:
    """The columns of an export, with their types."""
    kinds: dict[str, type] = dict.fromkeys(by, str)
    kinds |= {"jobs": int, "attempts": int}
    return kinds | dict.fromkeys((*_SECONDS.values(), "efficiency"), float)


def plot(found: UsageTable) -> Plot:
    """
    Core hours of each day or month, as a line for each of what it is crossed with. Raises ValueError if it has no days.
    """
    period = next(number for number, axis in enumerate(found.by) if axis in PERIODS)
    times = [at / _US for at in found.slices.cuts[:-1]]
    place = {name: number for number, name in enumerate(found.slices.names)}
    series: dict[str, list[float | None]] = {}
    for row in found.rows:
        other = next((name for number, name in enumerate(row.names) if number != period), "all")
        line = series.setdefault(other or "-", [0.0] * len(times))
        line[place[row.names[period]]] = row.hours("slot_time")
    return Plot(title=f"Core hours by {' and '.join(found.by)}", times=times, series=series)
