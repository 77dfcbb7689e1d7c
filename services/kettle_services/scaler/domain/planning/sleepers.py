"""Machines of static pools in a plan: which sleeping ones are woken, and which idle ones go to sleep."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from kettle_services.scaler.domain.planning.launches import demand_of
from kettle_wire.events.plan import PlannedSleep, PlannedWake
from kettle_wire.worker_pools import HostState

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from collections.abc import Set as AbstractSet

    from kettle.classad.columnar import Table
    from kettle_services.scaler.domain.hosts.census import Member
    from kettle_services.scaler.domain.planning.fitting import Fit
    from kettle_services.scaler.domain.planning.inputs import Inputs
    from kettle_services.scaler.domain.planning.launches import Launch
    from kettle_wire.ads.types import Ad

SHOWN_S: Final = 60.0
"""A machine that has just woken shows its slots within so many seconds, else it is not counted on."""
_COUNTED: Final = frozenset({HostState.AWAKE, HostState.WAKING})


def wakes(inputs: Inputs, launches: Iterable[Launch], fits: Sequence[Fit]) -> list[PlannedWake]:
    """
    Which machines are woken: of each offer those that have failed least, and of these the ones that have slept longest.
    """
    asleep: dict[tuple[str, str], list[Member]] = {}
    for each in inputs.members:
        if each.may_be_woken(inputs.now):
            asleep.setdefault((each.pool.name, each.offer.name), []).append(each)
    for of_offer in asleep.values():
        of_offer.sort(key=lambda each: (each.host.failures, each.host.since, each.name), reverse=True)
    found: list[PlannedWake] = []
    for launch in launches:
        one = inputs.offers[launch.offer]
        ready = asleep.get((one.pool.name, one.offer.name), [])
        for _ in range(min(launch.machines, len(ready))):
            demand = demand_of(launch, fits)
            found.append(PlannedWake(pool=one.pool.name, machine=ready.pop().name, demand=demand))
    return found


def sleeps(
    inputs: Inputs, idle: AbstractSet[str], needed: AbstractSet[str], growing: AbstractSet[str]
) -> list[PlannedSleep]:
    """
    Which machines have been idle for as long as their pool lets them, and are not needed. `idle`: those without a job now.
    """
    if not inputs.sound:
        return []
    found: list[PlannedSleep] = []
    awake = Counter(each.pool.name for each in inputs.members if each.host.state in _COUNTED)
    spare = Counter(
        each.pool.name for each in inputs.members if each.name in idle and each.token not in needed
    )
    for each in sorted(inputs.members, key=lambda each: (inputs.idle.get(each.name, 0.0), each.name)):
        pool = each.pool
        if pool.name in growing or each.name not in idle or each.token in needed:
            continue
        long = inputs.now - inputs.idle.get(each.name, inputs.now) >= pool.idle
        if not long or inputs.now < each.host.again:
            continue
        if awake[pool.name] <= pool.min or spare[pool.name] <= pool.spare:
            continue
        awake[pool.name] -= 1
        spare[pool.name] -= 1
        found.append(PlannedSleep(pool=pool.name, machine=each.name))
    return found[: inputs.max_actions]


def idle_members(table: Table, inputs: Inputs) -> frozenset[str]:
    """
    Machines all of whose slots are free, whose owners let them sleep (CanHibernate), and that are awake and not drained.
    """
    awake = {each.token: each.name for each in inputs.members if each.host.state is HostState.AWAKE}
    if not awake:
        return frozenset()
    free = table.says("State", "Unclaimed") & table.truths("CanHibernate") & ~table.truths("Draining")
    free &= ~table.truths("DynamicSlot")
    good: dict[str, bool] = {}
    for row, key in enumerate(table.keys):
        machine = key.partition(".")[0]
        if machine in awake:
            good[machine] = good.get(machine, True) and bool(free[row])
    return frozenset(awake[machine] for machine, is_free in good.items() if is_free)


def shown(table: Table, token: str) -> list[Ad]:
    """The ads of a machine's own slots: those that are not cut out of another one."""
    rows = [row for row, key in enumerate(table.keys) if key.partition(".")[0] == token]
    dynamic = table.truths("DynamicSlot")
    return [dict(table.wire(row)) for row in rows if not dynamic[row]]
