"""Pools of workers in figures."""

import asyncio
import time
from collections.abc import Sequence

from kettle.bus.ports import RefusedError, Served
from kettle.eventsourcing.memory import MemoryLog, MemoryWorkingSet
from kettle.eventsourcing.shard import Shard
from kettle.runtime.measurements import Labels, Measurements
from kettle.runtime.telemetry import MeasuringTelemetry
from kettle.testing.bus_adapters import MemoryWorld
from kettle.testing.patience import PATIENCE_S
from kettle_services.scaler.domain import figures
from kettle_services.scaler.domain.leases.breakers import (
    TEMPLATE,
    Closure,
    OfferRecord,
    ProviderRecord,
    template_of,
)
from kettle_services.scaler.domain.leases.machines import heard
from kettle_services.scaler.domain.leases.reconciling import listed
from kettle_services.scaler.domain.state import ScalerState
from kettle_services.scaler.planner import Planner
from kettle_services.scaler.provisioning import Provisioning
from kettle_services.scaler.record import SHARD, Record
from kettle_services.scaler.rooster import Rooster
from kettle_services.scaler.scaler_metrics import measure_pools
from kettle_services.scaler.settings import ScalerSettings
from kettle_services.scaler.watching import Watching
from kettle_wire.codes import RefusalCode
from kettle_wire.commands.provisioner import (
    CREATE_MACHINES,
    Created,
    CreateMachines,
    MachinesCreated,
    MachinesFound,
    Trouble,
)
from kettle_wire.commands.scaler import Phase, Renew
from kettle_wire.events import Event
from kettle_wire.events.lease import LeaseRequested, TemplateOpened
from kettle_wire.events.pool import PoolChanged
from kettle_wire.identity import Identity, daemon
from kettle_wire.leases import ErrorClass, MachineFound, MachineState
from kettle_wire.worker_pools import Offer, WorkerPool

from .leases_lab import LeaseLab
from .planning_lab import NOW, Lab, job, offer, pool


def test_what_is_wanted_includes_what_a_bound_keeps_back() -> None:
    """Of ten machines three may be there: they come, one is ready, and ten are wanted all the time."""
    lab = Lab(pool(max=3))
    lab.queue(80)
    plan = lab.cycle()
    found = figures.machines("p", lab.leases.values(), plan.made)
    assert {"wanted": 10, "coming": 3, "ready": 0, "leaving": 0} == found
    lab.ready(next(iter(lab.leases)))
    found = figures.machines("p", lab.leases.values(), plan.made)
    assert {"wanted": 10, "coming": 2, "ready": 1, "leaving": 0} == found
    assert {"wanted": 0, "coming": 0, "ready": 0, "leaving": 0} == figures.machines("other", [], plan.made)


def test_every_job_has_one_fate() -> None:
    """
    Of 80 jobs some get machines, some are kept back by the bound, and those that are too large for every offer are told apart.
    """
    lab = Lab(pool(max=3))
    lab.queue(80)
    lab.queue(5, job(cpus=64), submitter="bob")
    found = figures.demand(lab.plan().made)
    assert 85 == sum(found.values())
    assert {"planned": 24, "bounded": 56, "impossible": 5} == {k: v for k, v in found.items() if v}
    assert 0 == sum(figures.demand(None).values())


def test_a_pool_is_waited_for_by_those_whom_it_can_help() -> None:
    """
    Jobs for which machines of it come, and jobs that a bound keeps back; no others, and none of jobs that are too large.
    """
    lab = Lab(pool(max=3), pool("q", [offer(cpus=64)], max=0))
    lab.queue(80)
    lab.queue(5, job(cpus=32), submitter="bob")
    plan = lab.cycle().made
    assert 80 == figures.waiting_for("p", lab.leases.values(), plan)
    assert 61 == figures.waiting_for("q", lab.leases.values(), plan)
    lab.ready(*lab.leases)
    assert 56 == figures.waiting_for("p", lab.leases.values(), plan)
    assert 0 == figures.waiting_for("other", lab.leases.values(), plan)


def test_offers_are_open_tried_or_closed() -> None:
    """A closed offer is tried with one machine when its time is over; so is a template that never worked."""
    lab = Lab(pool(offers=[offer("a"), offer("b"), offer("c")]))
    lab.offers["p.a"] = OfferRecord(closed=Closure("full", NOW + 60, 1, ErrorClass.CAPACITY))
    lab.offers["p.b"] = OfferRecord(closed=Closure("full", NOW - 60, 1, ErrorClass.CAPACITY))
    assert {"open": 1, "trial": 1, "closed": 1} == figures.offers(lab.pools["p"], lab.book(), NOW)
    new = Lab(pool(), proven=False)
    assert {"open": 0, "trial": 1, "closed": 0} == figures.offers(new.pools["p"], new.book(), NOW)


def test_a_provider_is_in_one_state() -> None:
    """What was never closed is open; a pause that is over is a trial; doubts about a loss freeze it."""
    closed = Closure("who?", 0.0, 1, ErrorClass.AUTH)
    paused = Closure("full", NOW, 1, ErrorClass.CAPACITY)
    records = [
        None,
        ProviderRecord(closed=closed),
        ProviderRecord(closed=paused),
        ProviderRecord(frozen=NOW + 1),
    ]
    assert ["open", "closed", "trial", "frozen"] == [figures.breaker(each, NOW) for each in records]


def test_the_oldest_order_without_an_answer_counts() -> None:
    """Of two that were asked for at different times the first; none when both are answered."""
    lab = LeaseLab()
    assert 0.0 == figures.oldest_intent(lab.book.leases.values(), lab.now)
    [first] = lab.request()
    lab.after(1.0)
    lab.after(30.0)
    lab.unheard(first)
    assert 30.0 == figures.oldest_intent(lab.book.leases.values(), lab.now)
    lab.made(first)
    assert 0.0 == figures.oldest_intent(lab.book.leases.values(), lab.now)


class Provisioner:
    """Makes the first machine, has no room for the second, and does not know of the third."""

    async def create(self, request: CreateMachines, caller: Identity) -> MachinesCreated:
        assert caller.name == "scaler"
        full = Trouble(error=ErrorClass.QUOTA, words="no more")
        made: list[Created] = []
        for order in request.orders:
            match order.lease:
                case "lab-1-0":
                    made.append(Created(lease=order.lease, attempt=order.attempt, handle="i-0"))
                case "lab-1-1":
                    made.append(Created(lease=order.lease, attempt=order.attempt, trouble=full))
                case "lab-1-2":
                    made.append(Created(lease=order.lease, attempt=order.attempt))
                case unknown:
                    raise RefusedError(RefusalCode.NOT_FOUND, unknown)
        return MachinesCreated(created=made)


SMALL = Offer(name="small", provider="cloud", cpus=2, memory=1024, price=3600.0, currency="EUR")
LAB = WorkerPool(name="lab", offers=[SMALL], budget=100.0, currency="EUR")


async def measured(measurements: Measurements) -> dict[str, dict[Labels, float]]:
    families = await measurements.families()
    return {
        each.metric.name: {**each.values, **{k: v.count for k, v in each.buckets.items()}}
        for each in families
    }


async def test_a_scaler_measures_what_becomes_of_its_orders() -> None:
    """
    Three machines are ordered: one is made and becomes ready, one is refused, one is in doubt; a machine of nobody is found. Each
    is counted once, however often the ready one has and has not jobs.
    """
    log, world, measurements = MemoryLog(), MemoryWorld(), Measurements()
    telemetry, settings = MeasuringTelemetry(measurements), ScalerSettings()
    provisioner = await world.connect(daemon("provisioner"))
    await provisioner.serve(
        "provisioner", "provisioner", [Served(CREATE_MACHINES, Provisioner().create)], version="1"
    )
    bus = await world.connect(daemon("scaler"))
    async with Shard.own(log, SHARD, owner="me") as shard:
        record = await Record.recall(log, MemoryWorkingSet(log), shard, ScalerState(), interval=60.0)
        provisioning = Provisioning(bus, record, settings, telemetry)
        watching = Watching(bus, world.subjects)
        rooster = Rooster(bus, record, watching, provisioning.seen, settings, provisioning.book.timers)
        planner = Planner(bus, record, provisioning, watching, rooster, settings, telemetry)
        measure_pools(telemetry, record, provisioning, planner, rooster)
        settled = asyncio.Event()
        record.on_commit(lambda _frame: settled.set() if _answered(provisioning) else None)
        running = [asyncio.create_task(each) for each in (shard.run(), provisioning.run())]
        try:
            await record.record([*_orders(time.time())])
            decision = provisioning.decision()
            stray = MachineFound(handle="x", state=MachineState.RUNNING)
            listed(decision, "cloud", MachinesFound(machines=[stray], complete=True, visibility=5.0))
            await provisioning.carry_out(decision)
            await asyncio.wait_for(settled.wait(), PATIENCE_S)
            for claims in (0, 1, 0):
                decision = provisioning.decision()
                heard(decision, "lab-1-0", Renew(phase=Phase.READY, age=1.0, claims=claims))
                await provisioning.carry_out(decision)
            found = await measured(measurements)
        finally:
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)
    results = {("cloud", "made"): 1.0, ("cloud", "quota"): 1.0, ("cloud", "in-doubt"): 1.0}
    assert results == found["kettle.scaler.creates"]
    assert {("lab", "small"): 1.0} == found["kettle.scaler.machine.start"]
    assert {("cloud",): 1.0} == found["kettle.scaler.orphans"]
    phases = found["kettle.scaler.machines"]
    assert (1.0, 1.0) == (phases["lab", "ready"], phases["lab", "coming"])
    assert {("lab", "small", "in-doubt"): 1} == {
        key: each for key, each in found["kettle.scaler.leases"].items() if key[2] == "in-doubt"
    }
    assert {("lab", "EUR"): 100.0} == found["kettle.scaler.budget"]
    assert 0.0 < found["kettle.scaler.spent"]["lab", "EUR"]
    assert 0.0 < found["kettle.scaler.intent.age"][()]
    assert 1.0 == found["kettle.scaler.providers"]["cloud", "open"]


def _orders(now: float) -> Sequence[tuple[str, Event]]:
    leases = [
        LeaseRequested(lease=f"lab-1-{number}", pool="lab", offer=SMALL, life=600.0, until=now + 600)
        for number in range(3)
    ]
    return [
        ("pool/lab", PoolChanged(pool=LAB, digest="d", by="ada", at=now)),
        *((f"lease/{each.lease}", each) for each in leases),
        (f"{TEMPLATE}/{template_of('lab', SMALL)}", TemplateOpened(why="it has worked")),
    ]


def _answered(provisioning: Provisioning) -> bool:
    leases = provisioning.book.leases
    return {"lab-1-0", "lab-1-2"} == set(leases) and {"accepted", "in-doubt"} == {
        each.state.value for each in leases.values()
    }
