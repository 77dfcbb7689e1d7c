"""
What the machines of a pool were used for: how much was provided, how much of it was used, and who pays for it.

A machine costs its price for as long as its provider had it.  Who has used a part of its core time has claimed that part of the cost;
what was idle is shared among those who have used the machine, in proportion to what they used.  A machine that nobody used is
paid by nobody.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Final

import msgspec

from kettle_wire.commands.accounting import UsageRow
from kettle_wire.commands.worker_pools import LeaseShown

_HOUR_S: Final = 3600.0
_DAY_S: Final = 86_400.0


class Share(msgspec.Struct, frozen=True, kw_only=True):
    """What one owner, or one job, used of the machines of a pool; times in core-seconds."""

    name: str
    """Of the owner or the job; empty: of machines that ran no job at all."""
    jobs: int
    used: float
    lost: float
    """Of `used`, what attempts took that ended early."""
    claimed: float
    """The price of what was used."""
    cost: float
    """With the part of what was idle on the same machines."""


class DayCost(msgspec.Struct, frozen=True):
    """What the machines of a pool cost on one day (UTC)."""

    day: str
    """As 2026-11-26."""
    cost: float


class PoolFigures(msgspec.Struct, frozen=True, kw_only=True):
    """Machines of a pool over some time; times in core-seconds."""

    machines: int
    """That were there, or are."""
    failed: int
    """Of those that providers were asked for, those that never became ready; what was withdrawn before is not counted."""
    provided: float
    """From the moment on at which providers had the machines, until they were gone."""
    used: float
    """By attempts that ended."""
    idle: float
    boot: float
    """Seconds in which half of the machines were ready; 0: none was."""
    ratio: float
    """Over-provisioning: provided for each core-second used; 0: nothing was used."""
    cost: float
    currency: str
    shares: list[Share]
    """The one who used most first."""
    days: list[DayCost]
    """Those on which there were machines that cost something, in order."""


def figures(leases: Sequence[LeaseShown], usage: Sequence[UsageRow], *, now: float) -> PoolFigures:
    """Add it up; `usage` by machine and owner or job, in microseconds."""
    there = [lease for lease in leases if lease.accepted]
    provided = sum(((lease.ended or now) - lease.accepted) * lease.cpus for lease in there)
    used = sum(row.slot_time for row in usage) / 1e6
    boots = sorted(lease.ready - lease.accepted for lease in there if lease.ready)
    return PoolFigures(
        machines=len(there),
        failed=sum(
            bool(lease.ended) and not lease.ready and (bool(lease.accepted) or lease.error is not None)
            for lease in leases
        ),
        provided=provided,
        used=used,
        idle=max(0.0, provided - used),
        boot=boots[len(boots) // 2] if boots else 0.0,
        ratio=provided / used if used else 0.0,
        cost=sum(lease.cost for lease in there),
        currency=next((lease.currency for lease in there if lease.currency), ""),
        shares=_shares(usage, there),
        days=list(_days(there, now)),
    )


def _shares(usage: Sequence[UsageRow], leases: Sequence[LeaseShown]) -> list[Share]:
    machines = {lease.lease: lease for lease in leases}
    used_of: defaultdict[str, float] = defaultdict(float)
    rows_of: defaultdict[str, list[UsageRow]] = defaultdict(list)
    for row in usage:
        machine, name = map(str, row.key)
        used_of[machine] += row.slot_time
        rows_of[name].append(row)

    def cost(row: UsageRow) -> float:
        machine = str(row.key[0])
        lease, used = machines.get(machine), used_of[machine]
        return lease.cost * row.slot_time / used if lease is not None and used else 0.0

    def claimed(row: UsageRow) -> float:
        lease = machines.get(str(row.key[0]))
        return lease.price / _HOUR_S * row.slot_time / 1e6 / lease.cpus if lease is not None else 0.0

    shares = [
        Share(
            name=name,
            jobs=sum(row.jobs for row in rows),
            used=sum(row.slot_time for row in rows) / 1e6,
            lost=sum(row.lost for row in rows) / 1e6,
            claimed=sum(map(claimed, rows)),
            cost=sum(map(cost, rows)),
        )
        for name, rows in rows_of.items()
    ]
    shares.sort(key=lambda each: (-each.used, each.name))
    nobody = sum(lease.cost for lease in leases if not used_of.get(lease.lease))
    if nobody:
        shares.append(Share(name="", jobs=0, used=0.0, lost=0.0, claimed=0.0, cost=nobody))
    return shares


def _days(leases: Iterable[LeaseShown], now: float) -> Iterable[DayCost]:
    """What was spent on each day, which begins at midnight UTC."""
    costs: defaultdict[float, float] = defaultdict(float)
    for lease in leases:
        at, end = lease.accepted, lease.ended or now
        while lease.price and at < end:
            day = at - at % _DAY_S
            until = min(end, day + _DAY_S)
            costs[day] += lease.price * (until - at) / _HOUR_S
            at = until
    for day in sorted(costs):
        yield DayCost(f"{datetime.fromtimestamp(day, UTC):%Y-%m-%d}", costs[day])
