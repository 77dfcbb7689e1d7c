"""Shares, usage and priorities of submitters, now and over time, as `kettle fairshare` has them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import msgspec

from kettle import fairshare
from kettle_services.cli.output.plots import Plot
from kettle_wire.commands.negotiator import GroupStanding

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from kettle_services.cli.reports.submitter_samples import Samples
    from kettle_wire.commands.negotiator import Priorities

Metric: TypeAlias = Literal["usage", "share", "priority", "hours"]
METRICS: Final[tuple[Metric, ...]] = ("usage", "share", "priority", "hours")
_TITLES: Final = {
    "usage": "In use, in slot weights",
    "share": "Share of the pool, or of the accounting group",
    "priority": "Effective priority (smaller is better)",
    "hours": "Used so far, in hours of slot weights",
}


class Submitter(msgspec.Struct, frozen=True, kw_only=True):
    """How one stands now."""

    name: str
    group: str
    share: float
    """Of its accounting group, or of the pool; all together are 1."""
    part: float
    """Of all that is in use."""
    used: float
    """In slot weights."""
    effective: float
    priority: float
    factor: float
    hours: float
    """Used so far, weighted."""


class StandingHistory(msgspec.Struct, frozen=True, kw_only=True):
    """
    How submitters stood at moments, seconds since the epoch; None: nothing is recorded of somebody by then.
    """

    times: list[float]
    usage: dict[str, list[float | None]]
    share: dict[str, list[float | None]]
    priority: dict[str, list[float | None]]
    """Effective: with the factor that an administrator had set by then, else with that of now."""
    hours: dict[str, list[float | None]]


class FairShare(msgspec.Struct, frozen=True, kw_only=True):
    """What the command says."""

    at: float
    half_life: float
    """Seconds."""
    submitters: list[Submitter]
    """Those with the largest share first."""
    groups: list[GroupStanding]
    past: StandingHistory | None = None


def fair_share(now: Priorities, names: Sequence[str] = ()) -> FairShare:
    """How submitters stand now; `names`: only these, with their shares among all."""
    part = fairshare.shares_in_groups(
        {one.name: one.effective for one in now.submitters}, {one.name: one.group for one in now.submitters}
    )
    total = math.fsum(one.weight for one in now.submitters) or 1.0
    submitters = [
        Submitter(
            name=one.name,
            group=one.group,
            share=part[one.name],
            part=one.weight / total,
            used=one.weight,
            effective=one.effective,
            priority=one.priority,
            factor=one.factor,
            hours=one.weighted_accumulated / 3600,
        )
        for one in now.submitters
        if not names or one.name in names
    ]
    return FairShare(
        at=now.at,
        half_life=now.half_life,
        submitters=sorted(submitters, key=lambda one: (one.group, -one.share, one.name)),
        groups=[] if names else now.groups,
    )


def past_of(samples: Samples, now: FairShare, names: Iterable[str] = ()) -> StandingHistory:
    """What was sampled from the log, of those who are known now or are named; those who had most first."""
    factors = {one.name: one.factor for one in now.submitters}
    groups = {one.name: one.group for one in now.submitters}
    wanted = list(names) or list(factors)
    past = StandingHistory(times=list(samples.moments), usage={}, share={}, priority={}, hours={})
    effective = [
        {
            name: fairshare.effective_priority(one.priority, one.factor or factors[name])
            for name, one in stood.items()
            if name in factors
        }
        for stood in samples.stood
    ]
    part = [fairshare.shares_in_groups(each, groups) for each in effective]
    for name in wanted:
        stood = [each.get(name) for each in samples.stood]
        past.usage[name] = [None if one is None else one.weight for one in stood]
        past.hours[name] = [None if one is None else one.accumulated / 3600 for one in stood]
        past.share[name] = [each.get(name) for each in part]
        past.priority[name] = [each.get(name) for each in effective]
    return past


def with_past(found: FairShare, past: StandingHistory) -> FairShare:
    """The report with the history added."""
    return msgspec.structs.replace(found, past=past)


def plot(past: StandingHistory, metric: str) -> Plot:
    """One of the metrics, the largest on average first."""
    series: dict[str, list[float | None]] = getattr(past, metric)
    order = sorted(series, key=lambda name: -math.fsum(n for n in series[name] if n is not None))
    return Plot(title=_TITLES[metric], times=past.times, series={name: series[name] for name in order})
