"""
Machines that are made when jobs wait, and go when they are idle: the plans are those of the scaler's own planner.

A provider of a simulation makes all that it is asked for, each in the time that the offer says; a machine lives as long as its lease, or
until the planner gives it up.
"""

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

import msgspec

from kettle.classad import FOREIGN_STEPS, Context
from kettle.classad.columnar import Table
from kettle_services.scaler.domain.leases.book import Book
from kettle_services.scaler.domain.leases.breakers import TemplateRecord, template_of
from kettle_services.scaler.domain.leases.lease import SERVING, Lease, fold
from kettle_services.scaler.domain.planning.demand import Patience
from kettle_services.scaler.domain.planning.inputs import gathered
from kettle_services.scaler.domain.planning.matching import Rights
from kettle_services.scaler.domain.planning.planning import Plan
from kettle_services.scaler.domain.planning.shrinking import next_idle
from kettle_services.scaler.domain.planning.snapshot import Snapshot
from kettle_services.scaler.domain.planning.templates import MARGIN_S, slot_ad
from kettle_services.scaler.domain.pools import PoolState
from kettle_services.simulator.domain.clock import PLANS, US
from kettle_services.simulator.domain.machine import Machine, Slot
from kettle_services.simulator.domain.simulation import PeriodSimulation
from kettle_services.simulator.invented.period_of_workload import comes, goes
from kettle_services.simulator.platforms.hosts import STAYS, Host
from kettle_services.simulator.workloads.distributions import Randomness
from kettle_wire.ads import Scalar
from kettle_wire.events.lease import (
    LeaseAccepted,
    LeaseBusy,
    LeaseEvent,
    LeaseReady,
    LeaseRequested,
    LeaseSubmitting,
    Shape,
)
from kettle_wire.leases import LeaseState
from kettle_wire.worker_pools import Offer, WorkerPool

_BEGIN_S: Final = 1_000_000_000.0
"""A planner's clock when a simulation begins: times of 0 mean to it that something has not happened."""
_NEVER_S: Final = 1e18
_EVERY: Final = 5 * US
"""Between two looks; the real one looks when something changes."""
_AGAIN_S: Final = 60.0
"""Where nothing has changed, a plan is made again after so long."""
_MOST: Final = 250
"""Machines of one plan, as the scaler's setting `max_actions` has it."""


_AMOUNTS: Final = ("Cpus", "Memory", "Disk", "GPUs")


class Spot(msgspec.Struct, frozen=True, kw_only=True):
    """How machines are taken back by who lends them, at random without memory; in microseconds."""

    mean: int
    notice: int = 0
    """So long before, a machine is told, and takes no more jobs."""


class MachinesOnDemand:
    """All pools of machines of one simulation."""

    def __init__(
        self,
        pools: Sequence[WorkerPool],
        simulation: PeriodSimulation,
        joined: Callable[[str], None],
        *,
        spot: Spot | None = None,
        seed: int = 0,
    ) -> None:
        """
        `joined` is told the name of a machine before it takes jobs; `seed` is that of when machines are taken back.
        """
        self._spot = spot
        self._chance = Randomness(seed, "machines that are taken back")
        self._simulation, self._joined = simulation, joined
        self._pools = {
            pool.name: PoolState(pool=pool, digest="", version=1, by="simulated", at=0.0) for pool in pools
        }
        self._templates = {
            template_of(pool.name, offer): TemplateRecord(proven=True)
            for pool in pools
            for offer in pool.offers
        }
        self._waits = max([0.0, *(pool.waits for pool in pools)])
        self._leases: dict[str, Lease] = {}
        self._draining: set[str] = set()
        self._table = Table()
        self._patience = Patience()
        self._number = 0
        self._seen: object = None
        self._changed_at = 0.0
        self._planned_at = -_NEVER_S
        self.last = 0
        """When the last machine comes that is on its way, in microseconds."""
        self._made: dict[str, int] = {}
        self._left: dict[str, int] = {}
        self._offers: dict[str, Offer] = {}
        self._look()

    @property
    def hosts(self) -> list[Host]:
        """
        All machines that ever were there, in the order in which they came; they are paid from when they were asked for.
        """
        return [
            Host(
                name=name,
                cores=offer.cpus,
                memory=offer.memory,
                joins=self._made[name],
                leaves=self._left.get(name, STAYS),
                price=offer.price,
            )
            for name, offer in self._offers.items()
        ]

    # -- looks -------------------------------------------------------------------------------------------------------

    @property
    def _now(self) -> float:
        return _BEGIN_S + self._simulation.clock.seconds

    def _look(self) -> None:
        clock = self._simulation.clock
        self._let_go()
        self._note_use()
        if self._is_due():
            self._planned_at = self._now
            self._act(self._plan())
        clock.at(clock.now + _EVERY, self._look, turn=PLANS)

    def _is_due(self) -> bool:
        """Whether another plan may differ from the last one."""
        submitters = self._simulation.pool.submitters
        waiting = [(key, ad.idle, ad.running) for key, ad in sorted(submitters.items()) if ad.idle]
        seen = waiting, [(lease.id, lease.state) for lease in self._leases.values()]
        if seen != self._seen:
            self._seen, self._changed_at = seen, self._now
        if not waiting and not self._leases:
            return any(state.pool.min or state.pool.spare for state in self._pools.values())
        if self._now - self._changed_at <= self._waits + 2 * _EVERY / US:
            return True
        idle = next_idle(self._leases.values(), self._pools, self._planned_at)
        return self._now - self._planned_at >= min(_AGAIN_S, idle)

    def _note_use(self) -> None:
        """Which machines have jobs, as their leases have it."""
        for name, lease in list(self._leases.items()):
            if lease.state in SERVING:
                busy = bool(self._simulation.startds.claims_on(name))
                if busy != (lease.state is LeaseState.BUSY):
                    self._record(name, LeaseBusy(until=_NEVER_S) if busy else LeaseReady(until=_NEVER_S))

    def _let_go(self) -> None:
        """Machines leave that were given up and have no job any more."""
        for name in sorted(self._draining):
            if not self._simulation.startds.claims_on(name):
                self._draining.remove(name)
                self._goes(name)

    # -- plans -------------------------------------------------------------------------------------------------------

    def _plan(self) -> Plan:
        self._number += 1
        ads = dict(self._simulation.startds.free_ads())
        for key in [key for key in self._table.keys if key not in ads and "/" not in key]:
            self._table.remove(key)
        self._table.put_many(ads.items())
        submitters = sorted(self._simulation.pool.submitters.items())
        inputs = gathered(
            Book(self._leases, {}, {}, self._templates, {}),
            self._pools,
            now=self._now,
            number=self._number,
            rooms={},
            spent={},
            max_actions=_MOST,
        )
        context = Context(now=lambda: int(self._now), max_steps=FOREIGN_STEPS)
        return Snapshot(self._table, submitters, Rights(), {}).plan(inputs, self._patience, context)

    def _act(self, plan: Plan) -> None:
        clock = self._simulation.clock
        for request in plan.leases:
            name = request.lease
            for event in (
                request,
                LeaseSubmitting(attempt=1, until=_NEVER_S),
                LeaseAccepted(handle=name, until=_NEVER_S),
            ):
                self._record(name, event)
            self._made[name] = clock.now
            ready = clock.now + max(0, round(request.offer.boot * US))
            self.last = max(self.last, ready)
            clock.at(ready, partial(self._ready, name))
        for removal in plan.made.removals:
            self._give_up(removal.lease)

    def _ready(self, name: str) -> None:
        if name not in self._leases:
            return  # it was given up before it was there
        request = self._leases[name].requested
        self._record(name, LeaseReady(until=_NEVER_S))
        self._offers[name] = request.offer
        self._joined(name)
        self._simulation.happens(
            comes(Host(name=name, cores=request.offer.cpus), self._simulation.clock.now),
            self._machine(request),
        )
        end = self._simulation.clock.now + round(max(0.0, request.life - MARGIN_S) * US)
        self._simulation.clock.at(end, partial(self._give_up, name))
        if self._spot is not None:
            lives = round(-self._spot.mean * math.log(self._chance.one()))
            taken = self._simulation.clock.now + lives
            self._simulation.clock.at(taken - self._spot.notice, partial(self._give_up, name))
            self._simulation.clock.at(taken, partial(self._taken_back, name))

    def _taken_back(self, name: str) -> None:
        """It goes, with whatever still runs there."""
        self._give_up(name)
        if name in self._draining:
            self._draining.remove(name)
            self._goes(name)

    def _goes(self, name: str) -> None:
        self._left[name] = self._simulation.clock.now
        self._simulation.happens(goes(Host(name=name), self._simulation.clock.now))

    def _give_up(self, name: str) -> None:
        """It takes no more jobs, and goes when it has none."""
        lease = self._leases.pop(name, None)
        if lease is not None and name in self._offers:
            self._simulation.startds.drain(name)
            self._draining.add(name)
            self._let_go()

    def _machine(self, request: LeaseRequested) -> Machine:
        pool, offer = self._pools[request.pool].pool, request.offer
        ad = slot_ad(
            request.lease,
            pool,
            offer,
            life=request.life,
            start=request.start,
            shape=request.shape,
            attributes=request.attributes,
        )
        amounts: dict[str, int] = {key: _whole(ad[key]) for key in _AMOUNTS if key in ad}
        shared = request.shape is Shape.SHARED
        more = {"SlotID": 1, "TotalSlots": 1, "Rank": 0.0}
        slot = Slot(
            number=1,
            partitionable=shared,
            ad={**ad, **more},
            amounts=amounts,
            weight=1.0 if shared else float(offer.cpus),
        )
        return Machine(name=request.lease, slots=(slot,))

    def _record(self, name: str, event: LeaseEvent) -> None:
        after = fold(self._leases.get(name), event, self._now)
        assert after is not None, "leases are forgotten when they are given up"
        self._leases[name] = after


def _whole(value: Scalar) -> int:
    return int(value) if isinstance(value, int | float) else 0
