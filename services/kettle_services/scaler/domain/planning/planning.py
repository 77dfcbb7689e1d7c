"""
One plan: which machines are asked for, which go, and why each job that waits still waits.

It is a function of its inputs alone: the same inputs give the same plan.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from typing import TYPE_CHECKING, Final, TypeAlias

import msgspec
import numpy as np

from kettle_services.scaler.domain.planning.bounds import Bounds
from kettle_services.scaler.domain.planning.costs import machine_costs
from kettle_services.scaler.domain.planning.inputs import is_coming, serves
from kettle_services.scaler.domain.planning.launches import Launch, gang_of, requested
from kettle_services.scaler.domain.planning.owner_bounds import OwnerBounds, person_of
from kettle_services.scaler.domain.planning.packing import Budget, Packed, Packing, Unlimited
from kettle_services.scaler.domain.planning.reserves import reserves
from kettle_services.scaler.domain.planning.shrinking import removals
from kettle_services.scaler.domain.planning.sleepers import sleeps, wakes
from kettle_wire.events.lease import LeaseRequested, Shape
from kettle_wire.events.plan import Bound, Obstacle, OfferObstacle, PlanMade, PlannedMachines, WaitingJobs
from kettle_wire.leases import LeaseState

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import numpy.typing as npt

    from kettle_services.scaler.domain.planning.demand import Group
    from kettle_services.scaler.domain.planning.fitting import Fit, Market
    from kettle_services.scaler.domain.planning.inputs import Inputs
    from kettle_services.scaler.domain.planning.matching import Key

    Reals: TypeAlias = npt.NDArray[np.float64]
    Kind: TypeAlias = tuple[int, Shape]
    """Machines of an offer that are planned for the same use."""

_NAMED: Final = 20
"""So many leases are named for one group of jobs."""


class Demand(msgspec.Struct, frozen=True, kw_only=True):
    """What waits, and what the machines that there are will do for it."""

    groups: list[Group]
    """In the order in which they are served."""
    lasting: dict[Key, int]
    """How many jobs of each have been left over long enough to be a reason for machines."""
    needed: frozenset[str]
    """Leases on which something would run."""
    slots: int
    sparse: frozenset[str] = frozenset()
    """Leases with few jobs, for which others have room."""
    idle: frozenset[str] = frozenset()
    """Machines of static pools that are awake and have no job."""
    digest: bytes = b""
    """Of the slots that were looked at."""


class Plan(msgspec.Struct, frozen=True):
    """What is recorded together."""

    made: PlanMade
    leases: list[LeaseRequested]
    sparse: frozenset[str] = frozenset()
    """Machines with few jobs, for which others have room: to be given to the next plan, with when they were so first."""
    idle: frozenset[str] = frozenset()
    """Machines of static pools without a job: the same."""


def plan(inputs: Inputs, demand: Demand, market: Market) -> Plan:
    """Decide."""
    waiting = [group for group in demand.groups if group.left]
    fits = [market.fit(group) for group in waiting]
    costs = machine_costs(inputs.offers, fits, market.capacity)
    owners = OwnerBounds(inputs)
    wanted, launches, bounds = _Filling(inputs, market, fits, costs, demand).launches(owners)
    general = machine_costs(inputs.offers, (), market.capacity)[0].tolist()
    kept = reserves(inputs, launches, demand.needed, general, bounds)
    asked, kinds = _asked(bounds, [*launches, *kept])
    made = [launch for launch in asked if inputs.offers[launch.offer].asleep is None]
    leases = requested(inputs, made, fits)
    woken = wakes(inputs, [launch for launch in asked if launch not in made], fits)
    growing = {lease.pool for lease in leases} | {each.pool for each in woken}
    planned = _planned(fits, asked)
    found = PlanMade(
        number=inputs.number,
        inputs=_digest(inputs, demand),
        slots=demand.slots,
        leases=len(inputs.leases),
        waiting=_waiting(demand, market, fits, planned, leases, bounds, owners),
        machines=_machines(inputs, [*wanted, *kept], asked, kinds, bounds, general),
        removals=removals(inputs, demand.needed, growing, demand.sparse),
        wakes=woken,
        sleeps=sleeps(inputs, demand.idle, demand.needed, growing),
    )
    return Plan(found, leases, demand.sparse, demand.idle)


class _Filling:
    """Puts what waits onto machines."""

    def __init__(
        self, inputs: Inputs, market: Market, fits: Sequence[Fit], costs: Reals, demand: Demand
    ) -> None:
        self._inputs = inputs
        self._fits = fits
        shape = (len(fits), len(inputs.offers))
        need = np.array([fit.need for fit in fits]).reshape(*shape, len(market.resources))
        usable = np.array([fit.usable for fit in fits], np.bool_).reshape(shape)
        self._packing = Packing(need, market.capacity, usable, costs)
        self._counts = [min(demand.lasting.get(fit.group.key, 0), fit.group.left) for fit in fits]
        self._whole = {
            index: _members(inputs, fit.group) for index, fit in enumerate(fits) if fit.group.nodes > 1
        }

    def launches(self, owners: OwnerBounds) -> tuple[list[Launch], list[Launch], Bounds]:
        """What is wanted, what there is room for, and the bounds with that used up, `owners` too."""
        wanted = self._together()
        bounds, trial = Bounds(self._inputs), OwnerBounds(self._inputs)
        for launch in wanted:
            budget = trial.within(bounds, self._person(launch))
            if budget.room(launch.offer) < launch.machines:
                bounds = Bounds(self._inputs)
                return wanted, self._in_order(bounds, owners), bounds
            budget.take(launch.offer, launch.machines)
        return wanted, wanted, bounds

    def _person(self, launch: Launch) -> str:
        return person_of(self._fits[launch.jobs[0][0]].group.submitter) if launch.jobs else ""

    def _together(self) -> list[Launch]:
        """All at once, as if there were no bounds: so they complete each other best."""
        shared = np.array(
            [
                count if fit.shape is Shape.SHARED else 0
                for fit, count in zip(self._fits, self._counts, strict=True)
            ],
            np.int64,
        )
        packed, _ = self._packing.shared(shared, Unlimited())
        alone = [self._alone(index, Unlimited()) for index in range(len(self._fits))]
        return [*map(_shared, packed), *(launch for launches in alone for launch in launches)]

    def _in_order(self, bounds: Bounds, owners: OwnerBounds) -> list[Launch]:
        """One after the other, until there is no room."""
        packed: list[Packed] = []
        alone: list[Launch] = []
        for index, (fit, count) in enumerate(zip(self._fits, self._counts, strict=True)):
            budget = owners.within(bounds, person_of(fit.group.submitter))
            if fit.shape is Shape.SHARED:
                self._packing.add(packed, index, count, budget)
            else:
                alone += self._alone(index, budget)
        return [*map(_shared, packed), *alone]

    def _alone(self, index: int, budget: Budget) -> list[Launch]:
        """Machines for jobs that have them for themselves."""
        fit, count = self._fits[index], self._counts[index]
        if fit.shape is Shape.SHARED or not count:
            return []
        found = self._missing(index, count, budget)
        if found is None:
            found, _ = self._packing.gangs(index, count, fit.group.nodes, budget)
        return [
            Launch(offer=one.offer, machines=one.machines, shape=Shape.DEDICATED, jobs=one.jobs)
            for one in found
        ]

    def _missing(self, index: int, jobs: int, budget: Budget) -> list[Packed] | None:
        """What is missing of a gang of which some machines are there or are coming; None: there are none."""
        there = self._whole.get(index)
        if not there:
            return None
        offer = there.most_common(1)[0][0]
        missing = jobs * self._fits[index].group.nodes - there.total()
        if not self._fits[index].usable[offer] or budget.room(offer) < missing or missing <= 0:
            return []
        budget.take(offer, missing)
        return [Packed(offer, missing, ((index, 1),))]


def _shared(packed: Packed) -> Launch:
    return Launch(offer=packed.offer, machines=packed.machines, jobs=packed.jobs)


def _members(inputs: Inputs, group: Group) -> Counter[int]:
    """Machines that wait for the rest of a gang, by the number of their offer."""
    numbers = {(one.pool.name, one.offer.name): number for number, one in enumerate(inputs.offers)}
    gang, found = gang_of(group), Counter[int]()
    for lease in inputs.leases:
        place = numbers.get((lease.requested.pool, lease.offer.name))
        waits = is_coming(lease) or (serves(lease) and lease.state is not LeaseState.BUSY)
        if lease.requested.gang == gang and waits and place is not None:
            found[place] += 1
    return found


def _asked(bounds: Bounds, launches: Iterable[Launch]) -> tuple[list[Launch], dict[Kind, Bound]]:
    """What is asked for at once, and what keeps the rest waiting."""
    asked: list[Launch] = []
    kinds: dict[Kind, Bound] = {}
    for launch in launches:
        machines, bound = bounds.now(launch.offer, launch.machines)
        if machines:
            asked.append(msgspec.structs.replace(launch, machines=machines))
        if bound is not Bound.NEED:
            kinds[launch.offer, launch.shape] = bound
    return asked, kinds


def _planned(fits: Sequence[Fit], launches: Iterable[Launch]) -> Counter[int]:
    """For how many jobs of each group machines are asked for."""
    planned = Counter[int]()
    for launch in launches:
        for group, jobs in launch.jobs:
            planned[group] += jobs * launch.machines
    return Counter({group: slots // fits[group].group.nodes for group, slots in planned.items()})


def _machines(
    inputs: Inputs,
    wanted: Iterable[Launch],
    asked: Iterable[Launch],
    kinds: Mapping[Kind, Bound],
    bounds: Bounds,
    general: Sequence[float],
) -> list[PlannedMachines]:
    totals: dict[Kind, list[int]] = {}
    for place, launches in enumerate((wanted, asked)):
        for launch in launches:
            totals.setdefault((launch.offer, launch.shape), [0, 0])[place] += launch.machines
    return [
        PlannedMachines(
            pool=inputs.offers[offer].pool.name,
            offer=inputs.offers[offer].offer.name,
            shape=shape,
            machines=machines,
            wanted=max(most, machines),
            bound=kinds.get((offer, shape)) or (_short(bounds, offer) if machines < most else Bound.NEED),
            price=inputs.offers[offer].offer.price,
            score=general[offer],
        )
        for (offer, shape), (most, machines) in sorted(totals.items())
        if most or machines
    ]


def _short(bounds: Bounds, offer: int) -> Bound:
    """
    Why there are fewer of an offer than were wanted: where no other bound is reached, it is that of a person.
    """
    reached = bounds.reached(offer)
    return Bound.OWNER_MAX if reached is Bound.NEED else reached


def _waiting(
    demand: Demand,
    market: Market,
    fits: Sequence[Fit],
    planned: Mapping[int, int],
    leases: Sequence[LeaseRequested],
    bounds: Bounds,
    owners: OwnerBounds,
) -> list[WaitingJobs]:
    numbers = {fit.group.key: number for number, fit in enumerate(fits)}
    named = _named(leases)
    return [
        _group(demand, group, numbers.get(group.key), market, fits, planned, named, bounds, owners)
        for group in demand.groups
    ]


def _named(leases: Iterable[LeaseRequested]) -> dict[tuple[str, str, str], list[str]]:
    named: dict[tuple[str, str, str], list[str]] = {}
    for lease in leases:
        for one in lease.demand:
            names = named.setdefault((one.submitter, one.schedd, one.autocluster), [])
            if len(names) < _NAMED:
                names.append(lease.lease)
    return named


def _group(
    demand: Demand,
    group: Group,
    number: int | None,
    market: Market,
    fits: Sequence[Fit],
    planned: Mapping[int, int],
    named: Mapping[tuple[str, str, str], list[str]],
    bounds: Bounds,
    owners: OwnerBounds,
) -> WaitingJobs:
    fit = None if number is None else fits[number]
    asked = 0 if number is None else planned.get(number, 0)
    young = max(0, group.left - demand.lasting.get(group.key, 0))
    left = group.left - young - asked
    key = group.submitter, group.schedd, str(group.autocluster)
    return WaitingJobs(
        submitter=group.submitter,
        schedd=group.schedd,
        autocluster=group.autocluster,
        example=_example(group),
        jobs=group.jobs,
        nodes=group.nodes,
        cpus=float(fit.asked.asked["Cpus"]) if fit is not None else 0.0,
        memory=float(fit.asked.asked["Memory"]) if fit is not None else 0.0,
        shape=fit.shape if fit is not None else Shape.SHARED,
        free=group.free,
        coming=group.coming,
        planned=asked,
        limited=group.limited,
        young=young,
        fault=group.fault,
        obstacles=[*market.obstacles(fit), *_bounded(market, fit, bounds, owners)]
        if fit is not None and left > 0
        else [],
        leases=named.get(key, []),
    )


def _bounded(market: Market, fit: Fit, bounds: Bounds, owners: OwnerBounds) -> list[OfferObstacle]:
    """Offers that would do, and of which there may be no more now."""
    found: list[OfferObstacle] = []
    for number in np.flatnonzero(fit.usable).tolist():
        one = market.offers[number]
        bound = bounds.reached(number)
        if bound is Bound.NEED and not owners.room(number, person_of(fit.group.submitter)):
            bound = Bound.OWNER_MAX
        if bound is Bound.NEED:
            bound = bounds.waits(number)
        if bound is Bound.NEED and fit.group.nodes > 1:
            bound = Bound.GANG
        if bound is not Bound.NEED:
            found.append(
                OfferObstacle(
                    pool=one.pool.name, offer=one.offer.name, obstacle=Obstacle.BOUND, words=bound.value
                )
            )
    return found


def _example(group: Group) -> str:
    cluster, proc = group.job.find("clusterid"), group.job.find("procid")
    return f"{cluster}.{proc}" if isinstance(cluster, int) and isinstance(proc, int) else ""


def _digest(inputs: Inputs, demand: Demand) -> str:
    said = msgspec.msgpack.encode(
        [
            inputs,
            demand.slots,
            demand.digest,
            sorted(demand.lasting.items()),
            sorted(demand.needed),
            [[g.key, g.jobs, g.nodes, g.free, g.coming, g.limited, g.left, g.fault] for g in demand.groups],
        ]
    )
    return hashlib.sha256(said).hexdigest()


def slots_digest(parts: Iterable[tuple[str, Sequence[int]]]) -> bytes:
    """Of what was looked at: the keys of slots, with what is left of each."""
    return hashlib.sha256(msgspec.msgpack.encode(sorted(parts))).digest()
