"""
The scaler's part that puts machines of static pools to sleep and wakes them, with a startd and a provisioner that the test plays; the
scaler dies before and after each thing that it asks for.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, Final

import msgspec
import pytest

from kettle.bus.ports import BucketSpec, Bus, RefusedError, Served
from kettle.eventsourcing.memory import MemoryLog, MemoryWorkingSet
from kettle.eventsourcing.shard import Shard
from kettle.testing.bus_adapters import MemoryWorld
from kettle.testing.patience import PATIENCE_S
from kettle_services.scaler import offline_ads, rooster
from kettle_services.scaler.domain.hosts.host import Host
from kettle_services.scaler.domain.leases.seen import Seen
from kettle_services.scaler.domain.leases.timers import Timers
from kettle_services.scaler.domain.state import ScalerState
from kettle_services.scaler.offline_ads import OfflineAds
from kettle_services.scaler.record import SHARD, Record
from kettle_services.scaler.rooster import REQUEST, Rooster
from kettle_services.scaler.settings import ScalerSettings
from kettle_services.scaler.watching import Watching
from kettle_wire.ads import Ad
from kettle_wire.commands.provisioner import SWITCH_MACHINE, MachineSwitched, SwitchMachine, Trouble
from kettle_wire.commands.startd import CANCEL_DRAIN, DRAIN, CancelDrain, Done, Drain
from kettle_wire.events.lease import Demand
from kettle_wire.events.plan import PlanMade, PlannedSleep, PlannedWake
from kettle_wire.events.pool import PoolChanged
from kettle_wire.identity import Identity, daemon, worker
from kettle_wire.leases import ErrorClass
from kettle_wire.subjects import machine_key
from kettle_wire.worker_pools import Hibernation, HostState, Offer, PoolKind, StaticMachine, WorkerPool

from .planning_lab import machine_slot

DESK: Final = "desk1"
DESKS: Final = WorkerPool(
    name="desks",
    kind=PoolKind.STATIC,
    hibernate=Hibernation.S3,
    offers=[
        Offer(
            name="desk",
            provider="power",
            boot=0.1,
            cpus=4,
            memory=8192,
            machines=[StaticMachine(name=DESK, mac="52:54:00:12:34:56")],
        )
    ],
)
_encode: Final = msgspec.msgpack.encode


class Site:
    """One machine with its startd, and who puts it to sleep."""

    def __init__(self, world: MemoryWorld) -> None:
        self.world: Final = world
        self.drained = False
        self.busy = False
        self.refusal = ""
        """Why its provider does nothing."""
        self.deaf = False
        """The machine does not follow."""
        self.switched: Final[list[str]] = []
        self.dies: Callable[[str], bool] = lambda _step: False
        """Whether the scaler dies there; then it never hears an answer."""
        self._bus: Bus | None = None
        self._provisioner: Bus | None = None

    @property
    def is_on(self) -> bool:
        return self._bus is not None

    async def begin(self) -> None:
        await self.start_provisioner()
        await self.turn_on()

    async def stop_provisioner(self) -> None:
        assert self._provisioner is not None
        await self.world.leave(self._provisioner)

    async def start_provisioner(self) -> None:
        self._provisioner = await self.world.connect(daemon("provisioner"))
        await self._provisioner.serve(
            "provisioner", "provisioner", [Served(SWITCH_MACHINE, self.switch)], version="1"
        )

    async def end(self) -> None:
        for bus in filter(None, (self._bus, self._provisioner)):
            await self.world.leave(bus)

    async def turn_on(self) -> None:
        self._bus = await self.world.connect(worker(DESK))
        served: list[Served[Any, Any]] = [Served(DRAIN, self.drain), Served(CANCEL_DRAIN, self.cancel)]
        await self._bus.serve("startd", DESK, served, version="1")
        await self.say()

    async def say(self) -> None:
        """Its ad."""
        assert self._bus is not None
        more: Ad = {"CanHibernate": True, "Draining": self.drained, "Name": f"slot1@{DESK}"}
        more |= {"DrainingRequestId": REQUEST} if self.drained else {}
        ad = machine_slot(DESK, 4, 8192, **more)
        await self._bus.put(self.world.subjects.ads, machine_key(DESK, f"slot1@{DESK}"), _encode(ad))

    async def _passes(self, step: str) -> None:
        if self.dies(step):
            await asyncio.Event().wait()

    async def drain(self, request: Drain, caller: Identity) -> Done:
        await self._passes("before drain")
        assert (REQUEST, True, "scaler") == (request.id, request.idle, caller.name)
        if self.busy:
            raise RefusedError("refused", "the machine has 1 claim(s); nothing was drained")
        self.drained = True
        await self._passes("after drain")
        return Done()

    async def cancel(self, request: CancelDrain, caller: Identity) -> Done:
        assert (REQUEST, "scaler") == (request.request, caller.name)
        await self._passes("before release")
        self.drained = False
        await self._passes("after release")
        return Done()

    async def switch(self, request: SwitchMachine, caller: Identity) -> MachineSwitched:
        assert ("power", Hibernation.S3, "scaler") == (request.provider, request.level, caller.name)
        await self._passes(f"before {request.to}")
        if self.refusal:
            return MachineSwitched(trouble=Trouble(error=ErrorClass.TRANSIENT, words=self.refusal))
        self.switched.append(request.to)
        if self.deaf:
            return MachineSwitched()
        if request.to == "sleep":
            assert self.drained, "a machine that may get a job is put to sleep"
            assert self._bus is not None, "what sleeps is put to sleep"
            await self.world.leave(self._bus)
            self._bus = None
        else:
            assert self._bus is None, "what is awake is woken"
            await self.turn_on()
        await self._passes(f"after {request.to}")
        return MachineSwitched()


class Scalers:
    """One scaler after the other on one log."""

    def __init__(self, site: Site) -> None:
        self.site: Final = site
        self.log: Final = MemoryLog()
        self.rooster: Rooster
        self.record: Record
        self.killed: Final = asyncio.Event()

    def die(self) -> None:
        self.killed.set()

    @asynccontextmanager
    async def living(self, *, owner: str) -> AsyncGenerator[None]:
        self.killed.clear()
        world = self.site.world
        bus = await world.connect(daemon("scaler"))
        settings = ScalerSettings(sleep_deadline=1.0, wake_pause=0.05, dead=60.0)
        async with Shard.own(self.log, SHARD, owner=owner) as shard:
            working_set = MemoryWorkingSet(self.log)
            self.record = await Record.recall(self.log, working_set, shard, ScalerState(), interval=60.0)
            watching = Watching(bus, world.subjects)
            seen = Seen(time.time())
            seen.sound = time.time()
            timers = Timers(shortest_boot=1.0)
            self.rooster = Rooster(bus, self.record, watching, seen, settings, timers)
            loops = (
                shard.run(), watching.watch_owners(), watching.watch_slots(), watching.watch_submitters(),
                self.rooster.run(), OfflineAds(bus, world.subjects, self.rooster).keep(),
            )  # fmt: skip
            tasks = [asyncio.create_task(each) for each in loops]
            try:
                await watching.listed.wait()
                yield
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
                await world.leave(bus)

    @property
    def host(self) -> Host:
        [member] = self.rooster.members()
        return member.host

    async def plan(self, made: PlanMade) -> None:
        changes, acts = self.rooster.planned(made)
        if changes:
            await self.record.record(changes)
        self.rooster.act(acts)

    async def until(self, true: Callable[[], bool]) -> None:
        """Or until the scaler is killed."""
        async with asyncio.timeout(PATIENCE_S):
            while not true() and not self.killed.is_set():
                await asyncio.sleep(0.005)

    async def offline(self) -> list[Ad]:
        world = self.site.world
        reader = await world.connect(daemon("collector"))
        found: list[Ad] = []
        async for change in reader.watch(world.subjects.ads, "Offline.>"):
            if change is None:
                break
            if change.value is not None:
                found.append(msgspec.msgpack.decode(change.value, type=Ad))
        return found


SLEEP: Final = PlanMade(
    number=1, inputs="", slots=1, leases=0, sleeps=[PlannedSleep(pool="desks", machine=DESK)]
)
WAKE: Final = PlanMade(
    number=2, inputs="", slots=1, leases=0,
    wakes=[PlannedWake(pool="desks", machine=DESK, demand=[Demand("ann@pool", "schedd", "3", 1)])],
)  # fmt: skip


@pytest.fixture
async def scalers(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Scalers]:
    monkeypatch.setattr(rooster, "_TICK_S", 0.02)
    monkeypatch.setattr(rooster, "_ASK_S", 0.5)
    monkeypatch.setattr(offline_ads, "_TICK_S", 0.02)
    world = MemoryWorld()
    bus = await world.connect(daemon("iam"))
    for bucket in (world.subjects.ads, world.subjects.machine_owners):
        await bus.ensure_bucket(BucketSpec(name=bucket))
    site = Site(world)
    await site.begin()
    made = Scalers(site)
    async with made.living(owner="first"):
        changed = PoolChanged(pool=DESKS, digest="", by="root", at=0.0)
        await made.record.record([("pool/desks", changed)])
    yield made
    await site.end()


async def test_a_machine_sleeps_and_wakes(scalers: Scalers) -> None:
    """It is seen meanwhile, as HTCondor shows such machines, and takes jobs again when it is awake."""
    site = scalers.site
    async with scalers.living(owner="second"):
        await scalers.plan(SLEEP)
        await scalers.until(lambda: scalers.host.state is HostState.ASLEEP)
        assert (["sleep"], True) == (site.switched, site.drained)
        while not (shown := await scalers.offline()):
            await asyncio.sleep(0.01)
        said = {
            key: shown[0][key] for key in ("Name", "Offline", "HibernationLevel", "HibernationState", "State")
        }
        assert {
            "Name": f"slot1@{DESK}", "Offline": True, "HibernationLevel": 3, "HibernationState": "S3", "State": "Unclaimed",
        } == said  # fmt: skip
        assert (False, "52:54:00:12:34:56") == (shown[0]["Draining"], shown[0]["HardwareAddress"])
        await scalers.plan(WAKE)
        assert "waking" == scalers.host.state
        await scalers.until(lambda: scalers.host.state is HostState.AWAKE)
        await scalers.until(lambda: not site.drained)
        while await scalers.offline():
            await asyncio.sleep(0.01)
    assert ["sleep", "wake"] == site.switched


async def test_a_job_that_is_faster_keeps_its_machine_awake(scalers: Scalers) -> None:
    """The fence fails, and nothing is asked of the provider."""
    scalers.site.busy = True
    async with scalers.living(owner="second"):
        await scalers.plan(SLEEP)
        await scalers.until(lambda: "1 claim(s)" in scalers.host.words)
        assert ("awake", []) == (scalers.host.state, scalers.site.switched)


async def test_a_machine_that_does_not_follow_stays_awake(scalers: Scalers) -> None:
    """Its provider says that it did what was asked, and the machine answers all the same."""
    scalers.site.deaf = True
    async with scalers.living(owner="second"):
        await scalers.plan(SLEEP)
        await scalers.until(lambda: "still answered" in scalers.host.words)
        await scalers.until(lambda: not scalers.site.drained)
    assert ["sleep"] == scalers.site.switched


async def test_a_provisioner_that_is_being_started_is_waited_for(scalers: Scalers) -> None:
    """Nothing was done, so that nothing has failed."""
    site = scalers.site
    async with scalers.living(owner="second"):
        await scalers.plan(SLEEP)
        await scalers.until(lambda: scalers.host.state is HostState.ASLEEP)
        await site.stop_provisioner()
        await scalers.plan(WAKE)
        await asyncio.sleep(0.1)
        assert "waking" == scalers.host.state
        await site.start_provisioner()
        await scalers.until(lambda: scalers.host.state is HostState.AWAKE)
    assert ["sleep", "wake"] == site.switched


async def test_a_machine_that_does_not_wake_is_given_up_until_it_is_heard_of(scalers: Scalers) -> None:
    """Three times, then nobody counts on it; somebody switches it on, and it is back."""
    site = scalers.site
    async with scalers.living(owner="second"):
        await scalers.plan(SLEEP)
        await scalers.until(lambda: scalers.host.state is HostState.ASLEEP)
        site.refusal = "no route to host"
        for _ in range(3):
            await scalers.until(lambda: scalers.host.again <= time.time())
            await scalers.plan(WAKE)
            await scalers.until(lambda: scalers.host.state is not HostState.WAKING)
        assert ("broken", 3) == (scalers.host.state, scalers.host.failures)
        assert "no route to host" in scalers.host.words
        await site.turn_on()
        await scalers.until(lambda: scalers.host.state is HostState.AWAKE)
        await scalers.until(lambda: not site.drained)


async def test_what_was_broken_is_tried_again_when_somebody_says_so(scalers: Scalers) -> None:
    """`kettle pool resume`."""
    async with scalers.living(owner="second"):
        await scalers.plan(SLEEP)
        await scalers.until(lambda: scalers.host.state is HostState.ASLEEP)
        scalers.site.refusal = "no route to host"
        for _ in range(3):
            await scalers.until(lambda: scalers.host.again <= time.time())
            await scalers.plan(WAKE)
            await scalers.until(lambda: scalers.host.state is not HostState.WAKING)
        await scalers.record.record(scalers.rooster.mended("desks", "grace"))
        scalers.site.refusal = ""
        await scalers.plan(WAKE)
        await scalers.until(lambda: scalers.host.state is HostState.AWAKE)


STEPS: Final = [
    f"{when} {what}" for what in ("drain", "sleep", "wake", "release") for when in ("before", "after")
]


@pytest.mark.parametrize("step", STEPS)
async def test_nothing_is_switched_twice_when_a_scaler_dies_in_between(scalers: Scalers, step: str) -> None:
    """
    The scaler is killed while it asks, before or after that has its effect; the next one looks at the machine, and comes to the
    same end.
    """
    site, met = scalers.site, list[str]()

    def dies(here: str) -> bool:
        if here != step or met:
            return False
        met.append(here)
        scalers.die()
        return True

    site.dies = dies
    owners = iter(("second", "third", "fourth", "fifth"))
    for plan, end in ((SLEEP, HostState.ASLEEP), (WAKE, HostState.AWAKE)):
        while not await comes_to(scalers, plan, end, owner=next(owners)):
            pass
    assert [step] == met
    assert site.is_on
    assert ["sleep", "wake"] == site.switched


async def comes_to(scalers: Scalers, plan: PlanMade, end: HostState, *, owner: str) -> bool:
    """
    Whether a scaler that plans the same again and again, as long as the machine stays as it was, lives until it is as it should be.
    """
    site, under_way = scalers.site, {HostState.HIBERNATING, HostState.WAKING}
    async with scalers.living(owner=owner):
        while scalers.host.state is not end and not scalers.killed.is_set():
            if scalers.host.state not in under_way:
                await scalers.until(lambda: scalers.host.again <= time.time())
                await scalers.plan(plan)
            await scalers.until(lambda: scalers.host.state not in under_way)
        await scalers.until(lambda: not site.drained or not site.is_on)
        return not scalers.killed.is_set()
