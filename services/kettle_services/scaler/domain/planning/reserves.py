"""Machines that a pool keeps although nothing waits for them: `min` in all, and `spare` without a job."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from kettle_services.scaler.domain.planning.inputs import is_coming, serves
from kettle_services.scaler.domain.planning.launches import Launch
from kettle_wire.leases import LeaseState
from kettle_wire.worker_pools import HostState

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from collections.abc import Set as AbstractSet

    from kettle_services.scaler.domain.planning.bounds import Bounds
    from kettle_services.scaler.domain.planning.inputs import Inputs
    from kettle_wire.worker_pools import WorkerPool


def reserves(
    inputs: Inputs,
    launches: Iterable[Launch],
    needed: AbstractSet[str],
    costs: Sequence[float],
    bounds: Bounds,
) -> list[Launch]:
    """
    What is missing, of the offer of each pool that costs least. `needed`: leases on which something will run; `launches`: what is
    asked for because of jobs.
    """
    more = Counter[str]()
    for launch in launches:
        more[inputs.offers[launch.offer].pool.name] += launch.machines
    found: list[Launch] = []
    for state in inputs.pools:
        pool = state.pool
        mine = [
            number
            for number, one in enumerate(inputs.offers)
            if one.pool.name == pool.name and one.grows and one.limit != 0
        ]
        useful, idle = _static(inputs, pool, needed) if pool.hibernates else _made(inputs, pool, needed)
        missing = max(pool.min - useful - more[pool.name], pool.spare - idle, 0)
        for number in sorted(mine, key=lambda offer: (costs[offer], offer)):
            machines = min(missing, bounds.room(number))
            if machines > 0:
                bounds.take(number, machines)
                found.append(Launch(offer=number, machines=machines))
                missing -= machines
    return found


def _made(inputs: Inputs, pool: WorkerPool, needed: AbstractSet[str]) -> tuple[int, int]:
    """How many machines a pool has, and how many without a job."""
    useful = [lease for lease in inputs.of_pool(pool.name) if is_coming(lease) or serves(lease)]
    idle = [lease for lease in useful if lease.id not in needed and lease.state is not LeaseState.BUSY]
    return len(useful), len(idle)


def _static(inputs: Inputs, pool: WorkerPool, needed: AbstractSet[str]) -> tuple[int, int]:
    """How many machines of a static pool are awake, and how many without a job."""
    mine = [each for each in inputs.members if each.pool.name == pool.name]
    awake = [each for each in mine if each.host.state is HostState.AWAKE]
    waking = [each for each in mine if each.host.state is HostState.WAKING]
    idle = [
        each
        for each in [*waking, *(one for one in awake if one.name in inputs.idle)]
        if each.token not in needed
    ]
    return len(awake) + len(waking), len(idle)
