"""What people ask and order about pools of workers."""

import time
from collections import Counter
from collections.abc import Iterable
from typing import Any, Final

from kettle.bus.ports import RefusedError, Served
from kettle.eventsourcing.command_pipeline import CommandPipeline, Decision
from kettle.worker_pools.comparison import changes, digest
from kettle_services.scaler.asked_plans import AskedPlans
from kettle_services.scaler.domain import figures, plans
from kettle_services.scaler.domain.hosts.census import Member, pool_with
from kettle_services.scaler.domain.leases.book import Book, standing
from kettle_services.scaler.domain.leases.breakers import Closure, template_of
from kettle_services.scaler.domain.leases.wishes import reopen
from kettle_services.scaler.domain.outlooks import outlooks, waiting_jobs
from kettle_services.scaler.domain.plans import LastPlan, of_pool
from kettle_services.scaler.domain.pools import (
    PoolRefused,
    PoolState,
    decide_apply,
    decide_pause,
    decide_resume,
    decide_retire,
    stream,
)
from kettle_services.scaler.plan_views import PlanLog
from kettle_services.scaler.planner import Planner
from kettle_services.scaler.provisioning import Provisioning
from kettle_services.scaler.record import Record
from kettle_services.scaler.rooster import Rooster
from kettle_wire.codes import RefusalCode
from kettle_wire.commands import worker_pools as wire
from kettle_wire.commands.iam import Recorded
from kettle_wire.commands.outlooks import EXPLAIN_WAIT, ExplainWait, PoolOutlooks
from kettle_wire.commands.worker_pools import HostShown, OfferStanding, PoolStanding, PoolSummary
from kettle_wire.events import Event
from kettle_wire.identity import Identity
from kettle_wire.worker_pools import Offer, WorkerPool

_FOR_GOOD: Final = -1.0
"""A closed offer that only somebody opens."""


class PoolCommands:
    """Answers people."""

    def __init__(
        self,
        record: Record,
        provisioning: Provisioning,
        planner: Planner,
        rooster: Rooster,
        asked: AskedPlans,
        log: PlanLog,
    ) -> None:
        self._record: Final = record
        self._provisioning: Final = provisioning
        self._planner: Final = planner
        self._rooster: Final = rooster
        self._changed: Final = planner.wake
        """Somebody has decided something, so that another plan is due."""
        self._asked: Final = asked
        self._log: Final = log

    def served(self, pipeline: CommandPipeline) -> list[Served[Any, Any]]:
        """The endpoints with their handlers."""
        return [
            pipeline.command(wire.APPLY_POOL, self.apply),
            pipeline.command(wire.PAUSE_POOL, self.pause),
            pipeline.command(wire.RESUME_POOL, self.resume),
            pipeline.command(wire.RETIRE_POOL, self.retire),
            pipeline.query(wire.LIST_POOLS, self.list),
            pipeline.query(wire.SHOW_POOL, self.show),
            pipeline.query(wire.EXPLAIN_PLAN, self.explain),
            pipeline.query(wire.MACHINES_OVER_TIME, self.machines_over_time),
            pipeline.query(EXPLAIN_WAIT, self.explain_wait),
        ]

    async def apply(self, request: wire.ApplyPool, caller: Identity) -> Decision[wire.PoolApplied]:
        """Have a pool be as its file says; `refused`: two of its offers have one name."""
        before, now = self._record.state.pools.states.get(request.pool.name), time.time()
        self._require_own_machines(request.pool)
        try:
            events = decide_apply(before, request.pool, digest(request.pool), by=caller.name, now=now)
        except PoolRefused as refused:
            raise RefusedError(RefusalCode.REFUSED, str(refused)) from refused
        was = before.pool if before is not None and not before.retired else None
        told = changes(was, request.pool) if events else []
        version = (before.version if before is not None else 0) + len(events)
        return Decision(
            lambda position: wire.PoolApplied(version=version, changes=told, position=position),
            [(stream(request.pool.name), event) for event in events],
            effect=self._changed,
        )

    async def pause(self, request: wire.PausePool, caller: Identity) -> Decision[Recorded]:
        """Make no more machines; `not_found`, `refused`: it is retired."""
        state = self.require(request.pool)
        try:
            events = decide_pause(
                state, by=caller.name, now=time.time(), reason=request.reason, drain=request.drain
            )
        except PoolRefused as refused:
            raise RefusedError(RefusalCode.REFUSED, str(refused)) from refused
        return self._recorded((stream(request.pool), event) for event in events)

    async def resume(self, request: wire.ResumePool, caller: Identity) -> Decision[Recorded]:
        """Make machines again, and try what is closed; `not_found`, `refused`: it is retired."""
        state, now = self.require(request.pool), time.time()
        try:
            events = decide_resume(state, by=caller.name, now=now)
        except PoolRefused as refused:
            raise RefusedError(RefusalCode.REFUSED, str(refused)) from refused
        decision = self._provisioning.decision()
        reopen(decision, state.pool, caller.name)
        mended = self._rooster.mended(request.pool, caller.name)
        return self._recorded(
            [*((stream(request.pool), event) for event in events), *decision.changes, *mended]
        )

    async def retire(self, request: wire.RetirePool, caller: Identity) -> Decision[Recorded]:
        """Give a pool up; `not_found`."""
        events = decide_retire(self.require(request.pool), by=caller.name, now=time.time())
        return self._recorded((stream(request.pool), event) for event in events)

    async def list(self, request: wire.ListPools, caller: Identity) -> wire.Pools:
        """All that are not gone; a retired one is there as long as it has machines."""
        summaries = [self._summary(state) for state in self._record.state.pools.states.values()]
        shown = [each for each in summaries if each.standing != "retired"]
        return wire.Pools(pools=sorted(shown, key=lambda each: each.name))

    async def show(self, request: wire.ShowPool, caller: Identity) -> wire.PoolShown:
        """One; `not_found`."""
        state = self.require(request.pool)
        return wire.PoolShown(
            summary=self._summary(state),
            pool=state.pool,
            digest=state.digest,
            applied_by=state.by,
            offers=[self._offer(state, offer) for offer in state.pool.offers],
            hosts=[_host(each) for each in self._rooster.members() if each.pool.name == state.pool.name],
        )

    async def explain(self, request: wire.ExplainPlan, caller: Identity) -> wire.PlanExplained:
        """
        The last plan, that of a moment of the past, or one that is made now, with the machines of this pool; `not_found`: there was no
        plan; `refused`: a plan of the past that is made now.
        """
        self.require(request.pool)
        if request.dry_run and request.at:
            raise RefusedError(
                RefusalCode.REFUSED, "dry_run makes a plan of what waits now: leave it out, or at"
            )
        if request.dry_run:
            plan, at = self._asked.now()
            return wire.PlanExplained(plan=of_pool(plan, request.pool), at=at, carried_out=False)
        last = self._last()
        if request.at and last is not None and request.at < last.at:
            last = await self._log.at(request.at, head=self._record.shard.frame)
        if last is None:
            raise RefusedError(
                RefusalCode.NOT_FOUND,
                "no plan was made until then, or none that is remembered"
                if request.at
                else "no plan was made yet: nothing that could be planned for was seen",
            )
        return wire.PlanExplained(plan=of_pool(last.plan, request.pool), at=last.at, carried_out=True)

    async def machines_over_time(
        self, request: wire.AskMachinesOverTime, caller: Identity
    ) -> wire.MachinesOverTime:
        """How many machines a pool had and wanted; `not_found`, `refused`: that is no span of time."""
        self.require(request.pool)
        if request.until <= request.since:
            raise RefusedError(RefusalCode.REFUSED, "until is not after since")
        return await self._log.machines(
            request.pool,
            since=request.since,
            until=request.until,
            points=request.points,
            head=self._record.shard.frame,
        )

    async def explain_wait(self, request: ExplainWait, caller: Identity) -> PoolOutlooks:
        """What is planned for jobs of one kind."""
        last = self._last()
        if last is None:
            return PoolOutlooks(outlooks=[])
        waiting = waiting_jobs(last.plan, request.submitter, request.schedd, request.autocluster)
        pools = {name: state for name, state in self._record.state.pools.states.items() if not state.retired}
        state = self._record.state
        found = (
            outlooks(waiting, pools, state.leases.states, state.hosts.states) if waiting is not None else []
        )
        return PoolOutlooks(outlooks=found, plan=last.plan.number)

    def _last(self) -> LastPlan | None:
        return self._record.state.plans.states.get(plans.NAME)

    def require(self, name: str) -> PoolState:
        """Raises RefusedError: there is no such pool."""
        state = self._record.state.pools.states.get(name)
        if state is None:
            known = ", ".join(sorted(self._record.state.pools.states)) or "none"
            raise RefusedError(
                RefusalCode.NOT_FOUND, f"there is no pool of workers {name}; there are: {known}"
            )
        return state

    def _require_own_machines(self, pool: WorkerPool) -> None:
        """Raises RefusedError: a machine of it is one of another pool."""
        others = self._record.state.pools.states.values()
        for offer in pool.offers:
            for machine in offer.machines:
                if other := pool_with(others, machine.name, besides=pool.name):
                    raise RefusedError(
                        RefusalCode.REFUSED,
                        f"the machine {machine.name} is one of the pool {other}: it can be put to sleep by one pool only",
                    )

    def _recorded(self, recorded: Iterable[tuple[str, Event]]) -> Decision[Recorded]:
        return Decision(lambda position: Recorded(position=position), list(recorded), effect=self._changed)

    def _summary(self, state: PoolState) -> PoolSummary:
        pool, now = state.pool, time.time()
        hosts = Counter(
            each.host.state.value for each in self._rooster.members() if each.pool.name == pool.name
        )
        counts = Counter(
            lease.state.value
            for lease in self._record.state.leases.states.values()
            if lease.requested.pool == pool.name
        )
        book, plan = self._provisioning.book, self._planner.latest
        standings = [standing(book, pool.name, offer, now) for offer in pool.offers]
        closed = [each for each in standings if each.limit == 0]
        return PoolSummary(
            name=pool.name,
            kind=pool.kind.value,
            standing=_standing(state, has_machines=bool(counts)),
            by=state.paused.by if state.paused is not None else "",
            reason=state.paused.reason if state.paused is not None else "",
            min=pool.min,
            max=pool.max,
            leases=dict(counts),
            hosts=dict(hosts),
            machines=figures.with_hosts(figures.machines(pool.name, book.leases.values(), plan), hosts),
            waiting=figures.waiting_for(pool.name, book.leases.values(), plan),
            planned=[each for each in plan.machines if each.pool == pool.name] if plan is not None else [],
            closed=len(closed),
            next_try=min((each.until for each in closed if each.until), default=0.0),
            spent=self._planner.spent(pool.name),
            budget=pool.budget,
            currency=figures.currency_of(pool),
            version=state.version,
            changed=state.at,
        )

    def _offer(self, state: PoolState, offer: Offer) -> OfferStanding:
        pool, now, book = state.pool.name, time.time(), self._provisioning.book
        measured = book.offers.get(f"{pool}.{offer.name}")
        closure = _closure(book, pool, offer, now)
        boots = sorted(measured.boots) if measured is not None else []
        return OfferStanding(
            offer=offer.name,
            provider=offer.provider,
            leases=sum(
                lease.requested.pool == pool and lease.offer.name == offer.name
                for lease in book.leases.values()
            ),
            closed_until=(closure.until or _FOR_GOOD) if closure is not None else 0.0,
            error=closure.error if closure is not None else None,
            words=closure.words if closure is not None else "",
            boot=boots[len(boots) // 2] if boots else 0.0,
            success=measured.success(now) if measured is not None else 0.0,
        )


def _host(member: Member) -> HostShown:
    host = member.host
    return HostShown(
        machine=member.name,
        offer=member.offer.name,
        state=host.state,
        since=host.since,
        deadline=host.until,
        again=host.again,
        failures=host.failures,
        words=host.words,
    )


def _standing(state: PoolState, *, has_machines: bool) -> PoolStanding:
    if state.retired:
        return "retiring" if has_machines else "retired"
    if state.paused is None:
        return "active"
    return "draining" if state.paused.drain else "paused"


def _closure(book: Book, pool: str, offer: Offer, now: float) -> Closure | None:
    """Why no machine of an offer is ordered now: the provider, the template or the offer itself is closed."""
    for record in (
        book.providers.get(offer.provider),
        book.templates.get(template_of(pool, offer)),
        book.offers.get(f"{pool}.{offer.name}"),
    ):
        if record is not None and record.closed is not None and not record.closed.is_over(now):
            return record.closed
    return None
