"""What comes of it that jobs of one kind wait: the last plan and the leases, for each pool of workers."""

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Final

from kettle_services.scaler.domain.hosts.host import Host
from kettle_services.scaler.domain.leases.lease import COMING, Lease
from kettle_services.scaler.domain.pools import PoolState
from kettle_wire.commands.outlooks import OutlookKind, PoolOutlook
from kettle_wire.events.lease import Demand
from kettle_wire.events.plan import Bound, Obstacle, OfferObstacle, PlanMade, WaitingJobs
from kettle_wire.worker_pools import HostState

_MOST_LEASES: Final = 10
"""So many of the machines that come are named."""
_ORDER: Final = tuple(OutlookKind)
"""The most promising first."""
_KINDS: Final[Mapping[Obstacle, OutlookKind]] = {
    Obstacle.CLAUSE: OutlookKind.IMPOSSIBLE,
    Obstacle.LIFE: OutlookKind.IMPOSSIBLE,
    Obstacle.OWNER: OutlookKind.IMPOSSIBLE,
    Obstacle.SCALING: OutlookKind.IMPOSSIBLE,
    Obstacle.CLOSED: OutlookKind.CLOSED,
    Obstacle.PAUSED: OutlookKind.PAUSED,
    Obstacle.BOUND: OutlookKind.BOUNDED,
}


def waiting_jobs(plan: PlanMade, submitter: str, schedd: str, autocluster: int) -> WaitingJobs | None:
    """What a plan says of jobs of one kind, if it looked at them."""
    return next(
        (
            each
            for each in plan.waiting
            if (each.submitter, each.schedd, each.autocluster) == (submitter, schedd, autocluster)
        ),
        None,
    )


def outlooks(
    waiting: WaitingJobs,
    pools: Mapping[str, PoolState],
    leases: Mapping[str, Lease],
    hosts: Mapping[str, Host] = MappingProxyType({}),
) -> list[PoolOutlook]:
    """What each pool does about them, the most promising first."""
    found = [*_coming(waiting, leases), *_waking(waiting, hosts)]
    planned = {each.pool for each in found}
    by_pool: dict[str, list[OfferObstacle]] = {}
    for obstacle in waiting.obstacles:
        if obstacle.pool not in planned:
            by_pool.setdefault(obstacle.pool, []).append(obstacle)
    found += [_blocked(name, obstacles, pools.get(name)) for name, obstacles in by_pool.items()]
    if not found:
        found += _elsewhere(waiting, pools)
    return sorted(found, key=lambda each: (_ORDER.index(each.kind), each.pool))


def _coming(waiting: WaitingJobs, leases: Mapping[str, Lease]) -> Iterator[PoolOutlook]:
    """The machines that come for them, by pool."""
    by_pool: dict[str, list[Lease]] = {}
    for lease in leases.values():
        if lease.state in COMING and not lease.unwanted and _is_for(lease, waiting):
            by_pool.setdefault(lease.requested.pool, []).append(lease)
    for pool, coming in by_pool.items():
        coming.sort(key=expected)
        yield PoolOutlook(
            pool=pool,
            kind=OutlookKind.PLANNED,
            offer=coming[0].offer.name,
            leases=[lease.id for lease in coming[:_MOST_LEASES]],
            state=coming[0].state.value,
            next_try=expected(coming[0]),
        )


def _waking(waiting: WaitingJobs, hosts: Mapping[str, Host]) -> Iterator[PoolOutlook]:
    """The machines of static pools that are being woken for them."""
    by_pool: dict[str, list[Host]] = {}
    for host in hosts.values():
        if host.state is HostState.WAKING and _is_among(host.demand, waiting):
            by_pool.setdefault(host.pool, []).append(host)
    for pool, waking in by_pool.items():
        waking.sort(key=lambda host: (host.until, host.machine))
        yield PoolOutlook(
            pool=pool,
            kind=OutlookKind.WAKING,
            offer=waking[0].offer,
            machines=[host.machine for host in waking[:_MOST_LEASES]],
            since=waking[0].since,
            next_try=waking[0].until,
        )


def _is_for(lease: Lease, waiting: WaitingJobs) -> bool:
    return lease.id in waiting.leases or _is_among(lease.requested.demand, waiting)


def _is_among(demand: Iterable[Demand], waiting: WaitingJobs) -> bool:
    return any(
        (each.submitter, each.schedd, each.autocluster)
        == (waiting.submitter, waiting.schedd, str(waiting.autocluster))
        for each in demand
    )


def expected(lease: Lease) -> float:
    """When a machine is expected to be ready, seconds since the epoch."""
    return (lease.accepted or lease.made) + lease.offer.boot


def _blocked(pool: str, obstacles: list[OfferObstacle], state: PoolState | None) -> PoolOutlook:
    """Why no machine of a pool comes: what is the matter with its most promising offer."""
    found = min(obstacles, key=lambda each: (_ORDER.index(_kind(each)), each.until or float("inf")))
    kind, words = _kind(found), found.words
    if kind is OutlookKind.PAUSED and state is not None and state.paused is not None:
        reason = f": {state.paused.reason}" if state.paused.reason else ""
        words = f"by {state.paused.by}{reason}"
    elif kind is OutlookKind.IMPOSSIBLE:
        words = "; ".join(f"{each.offer}: {each.words or each.obstacle.value}" for each in obstacles[:4])
    return PoolOutlook(pool=pool, kind=kind, offer=found.offer, words=words, next_try=found.until)


def _kind(obstacle: OfferObstacle) -> OutlookKind:
    if obstacle.obstacle is Obstacle.BOUND and obstacle.words == Bound.BUDGET.value:
        return OutlookKind.BUDGET
    return _KINDS[obstacle.obstacle]


def _elsewhere(waiting: WaitingJobs, pools: Mapping[str, PoolState]) -> Iterator[PoolOutlook]:
    """Jobs that need no machine, or may have none yet; of all pools alike."""
    for name in pools:
        if waiting.free or waiting.coming:
            yield PoolOutlook(pool=name, kind=OutlookKind.PLANNED)
        elif waiting.limited:
            yield PoolOutlook(pool=name, kind=OutlookKind.LIMITED)
        elif waiting.young:
            yield PoolOutlook(pool=name, kind=OutlookKind.YOUNG)
