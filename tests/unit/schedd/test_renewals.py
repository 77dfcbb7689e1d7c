"""Claims that are renewed: by a schedd as it is wired, at machines that answer or do not."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from kettle.bus.ports import Served
from kettle.eventsourcing.memory import MemoryLog, MemoryWorkingSet
from kettle.eventsourcing.shard import Shard
from kettle.jobs.sealed_attributes import AttributeSeal
from kettle.runtime import Telemetry
from kettle.testing.bus_adapters import MemoryWorld
from kettle_services.schedd.claim_secrets import ClaimSecrets
from kettle_services.schedd.claims.lifecycle import ClaimLifecycle
from kettle_services.schedd.claims.renewer import ClaimRenewer
from kettle_services.schedd.domain.queue.fold import Queue
from kettle_services.schedd.queue.recorder import QueueRecorder, restore
from kettle_services.schedd.settings import ScheddSettings
from kettle_services.schedd.shadows.dispatch import ShadowDispatch
from kettle_wire.commands.startd import ALIVE, Alive, AliveReply
from kettle_wire.events import ClaimGranted
from kettle_wire.identity import Identity, daemon


class Startd:
    """A machine with claims; it says when it is asked to renew them."""

    def __init__(self, name: str, *, answers: bool = True) -> None:
        self.name = name
        self.answers = answers
        self.asked = asyncio.Event()
        self.under_way = self.most = 0

    async def alive(self, command: Alive, caller: Identity) -> AliveReply:
        del command, caller
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        self.asked.set()
        if not self.answers:
            await asyncio.Event().wait()
        self.under_way -= 1
        return AliveReply(clock=1.0, unknown=[], extra=[])


class Schedd:
    """A queue without jobs that has claims."""

    def __init__(self, recorder: QueueRecorder, renewer: ClaimRenewer) -> None:
        self._recorder = recorder
        self._renewer = renewer

    async def granted(self, number: int, startd: Startd) -> None:
        """A machine has granted a claim, which is on record now."""
        event = ClaimGranted(
            claim=f"ap#1#{number}",
            startd=startd.name,
            slot=f"slot1@{startd.name}",
            slot_ad={},
            submitter="eve",
            autocluster=0,
            lease=1800.0,
        )
        await self._recorder.record([(f"claim/{event.claim}", event)])
        self._renewer.renew_soon(startd.name)


@asynccontextmanager
async def schedd(*machines: Startd) -> AsyncGenerator[Schedd]:
    settings, world, log = ScheddSettings(name="ap"), MemoryWorld(), MemoryLog()
    for machine in machines:
        bus = await world.connect(daemon("startd"))
        await bus.serve("startd", machine.name, [Served(ALIVE, machine.alive)], version="1.0.0")
    bus = await world.connect(daemon("schedd"))
    async with Shard.own(log, "schedd.ap", owner="me") as shard, asyncio.TaskGroup() as tasks:
        committing = tasks.create_task(shard.run())
        queue = Queue("ap")
        recorder = QueueRecorder(
            shard, queue, await restore(log, MemoryWorkingSet(log), shard, queue, interval=1.0)
        )
        secrets, seal = ClaimSecrets(bytes(32)), AttributeSeal([bytes(32)])
        shadows = ShadowDispatch(bus, queue, secrets, seal, tasks, Telemetry(), interval=60.0)
        claims = ClaimLifecycle(bus, recorder, shadows, secrets, tasks, settings)
        renewing = tasks.create_task(claims.renewer.renew_leases())
        yield Schedd(recorder, claims.renewer)
        renewing.cancel()
        shadows.close()
        committing.cancel()


async def test_nobody_waits_for_a_machine_that_does_not_answer() -> None:
    """
    A machine ends a new claim that is not renewed within 20 s, and a silent one is waited for for longer; it itself is asked
    nothing more meanwhile, whatever it grants.
    """
    silent, other = Startd("silent", answers=False), Startd("other")
    async with schedd(silent, other) as ap, asyncio.timeout(10):
        await ap.granted(1, silent)
        await silent.asked.wait()
        await ap.granted(2, silent)
        await ap.granted(3, other)
        await other.asked.wait()
        assert 1 == silent.most
