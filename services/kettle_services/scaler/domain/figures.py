"""Pools of workers in figures, as metrics and pages show them."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final, Literal

from kettle_services.scaler.domain.leases.book import Book, standing
from kettle_services.scaler.domain.leases.breakers import ProviderRecord
from kettle_services.scaler.domain.leases.lease import COMING, SERVING, Lease
from kettle_services.scaler.domain.pools import PoolState
from kettle_wire.events.plan import Obstacle, PlanMade, PlannedMachines, WaitingJobs
from kettle_wire.leases import LeaseState
from kettle_wire.worker_pools import HostState, WorkerPool

Phase = Literal["wanted", "coming", "ready", "leaving"]
OfferState = Literal["open", "trial", "closed"]
BreakerState = Literal["open", "trial", "closed", "frozen"]
Fate = Literal["free", "coming", "planned", "limited", "young", "bounded", "impossible"]

_NEVER: Final = frozenset({Obstacle.CLAUSE, Obstacle.LIFE, Obstacle.OWNER, Obstacle.SCALING})
"""What no time and no money changes."""
_UNANSWERED: Final = frozenset({LeaseState.SUBMITTING, LeaseState.IN_DOUBT})


def machines(pool: str, leases: Iterable[Lease], plan: PlanMade | None) -> dict[str, int]:
    """
    How many machines a pool has and wants, by `Phase`.

    `wanted` are those that come or take jobs, and those that the plan would ask for if no bound kept it from that.
    """
    found = {"wanted": 0, "coming": 0, "ready": 0, "leaving": 0}
    for lease in leases:
        if lease.requested.pool == pool:
            found[phase_of(lease)] += 1
    more = kept_back(pool, plan.machines) if plan is not None else 0
    return {**found, "wanted": found["coming"] + found["ready"] + more}


def with_hosts(counted: Mapping[str, int], hosts: Mapping[str, int]) -> dict[str, int]:
    """How many machines a pool has and wants, with those that are there, by their states."""
    coming, ready = hosts.get(HostState.WAKING, 0), hosts.get(HostState.AWAKE, 0)
    more = {"coming": coming, "ready": ready, "wanted": coming + ready}
    more["leaving"] = hosts.get(HostState.HIBERNATING, 0)
    return {phase: count + more.get(phase, 0) for phase, count in counted.items()}


def kept_back(pool: str, planned: Iterable[PlannedMachines]) -> int:
    """Machines of a pool that a plan would ask for if no bound kept it from that."""
    return sum(max(0, one.wanted - one.machines) for one in planned if one.pool == pool)


def phase_of(lease: Lease) -> Phase:
    """Whether a machine comes, takes jobs, or goes."""
    if lease.state in SERVING:
        return "ready"
    return "coming" if lease.state in COMING and not lease.unwanted else "leaving"


def offers(state: PoolState, book: Book, now: float) -> dict[OfferState, int]:
    """How many offers of a pool are used, tried with one machine, and not used."""
    found: dict[OfferState, int] = {"open": 0, "trial": 0, "closed": 0}
    for offer in state.pool.offers:
        limit = standing(book, state.pool.name, offer, now).limit
        found["open" if limit is None else "trial" if limit else "closed"] += 1
    return found


def breaker(record: ProviderRecord | None, now: float) -> BreakerState:
    """Whether a provider is used."""
    if record is None:
        return "open"
    if record.closed is not None:
        return "trial" if record.closed.is_over(now) else "closed"
    return "frozen" if record.frozen > now else "open"


def oldest_intent(leases: Iterable[Lease], now: float) -> float:
    """
    Seconds since a provider was asked for the machine whose answer has been missing for the longest time; 0: none is.
    """
    return max((now - lease.asked for lease in leases if lease.state in _UNANSWERED), default=0.0)


def demand(plan: PlanMade | None) -> dict[Fate, int]:
    """What becomes of the jobs that a plan looked at."""
    found = Counter[Fate]()
    for each in plan.waiting if plan is not None else ():
        found.update(fates(each))
    return {
        "free": found["free"],
        "coming": found["coming"],
        "planned": found["planned"],
        "limited": found["limited"],
        "young": found["young"],
        "bounded": found["bounded"],
        "impossible": found["impossible"],
    }


def fates(waiting: WaitingJobs) -> Mapping[Fate, int]:
    """What becomes of the jobs of one kind; what is left is kept back for now, or for good."""
    known: dict[Fate, int] = {
        "free": waiting.free,
        "coming": waiting.coming,
        "planned": waiting.planned,
        "limited": waiting.limited,
        "young": waiting.young,
    }
    left = max(0, waiting.jobs - sum(known.values()))
    rest: Fate = "impossible" if is_impossible(waiting) else "bounded"
    known[rest] = left
    return known


def waiting_for(pool: str, leases: Iterable[Lease], plan: PlanMade | None) -> int:
    """
    Idle jobs that wait for machines of a pool: those for which some come, and those that are left over and could run on some.
    """
    coming = [each for each in leases if each.requested.pool == pool and phase_of(each) == "coming"]
    found = sum(demand.jobs for each in coming for demand in each.requested.demand)
    for each in plan.waiting if plan is not None else ():
        obstacles = [one.obstacle for one in each.obstacles if one.pool == pool]
        if not each.fault and any(one not in _NEVER for one in obstacles):
            found += fates(each).get("bounded", 0)
    return found


def is_impossible(waiting: WaitingJobs) -> bool:
    """Whether no offer can hold the jobs, however long they wait."""
    return bool(waiting.fault) or all(each.obstacle in _NEVER for each in waiting.obstacles)


def currency_of(pool: WorkerPool) -> str:
    """The currency of its prices, which is one; empty: it has none."""
    return pool.currency or next((offer.currency for offer in pool.offers if offer.price), "")
