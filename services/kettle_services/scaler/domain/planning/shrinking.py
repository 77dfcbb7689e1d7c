"""Which leases end: what is not needed, first what costs nothing to give up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kettle_services.scaler.domain.planning.bounds import bill
from kettle_services.scaler.domain.planning.inputs import is_coming, serves
from kettle_services.scaler.domain.planning.launches import patience_of
from kettle_wire.events.lease import Shape
from kettle_wire.events.plan import Removal, RemovalCause
from kettle_wire.leases import LeaseState
from kettle_wire.worker_pools import PoolKind, ScaleDown, WorkerPool

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from kettle_services.scaler.domain.leases.lease import Lease
    from kettle_services.scaler.domain.planning.inputs import Inputs
    from kettle_services.scaler.domain.pools import PoolState

_ALONE_S: Final = 30.0
"""A machine that was made for one job is of no use to others: without one it stays no longer."""
_SETTLES_S: Final = 600.0
"""So long after a machine was asked for its pool is not made smaller, or as long as its machines may be idle."""
_QUEUED: Final = frozenset({LeaseState.REQUESTED, LeaseState.ACCEPTED})
"""A batch system has not begun with it."""


def removals(
    inputs: Inputs,
    needed: AbstractSet[str],
    growing: AbstractSet[str],
    sparse: AbstractSet[str] = frozenset(),
) -> list[Removal]:
    """
    What goes, pool by pool. `needed`: leases on which something will run; `growing`: pools that this plan makes larger, and
    therefore not smaller; `sparse`: leases whose jobs have room elsewhere.
    """
    found: list[Removal] = []
    for state in inputs.pools:
        if state.pool.name not in growing and state.pool.kind is not PoolKind.STATIC:
            found += _of_pool(inputs, state, needed, sparse)
    return found[: inputs.max_actions]


def next_idle(leases: Iterable[Lease], pools: Mapping[str, PoolState], now: float) -> float:
    """
    In how many seconds the next machine has been idle for as long as its pool lets it; infinite: none will be.
    """
    ends = (
        lease.used + pools[lease.requested.pool].pool.idle - now
        for lease in leases
        if lease.state is LeaseState.READY and lease.requested.pool in pools
    )
    return min((seconds for seconds in ends if seconds > 0), default=float("inf"))


def _of_pool(
    inputs: Inputs, state: PoolState, needed: AbstractSet[str], sparse: AbstractSet[str]
) -> list[Removal]:
    pool, leases = state.pool, inputs.of_pool(state.pool.name)
    wanted = [lease for lease in leases if is_coming(lease) or serves(lease)]
    force = pool.scale_down is ScaleDown.FORCE
    if state.drains:
        return [_removal(lease, RemovalCause.POOL, force=force) for lease in wanted]
    if pool.budget and bill(inputs, pool.name).spent >= pool.budget:
        return [_removal(lease, RemovalCause.BUDGET, force=force) for lease in wanted]
    wanted.sort(key=lambda lease: _order(pool, lease))
    found = {removal.lease: removal for removal in _broken_gangs(inputs, wanted)}
    found |= {
        removal.lease: removal for removal in _beyond(pool, wanted, len(wanted) - len(found) - pool.max)
    }
    if not inputs.sound:
        return list(found.values())
    kept = [lease for lease in wanted if lease.id not in found]
    for removal in _unneeded(inputs, pool, kept, needed):
        found.setdefault(removal.lease, removal)
    if sum(lease.id not in found for lease in kept) > pool.min:
        for lease in kept:
            if (
                lease.id in sparse
                and inputs.now - inputs.sparse.get(lease.id, inputs.now) >= pool.consolidate
            ):
                found.setdefault(lease.id, _removal(lease, RemovalCause.SPARSE))
    return list(found.values())


def _order(pool: WorkerPool, lease: Lease) -> tuple[int, bool, float, float, str]:
    """
    What is given up first: what is not there yet, what has no job, what is made no more, what costs most, what ends
    soon.
    """
    stage = 0 if lease.state is LeaseState.REQUESTED else 1 if is_coming(lease) else 2
    stage += lease.state is LeaseState.BUSY
    current = any(offer == lease.offer for offer in pool.offers)
    return stage, current, -lease.offer.price, lease.ends, lease.id


def _broken_gangs(inputs: Inputs, leases: Sequence[Lease]) -> Iterator[Removal]:
    """Machines that wait for others of their gang that did not come in time."""
    gangs: dict[str, list[Lease]] = {}
    for lease in leases:
        if lease.requested.gang:
            gangs.setdefault(lease.requested.gang, []).append(lease)
    for members in gangs.values():
        late = max(lease.requested.gang_deadline for lease in members) <= inputs.now
        there = [lease for lease in members if serves(lease)]
        if late and len(there) < members[0].requested.gang_size:
            yield from (
                _removal(lease, RemovalCause.GANG) for lease in members if lease.state is not LeaseState.BUSY
            )


def _beyond(pool: WorkerPool, leases: Sequence[Lease], excess: int) -> list[Removal]:
    """So many are more than its pool may have."""
    force = pool.scale_down is ScaleDown.FORCE
    free = [lease for lease in leases if force or lease.state is not LeaseState.BUSY]
    if pool.scale_down is ScaleDown.STOP_ASKING:
        free = [lease for lease in free if lease.state in _QUEUED]
    return [_removal(lease, RemovalCause.MAX, force=force) for lease in free[: max(0, excess)]]


def _unneeded(
    inputs: Inputs, pool: WorkerPool, leases: Sequence[Lease], needed: AbstractSet[str]
) -> Iterator[Removal]:
    left = len(leases)
    idle = sum(lease.state is not LeaseState.BUSY and lease.id not in needed for lease in leases)
    settled = inputs.now - max((lease.made for lease in leases), default=0.0) >= min(_SETTLES_S, pool.idle)
    for lease in leases:
        cause = None if lease.id in needed else _cause(inputs, pool, lease, settled=settled)
        cause = cause or _impatience(inputs, lease)
        if cause is None:
            continue
        if cause is not RemovalCause.PATIENCE and (left <= pool.min or idle <= pool.spare):
            continue
        left -= 1
        idle -= 1
        yield _removal(lease, cause)


def _cause(inputs: Inputs, pool: WorkerPool, lease: Lease, *, settled: bool) -> RemovalCause | None:
    """
    Why a lease is to go on which nothing will run; None: it stays.  What a person has ordered is not given up before it has been there:
    he knows of work that does not wait yet.
    """
    queued = {LeaseState.REQUESTED} if pool.scale_down is not ScaleDown.STOP_ASKING else _QUEUED
    if lease.state in queued:
        return None if lease.requested.by else RemovalCause.UNNEEDED
    if lease.state is not LeaseState.READY or pool.scale_down is ScaleDown.STOP_ASKING or not settled:
        return None
    if inputs.now - lease.ready < pool.least_life:
        return None
    alone = lease.requested.shape is Shape.DEDICATED
    limit = min(pool.idle, _ALONE_S) if alone else pool.idle
    return RemovalCause.IDLE if inputs.now - lease.used >= limit else None


def _impatience(inputs: Inputs, lease: Lease) -> RemovalCause | None:
    """
    Whether the jobs that a machine is made for have waited for it long enough, whether they would still run on it or
    not.
    """
    patience = patience_of(lease.requested)
    if not patience or lease.state is LeaseState.BUSY:
        return None
    since = lease.used if serves(lease) else lease.made
    return RemovalCause.PATIENCE if inputs.now - since >= patience else None


def _removal(lease: Lease, cause: RemovalCause, *, force: bool = False) -> Removal:
    return Removal(pool=lease.requested.pool, lease=lease.id, cause=cause, force=force)
