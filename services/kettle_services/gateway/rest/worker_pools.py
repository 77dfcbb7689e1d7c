"""
Pools of workers and leases over HTTP: the scaler is asked in people's own names, so it decides itself what they may.
"""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Final

import msgspec

from kettle.client.events.sentences import sentence
from kettle.client.explanations.pool_use import figures
from kettle.client.worker_pools import WorkerPools
from kettle.worker_pools.comparison import changes
from kettle.worker_pools.faults import PoolFileRefused
from kettle.worker_pools.reading import read_pool
from kettle.worker_pools.rules import offer_faults, pool_faults
from kettle_services.gateway.rest.application import Answer, Asked
from kettle_services.gateway.rest.connections import PersonConnections
from kettle_services.gateway.rest.idempotency import Repeats, command_id
from kettle_services.gateway.rest.refusals import RequestRefused
from kettle_wire.commands import worker_pools as wire
from kettle_wire.events import decode, tag_of
from kettle_wire.rest import worker_pools as rest
from kettle_wire.rest.problem import FieldProblem, ProblemCode
from kettle_wire.worker_pools import WorkerPool

_FILE: Final = "the pool file"
_A_DAY: Final = timedelta(days=1)


class WorkerPoolQuestions:
    """Answers them."""

    def __init__(self, people: PersonConnections) -> None:
        self._people: Final = people
        self._repeats: Final = Repeats()

    @asynccontextmanager
    async def _pools(self, asked: Asked) -> AsyncGenerator[WorkerPools]:
        """Connect to the scaler as the person; many pools have none, and are not waited for."""
        async with self._people.of(asked.person) as client:
            yield client.worker_pools.without_waiting()

    async def list(self, asked: Asked) -> Answer:
        """All pools."""
        async with self._pools(asked) as pools:
            found = await pools.list()
        return Answer(rest.Pools(pools=[_glance(each) for each in found]))

    async def get(self, asked: Asked) -> Answer:
        """One."""
        parameters: rest.GetPool = asked.parameters
        async with self._pools(asked) as pools:
            found = await pools.show(parameters.pool)
        offers = [_offer(each) for each in found.offers]
        hosts = [_host(each) for each in found.hosts]
        return Answer(rest.Pool(summary=_glance(found.summary), pool=found.pool, offers=offers, hosts=hosts))

    async def apply(self, asked: Asked) -> Answer:
        """Have a pool be as it is said, or say what would be different."""
        parameters: rest.ApplyPool = asked.parameters
        pool = _pool_of(asked.body)
        if (first := self._repeats.first_answer(asked)) is not None:
            return first
        async with self._pools(asked) as pools:
            if parameters.dry_run:
                return Answer(await _difference(pools, pool))
            request = wire.ApplyPool(id=command_id(asked), pool=pool)
            applied = await pools.ask(wire.APPLY_POOL, request)
        answer = rest.PoolApplied(pool=pool.name, version=applied.version, changes=applied.changes)
        return self._repeats.answered(asked, Answer(answer))

    async def order(self, asked: Asked) -> Answer:
        """Pause, resume, drain or retire one; how it is then."""
        parameters: rest.OrderPool = asked.parameters
        order: rest.PoolOrder = asked.body
        if (first := self._repeats.first_answer(asked)) is not None:
            return first
        id_, pool = command_id(asked), parameters.pool
        async with self._pools(asked) as pools:
            match parameters.action:
                case "resume":
                    await pools.ask(wire.RESUME_POOL, wire.ResumePool(id=id_, pool=pool))
                case "retire":
                    await pools.ask(wire.RETIRE_POOL, wire.RetirePool(id=id_, pool=pool))
                case action:
                    drain = action == "drain"
                    request = wire.PausePool(id=id_, pool=pool, reason=order.reason, drain=drain)
                    await pools.ask(wire.PAUSE_POOL, request)
            shown = await pools.show(pool)
        return self._repeats.answered(asked, Answer(_glance(shown.summary)))

    async def plan(self, asked: Asked) -> Answer:
        """The last plan, or one made for the question."""
        parameters: rest.GetPlan = asked.parameters
        async with self._pools(asked) as pools:
            found = await pools.explain(
                parameters.pool,
                dry_run=parameters.dry_run,
                at=parameters.at.timestamp() if parameters.at is not None else 0.0,
            )
        plan = found.plan
        return Answer(
            rest.Plan(
                number=plan.number,
                at=_moment(found.at),
                carried_out=found.carried_out,
                slots=plan.slots,
                leases=plan.leases,
                waiting=plan.waiting,
                machines=plan.machines,
                removals=plan.removals,
                wakes=plan.wakes,
                sleeps=plan.sleeps,
            )
        )

    async def over_time(self, asked: Asked) -> Answer:
        """How many machines a pool had and wanted."""
        parameters: rest.GetMachinesOverTime = asked.parameters
        until = parameters.until or datetime.now(UTC)
        since = parameters.since or until - _A_DAY
        async with self._pools(asked) as pools:
            found = await pools.over_time(
                parameters.pool,
                since=since.timestamp(),
                until=until.timestamp(),
                points=parameters.points,
            )
        return Answer(
            rest.MachinesOverTime(
                times=[_moment(each) for each in found.times],
                wanted=found.wanted,
                coming=found.coming,
                ready=found.ready,
                complete_since=_maybe(found.complete_since),
            )
        )

    async def report(self, asked: Asked) -> Answer:
        """What the machines of a pool were used for."""
        parameters: rest.GetReport = asked.parameters
        now = datetime.now(UTC)
        since = parameters.since or now - _A_DAY
        async with self._pools(asked) as pools:
            use = await pools.report(
                parameters.pool, since=since.timestamp(), now=now.timestamp(), by=parameters.by
            )
        found = figures(use.report.leases, use.used, now=now.timestamp())
        said = {**msgspec.to_builtins(found), "since": _moment(use.report.since)}
        return Answer(msgspec.convert(said, rest.Report))

    async def leases(self, asked: Asked) -> Answer:
        """A list."""
        parameters: rest.ListLeases = asked.parameters
        async with self._pools(asked) as pools:
            found = await pools.leases(parameters.pool, states=parameters.state, limit=parameters.limit)
        return Answer(rest.Leases(leases=[_lease(each) for each in found.leases], more=found.more))

    async def order_lease(self, asked: Asked) -> Answer:
        """One machine more."""
        order: rest.LeaseOrder = asked.body
        if (first := self._repeats.first_answer(asked)) is not None:
            return first
        request = wire.OrderLease(id=command_id(asked), pool=order.pool, offer=order.offer)
        async with self._pools(asked) as pools:
            ordered = await pools.ask(wire.ORDER_LEASE, request)
        return self._repeats.answered(asked, Answer(rest.LeaseOrdered(id=ordered.lease), status=201))

    async def lease(self, asked: Asked) -> Answer:
        """One, also one that is over."""
        parameters: rest.GetLease = asked.parameters
        async with self._pools(asked) as pools:
            return Answer(_lease((await pools.timeline(parameters.id)).lease))

    async def give_up(self, asked: Asked) -> Answer:
        """Have one go; how it is then."""
        parameters: rest.GiveUpLease = asked.parameters
        if (first := self._repeats.first_answer(asked)) is not None:
            return first
        request = wire.GiveUpLease(
            id=command_id(asked), lease=parameters.id, reason=parameters.reason, force=parameters.force
        )
        async with self._pools(asked) as pools:
            await pools.ask(wire.GIVE_UP_LEASE, request)
            history = await pools.timeline(parameters.id)
        return self._repeats.answered(asked, Answer(_lease(history.lease)))

    async def timeline(self, asked: Asked) -> Answer:
        """What happened to one."""
        parameters: rest.GetTimeline = asked.parameters
        async with self._pools(asked) as pools:
            history = await pools.timeline(parameters.id)
        told = [(each.at, decode(each.data)) for each in history.moments]
        moments = [
            rest.LeaseMoment(at=_moment(at), type=tag_of(event), sentence=sentence(event)[0])
            for at, event in told
        ]
        return Answer(rest.LeaseTimeline(lease=_lease(history.lease), moments=moments))

    async def console(self, asked: Asked) -> Answer:
        """What one wrote."""
        parameters: rest.GetConsole = asked.parameters
        async with self._pools(asked) as pools:
            return Answer(rest.Console(text=await pools.console(parameters.id)))


def _pool_of(body: WorkerPool | str) -> WorkerPool:
    """The pool that was sent; raises RequestRefused with everything that is wrong."""
    if isinstance(body, str):
        try:
            return read_pool(body, _FILE)
        except PoolFileRefused as refused:
            found = [("/body", f"{fault.where}: {fault.sentence}") for fault in refused.faults]
            raise _refused(found) from refused
    found = [
        (f"/body/offers/{number}/{key}", sentence)
        for number, offer in enumerate(body.offers)
        for key, sentence in offer_faults(offer)
    ]
    found += [(f"/body/{'/'.join(keys)}", sentence) for keys, sentence in pool_faults(body)]
    if found:
        raise _refused(found)
    return body


def _refused(found: list[tuple[str, str]]) -> RequestRefused:
    return RequestRefused(
        422,
        ProblemCode.BODY_INVALID,
        found[0][1],
        errors=[FieldProblem(pointer, sentence) for pointer, sentence in found],
    )


async def _difference(pools: WorkerPools, pool: WorkerPool) -> rest.PoolApplied:
    """What applying would change."""
    before = await pools.find(pool.name)
    kept = before if before is not None and not before.summary.standing.startswith("retir") else None
    version = before.summary.version if before is not None else 0
    return rest.PoolApplied(
        pool=pool.name, version=version, changes=changes(kept.pool if kept is not None else None, pool)
    )


def _glance(summary: wire.PoolSummary) -> rest.PoolAtAGlance:
    return rest.PoolAtAGlance(
        name=summary.name,
        kind=summary.kind,
        standing=summary.standing,
        by=summary.by,
        reason=summary.reason,
        min=summary.min,
        max=summary.max,
        leases=summary.leases,
        hosts=summary.hosts,
        machines=summary.machines,
        waiting=summary.waiting,
        planned=summary.planned,
        closed_offers=summary.closed,
        next_try=_maybe(summary.next_try),
        spent=summary.spent,
        budget=summary.budget,
        currency=summary.currency,
        version=summary.version,
        changed=_moment(summary.changed),
    )


def _host(host: wire.HostShown) -> rest.StaticMachineAtAGlance:
    return rest.StaticMachineAtAGlance(
        machine=host.machine,
        offer=host.offer,
        state=host.state,
        since=_maybe(host.since),
        deadline=_maybe(host.deadline),
        again=_maybe(host.again),
        failures=host.failures,
        words=host.words,
    )


def _offer(standing: wire.OfferStanding) -> rest.OfferStanding:
    return rest.OfferStanding(
        offer=standing.offer,
        provider=standing.provider,
        leases=standing.leases,
        closed=bool(standing.closed_until),
        closed_until=_maybe(max(0.0, standing.closed_until)),
        error=standing.error or "",
        words=standing.words,
        boot=standing.boot,
        success=standing.success,
    )


def _lease(lease: wire.LeaseShown) -> rest.Lease:
    return rest.Lease(
        id=lease.lease,
        pool=lease.pool,
        offer=lease.offer,
        provider=lease.provider,
        state=lease.state,
        since=_moment(lease.since),
        deadline=_maybe(lease.deadline),
        requested=_moment(lease.requested),
        accepted=_maybe(lease.accepted),
        ready=_maybe(lease.ready),
        expected=_maybe(lease.expected),
        ended=_maybe(lease.ended),
        handle=lease.handle,
        owner=lease.owner,
        attempt=lease.attempt,
        cpus=lease.cpus,
        cost=lease.cost,
        currency=lease.currency,
        error=lease.error or "",
        words=lease.words,
    )


def _moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def _maybe(seconds: float) -> datetime | None:
    return _moment(seconds) if seconds else None
