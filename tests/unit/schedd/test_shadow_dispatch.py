"""What a shadow is sent, and sent again."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

from kettle.bus.ports import Bus, Served
from kettle.jobs.sealed_attributes import AttributeSeal
from kettle.runtime import Telemetry
from kettle.testing.bus_adapters import MemoryWorld
from kettle.testing.services import eventually
from kettle_services.schedd.claim_secrets import ClaimSecrets
from kettle_services.schedd.domain.queue.fold import Queue, job_stream
from kettle_services.schedd.shadows.dispatch import ShadowDispatch
from kettle_wire.ads import Scalar
from kettle_wire.commands.attempt_reports import Attempt, ShadowSync
from kettle_wire.commands.shadow import LOOK_AFTER, LookAfter
from kettle_wire.commands.startd import Done
from kettle_wire.events import ClaimGranted, ClusterSubmitted, JobAssigned
from kettle_wire.identity import Identity, daemon
from kettle_wire.jobs import JobId

A, B, C = JOBS = [JobId(1, proc) for proc in range(3)]


def queue_of_running() -> Queue:
    """Three jobs, each with its first attempt on a claim."""
    queue = Queue("ap")
    rows: list[list[Scalar]] = [[str(job.proc)] for job in JOBS]
    event = ClusterSubmitted(cluster=1, owner="eve", ad={"Cmd": "x"}, columns=["Args"], rows=rows)
    queue.apply("cluster/1", event, 1)
    for job in JOBS:
        claim = f"c{job.proc}"
        granted = ClaimGranted(
            claim=claim, startd="ep", slot="s@ep", slot_ad={}, submitter="eve", autocluster=0, lease=60.0
        )
        queue.apply(f"claim/{claim}", granted, 1)
        queue.apply(job_stream(job), JobAssigned(attempt=1, claim=claim, slot="s@ep", startd="ep"), 1)
    return queue


class Owner:
    """Who tells one shadow, on a bus."""

    def __init__(self, shadows: ShadowDispatch, machine: Bus) -> None:
        self.shadows = shadows
        self._machine = machine
        self.told: list[JobId] = []

    async def serve(self) -> None:
        """The shadow can be reached from now on."""
        await self._machine.serve("shadow", "s", [Served(LOOK_AFTER, self._look_after)], version="1.0.0")

    async def _look_after(self, command: LookAfter, caller: Identity) -> Done:
        del caller
        self.told += [assignment.job for assignment in command.start]
        return Done()

    def sync(self, *has: JobId) -> list[JobId]:
        """What the shadow, which says that it has these, is sent in answer."""
        request = ShadowSync(shadow="s", attempts=[Attempt(job, 1) for job in has])
        return [assignment.job for assignment in self.shadows.sync(request, JOBS).start]


@asynccontextmanager
async def owner() -> AsyncGenerator[Owner]:
    world = MemoryWorld()
    bus, machine = await world.connect(daemon("schedd")), await world.connect(daemon("shadow"))
    async with asyncio.TaskGroup() as tasks:
        shadows = ShadowDispatch(
            bus,
            queue_of_running(),
            ClaimSecrets(bytes(32)),
            AttributeSeal([bytes(32)]),
            tasks,
            Telemetry(),
            interval=3600.0,
        )
        yield Owner(shadows, machine)
        shadows.close()


async def test_what_is_on_its_way_is_not_sent_twice() -> None:
    """
    What was handed over is missing from a list made just before: not from the next one, unless it was lost.
    """
    async with owner() as one:
        await one.serve()
        assert [A, B, C] == one.sync(), "it has just begun"
        one.shadows.hand_over(B)
        one.shadows.hand_over(C, "s")
        assert [] == one.sync(A)
        assert [B, C] == one.sync(A), "neither arrived"

        async def told() -> bool:
            return one.told == [B]

        await eventually(told)


async def test_who_begins_anew_is_sent_everything() -> None:
    """A shadow that lists nothing has forgotten what was on its way to it."""
    async with owner() as one:
        assert [A, B, C] == one.sync()
        one.shadows.hand_over(B, "s")
        assert [A, B, C] == one.sync()


async def test_what_could_not_be_delivered_is_not_on_its_way(caplog: pytest.LogCaptureFixture) -> None:
    """A shadow that is not reached is sent it when it asks."""
    async with owner() as one:
        assert [] == one.sync(*JOBS)
        one.shadows.hand_over(B)

        async def lost() -> bool:
            return "shadow not reached" in caplog.text

        await eventually(lost)
        assert [B] == one.sync(A, C)


async def test_who_only_asks_is_told_nothing_else() -> None:
    """An answer leaves no task behind that would have to be ended."""
    async with asyncio.TaskGroup() as tasks:
        bus = await MemoryWorld().connect(daemon("schedd"))
        shadows = ShadowDispatch(
            bus,
            queue_of_running(),
            ClaimSecrets(bytes(32)),
            AttributeSeal([bytes(32)]),
            tasks,
            Telemetry(),
            interval=3600.0,
        )
        before = asyncio.all_tasks()
        shadows.sync(ShadowSync(shadow="s", attempts=[]), JOBS)
        assert before == asyncio.all_tasks()
