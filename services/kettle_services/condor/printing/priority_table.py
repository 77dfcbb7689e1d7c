"""The tables and the ads of condor_userprio."""

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

from kettle_services.condor.printing.values import number
from kettle_wire.ads.types import Ad
from kettle_wire.commands.negotiator import GroupStanding, Priorities, Priority

DAY_S: Final = 24 * 3600.0
_HOUR_S: Final = 3600.0
_NOBODY: Final = "<none>"


class PriorityRow(NamedTuple):
    """A user, or an accounting group."""

    name: str
    standing: Priority | None
    group: GroupStanding | None


class _Column(NamedTuple):
    """Titles one above the other, a width, and what stands in a line."""

    titles: tuple[str, str]
    width: int
    cell: Callable[[PriorityRow, float], str]


def _of(standing: Callable[[Priority, float], str]) -> Callable[[PriorityRow, float], str]:
    return lambda line, now: "" if line.standing is None else standing(line.standing, now)


def _quota(group: Callable[[GroupStanding], str]) -> Callable[[PriorityRow, float], str]:
    return lambda line, _now: "" if line.group is None else group(line.group)


def _moment(at: float) -> str:
    return time.strftime("%m/%d/%Y %H:%M", time.localtime(at)).removeprefix("0") if at else "never"


def _ago(one: Priority, now: float) -> str:
    if one.weight or one.slots:
        return "<now>"
    return _span(now - one.last) if one.last else "never"


def _span(seconds: float) -> str:
    minutes = max(0, int(seconds)) // 60
    return f"{minutes // 1440}+{minutes // 60 % 24:02}:{minutes % 60:02}"


_COLUMNS: Final = {
    "effective": _Column(("Effective", "Priority"), 12, _of(lambda one, _: f"{one.effective:.2f}")),
    "real": _Column(("Real", "Priority"), 8, _of(lambda one, _: f"{one.priority:.2f}")),
    "factor": _Column(("Priority", "Factor"), 9, _of(lambda one, _: f"{one.factor:.2f}")),
    "used": _Column(("Res", "In Use"), 6, _of(lambda one, _: f"{one.slots:.0f}")),
    "weighted": _Column(("Weighted", "In Use"), 8, _of(lambda one, _: f"{one.weight:.2f}")),
    "usage": _Column(
        ("Total Usage", "(wghted-hrs)"), 12, _of(lambda one, _: f"{one.weighted_accumulated / _HOUR_S:.2f}")
    ),
    "began": _Column(("Usage", "Start Time"), 16, _of(lambda one, _: _moment(one.begun))),
    "last": _Column(("Last", "Usage Time"), 16, _of(lambda one, _: _moment(one.last))),
    "ago": _Column(("Time Since", "Last Usage"), 10, _of(_ago)),
    "floor": _Column(("Submitter", "Floor"), 9, _of(lambda one, _: f"{one.floor:.2f}" if one.floor else "")),
    "ceiling": _Column(
        ("Submitter", "Ceiling"), 9, _of(lambda one, _: f"{one.ceiling:.2f}" if one.ceiling >= 0 else "")
    ),
    "config": _Column(("Config", "Quota"), 9, _quota(lambda group: f"{group.config_quota:.2f}")),
    "quota": _Column(("Effective", "Quota"), 9, _quota(lambda group: f"{group.quota:.2f}")),
    "surplus": _Column(("Use", "Surplus"), 7, _quota(lambda group: "yes" if group.accept_surplus else "no")),
    "subtree": _Column(("Subtree", "Quota"), 9, _quota(lambda group: f"{group.subtree_quota:.2f}")),
    "requested": _Column(("Requested", "Resources"), 9, _quota(lambda group: f"{group.requested:.2f}")),
}
_QUOTAS: Final = ("quota", "config", "surplus", "subtree", "requested")
_SHOWN: Final = {
    "priority": ("effective", "real", "factor"),
    "usage": ("used", "usage", "began", "last"),
    "quotas": ("effective", *_QUOTAS),
    "most": ("effective", "factor", "used", "usage", "ago"),
    "all": (
        "effective", "real", "factor", "used", "weighted", "usage", "began", "last", "ago", "floor", "ceiling",
    ),
}  # fmt: skip
"""By option the columns; those of quotas are in `all` only if there are groups."""


def rows(found: Priorities, *, since: float | None, flat: bool, only_groups: bool) -> list[PriorityRow]:
    """
    Who is to be shown: groups, each followed by its users, then those who are in none.

    `since`: users who have used the pool then or later, in seconds since 1970.
    """
    users = [one for one in found.submitters if since is None or one.weight or one.slots or one.last >= since]
    if flat or not found.groups:
        return [] if only_groups else [PriorityRow(one.name, one, None) for one in users]
    lines: list[PriorityRow] = []
    for group in found.groups:
        own = [one for one in users if (one.group or _NOBODY) == group.name]
        if group.name != _NOBODY or own or only_groups:
            lines.append(PriorityRow(group.name, group.standing, group))
        if not only_groups:
            lines += [PriorityRow(f"  {one.name}", one, None) for one in own]
    return lines


def table(
    found: Priorities, lines: Sequence[PriorityRow], which: str, *, since: float | None
) -> Iterator[str]:
    """The lines of a table."""
    names = _SHOWN[which] + (_QUOTAS if which == "all" and any(line.group for line in lines) else ())
    columns = [_COLUMNS[name] for name in names]
    first = max(18, *(len(line.name) for line in lines), 0) if lines else 18
    groups = any(line.group for line in lines)
    heads = ("Group" if groups else "", "  User Name" if groups else "User Name")
    rule = " ".join(["-" * first, *("-" * column.width for column in columns)]) + "\n"
    yield f"Last Priority Update: {time.strftime('%m/%d %H:%M', time.localtime(found.at))}\n"
    for i, head in enumerate(heads):
        cells = [column.titles[i].center(column.width) for column in columns]
        yield " ".join([head.ljust(first), *cells]).rstrip() + "\n"
    yield rule
    for line in lines:
        cells = [column.cell(line, found.at).rjust(column.width) for column in columns]
        yield " ".join([line.name.ljust(first), *cells]).rstrip() + "\n"
    yield rule
    yield _last(lines, names, first, since, found.at)


def _last(
    lines: Sequence[PriorityRow], names: Sequence[str], first: int, since: float | None, now: float
) -> str:
    """How many users, and what they have together."""
    users = [line.standing for line in lines if line.group is None and line.standing is not None]
    totals = {
        "used": f"{sum(one.slots for one in users):.0f}",
        "weighted": f"{sum(one.weight for one in users):.2f}",
        "usage": f"{sum(one.weighted_accumulated for one in users) / _HOUR_S:.2f}",
        "ago": "" if since is None else _span(now - since),
    }
    cells = [totals.get(name, "").rjust(_COLUMNS[name].width) for name in names]
    return " ".join([f"Number of users: {len(users)}".ljust(first), *cells]).rstrip() + "\n"


def ads(found: Priorities) -> list[Ad]:
    """What HTCondor's collector has of them: an ad of type Accounting for each user, and for each group."""
    return [_ad(one) for one in found.submitters] + [_group_ad(group) for group in found.groups]


def _ad(one: Priority) -> Ad:
    return {
        "MyType": "Accounting",
        "Name": one.name,
        "Priority": one.effective,
        "PriorityFactor": one.factor,
        "RealPriority": one.priority,
        "ResourcesUsed": int(one.slots),
        "WeightedResourcesUsed": one.weight,
        "AccumulatedUsage": one.accumulated,
        "WeightedAccumulatedUsage": one.weighted_accumulated,
        "BeginUsageTime": int(one.begun),
        "LastUsageTime": int(one.last),
        "AccountingGroup": one.group or _NOBODY,
        "IsAccountingGroup": False,
        "Floor": one.floor,
        "Ceiling": one.ceiling,
    }


def _group_ad(group: GroupStanding) -> Ad:
    own: Ad = _ad(group.standing) if group.standing is not None else {"MyType": "Accounting"}
    return own | {
        "Name": group.name,
        "AccountingGroup": group.name,
        "IsAccountingGroup": True,
        "ConfigQuota": group.config_quota,
        "EffectiveQuota": group.quota,
        "SubtreeQuota": group.subtree_quota,
        "GroupSortKey": group.sort_key,
        "SurplusPolicy": "byquota" if group.accept_surplus else "no",
        "Requested": group.requested,
    }


def resources(slots: Sequence[Ad]) -> Iterator[str]:
    """What a user has, a line for each slot."""
    width = max([len("Resource Name"), *(len(str(ad.get("Name"))) for ad in slots)])
    yield f"{'Resource Name'.ljust(width)}  Start Time\n"
    yield f"{'-' * width}  {'-' * 16}\n"
    for ad in slots:
        yield f"{str(ad.get('Name')).ljust(width)}  {_moment(number(ad, 'EnteredCurrentState'))}\n"
    yield f"Number of Resources Used: {len(slots)}\n"
