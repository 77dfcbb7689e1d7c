"""
Which machines have few jobs, so that others could have them: nothing of a job is moved, but no new one is to come there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kettle_wire.events.lease import Shape
from kettle_wire.leases import LeaseState

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from kettle.classad.columnar import Table
    from kettle_services.scaler.domain.leases.lease import Lease
    from kettle_services.scaler.domain.planning.inputs import Inputs

    Amount = tuple[float, float]
    """Cores and memory."""


def sparse(table: Table, inputs: Inputs) -> frozenset[str]:
    """
    Of each pool that consolidates, the machine with jobs that has least of them, if the other machines with jobs have room for each of
    these.
    """
    pools = [state.pool.name for state in inputs.pools if state.pool.consolidate and not state.drains]
    if not pools:
        return frozenset()
    free, used = _use(table)
    found: set[str] = set()
    for name in pools:
        busy = [lease for lease in inputs.of_pool(name) if _is_shared(lease) and lease.id in free]
        if len(busy) < 2:
            continue
        least = min(busy, key=lambda lease: (sum(cores for cores, _ in used.get(lease.id, ())), lease.id))
        jobs = used.get(least.id, [])
        if jobs and _fits(jobs, [free[lease.id] for lease in busy if lease is not least]):
            found.add(least.id)
    return frozenset(found)


def _is_shared(lease: Lease) -> bool:
    return (
        lease.state is LeaseState.BUSY and lease.requested.shape is Shape.SHARED and not lease.requested.gang
    )


def _use(table: Table) -> tuple[Mapping[str, Amount], Mapping[str, list[Amount]]]:
    """What machines have left, and what each of their dynamic slots has."""
    free: dict[str, Amount] = {}
    used: dict[str, list[Amount]] = {}
    whole, part = table.truths("PartitionableSlot"), table.truths("DynamicSlot")
    cores, memory = table.numbers("Cpus"), table.numbers("Memory")
    for row, key in enumerate(table.keys):
        machine, amount = key.partition(".")[0], (float(cores[row]), float(memory[row]))
        if whole[row]:
            free[machine] = amount
        elif part[row]:
            used.setdefault(machine, []).append(amount)
    return free, used


def _fits(jobs: Iterable[Amount], room: Sequence[Amount]) -> bool:
    """Whether each has a place, the largest first, wherever the first one is."""
    left = [list(each) for each in room]
    for cores, memory in sorted(jobs, reverse=True):
        place = next((each for each in left if each[0] >= cores and each[1] >= memory), None)
        if place is None:
            return False
        place[0] -= cores
        place[1] -= memory
    return True
