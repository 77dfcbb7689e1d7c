"""
What the machines of a pool were used for: how much was provided, how much of it was used, and who pays for it.
"""

from collections import defaultdict
from collections.abc import Sequence

import msgspec

from kettle_wire.commands.accounting import UsageRow
from kettle_wire.commands.worker_pools import LeaseShown

_HOUR_S = 3600.0


class OwnerShare(msgspec.Struct, frozen=True, kw_only=True):
    """What one person used of the machines of a pool; times in core-seconds."""

    owner: str
    """Empty: what ran no job at all."""
    jobs: int
    used: float
    lost: float
    """Of `used`, what attempts took that ended early."""
    cost: float
    """Of the machines, in proportion to what was used of each, with what was idle there."""


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
    owners: list[OwnerShare]
    """The one who used most first."""


def figures(leases: Sequence[LeaseShown], usage: Sequence[UsageRow], *, now: float) -> PoolFigures:
    """Add it up; `usage` by machine and owner, in microseconds."""
    there = [lease for lease in leases if lease.accepted]
    provided = {lease.lease: ((lease.ended or now) - lease.accepted) * lease.cpus for lease in there}
    costs = {lease.lease: lease.cost for lease in there}
    used_of: defaultdict[str, float] = defaultdict(float)
    for row in usage:
        used_of[str(row.key[0])] += row.slot_time / 1e6
    used = sum(used_of.values())
    boots = sorted(lease.ready - lease.accepted for lease in there if lease.ready)
    total = sum(provided.values())
    return PoolFigures(
        machines=len(there),
        failed=sum(
            bool(lease.ended) and not lease.ready and (bool(lease.accepted) or lease.error is not None)
            for lease in leases
        ),
        provided=total,
        used=used,
        idle=max(0.0, total - used),
        boot=boots[len(boots) // 2] if boots else 0.0,
        ratio=total / used if used else 0.0,
        cost=sum(costs.values()),
        currency=next((lease.currency for lease in there if lease.currency), ""),
        owners=_shares(usage, used_of, costs),
    )


def _shares(
    usage: Sequence[UsageRow], used_of: dict[str, float], costs: dict[str, float]
) -> list[OwnerShare]:
    by_owner: defaultdict[str, list[tuple[UsageRow, float]]] = defaultdict(list)
    for row in usage:
        machine, owner = map(str, row.key)
        part = row.slot_time / 1e6 / used_of[machine] if used_of[machine] else 0.0
        by_owner[owner].append((row, part * costs.get(machine, 0.0)))
    shares = [
        OwnerShare(
            owner=owner,
            jobs=sum(row.jobs for row, _ in rows),
            used=sum(row.slot_time for row, _ in rows) / 1e6,
            lost=sum(row.lost for row, _ in rows) / 1e6,
            cost=sum(cost for _, cost in rows),
        )
        for owner, rows in by_owner.items()
    ]
    shares.sort(key=lambda each: (-each.used, each.owner))
    nobody = sum(cost for machine, cost in costs.items() if not used_of.get(machine))
    if nobody:
        shares.append(OwnerShare(owner="", jobs=0, used=0.0, lost=0.0, cost=nobody))
    return shares
