"""An administrator has an entrypoint take no jobs."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from kettle.bus.memory import MemoryBus
from kettle.bus.memory_server import MemoryServer
from kettle.eventsourcing.command_pipeline import CommandPipeline
from kettle.eventsourcing.memory import MemoryLog, MemoryWorkingSet
from kettle.eventsourcing.shard import Shard
from kettle.testing.served import Endpoints
from kettle_services.ce.commands import CeCommands
from kettle_services.ce.domain.state import CeState
from kettle_services.ce.record import Record, shard_of
from kettle_services.ce.route_file import RouteFile
from kettle_services.ce.routing import Router
from kettle_services.ce.settings import CeSettings
from kettle_wire.commands.ce import DRAIN, RESUME, DrainEntrypoint, DrainSet, ResumeEntrypoint
from kettle_wire.identity import daemon, user
from kettle_wire.subjects import Subjects


class Drained:
    """What of an entrypoint answers administrators."""

    def __init__(self, log: MemoryLog, record: Record) -> None:
        bus = MemoryBus(MemoryServer(), subjects=Subjects("test"), identity=daemon("ce"))
        file = RouteFile("", record, {})
        self.router = Router(bus, record, file, CeSettings())
        asked = CeCommands(log, record, file, self.router, lambda: {"root"})
        pipeline = CommandPipeline(record, administrators=lambda: {"root"})
        self._asked = Endpoints(
            [pipeline.command(DRAIN, asked.drain), pipeline.command(RESUME, asked.resume)]
        )
        self.record = record

    async def drain(self, reason: str) -> DrainSet:
        return await self._asked.ask(DRAIN, DrainEntrypoint(reason=reason), user("root"))

    async def resume(self) -> DrainSet:
        return await self._asked.ask(RESUME, ResumeEntrypoint(), user("root"))


@asynccontextmanager
async def running(log: MemoryLog) -> AsyncGenerator[Drained]:
    async with Shard.own(log, shard_of("schedd"), owner="me") as shard, asyncio.TaskGroup() as tasks:
        record = await Record.recall(log, MemoryWorkingSet(log), shard, CeState(), interval=60.0)
        committing = tasks.create_task(shard.run())
        yield Drained(log, record)
        committing.cancel()


async def test_a_drain_is_recorded_and_survives_a_restart() -> None:
    """
    Said again it changes nothing, and the newest reason is in force; afterwards it may be drained again.
    """
    log = MemoryLog()
    async with running(log) as ce:
        said = [await ce.drain(reason) for reason in ("cooling", "cooling", "power")]
        assert ["root drains the entrypoint: " + each for each in ("cooling", "cooling", "power")] == [
            each.draining.removeprefix("ce.draining: ") for each in said
        ]
        assert said[0].position == said[1].position
    async with running(log) as ce:
        assert "ce.draining: root drains the entrypoint: power" == ce.router.draining
        assert "" == (await ce.resume()).draining
        assert (await ce.resume()).position == (await ce.resume()).position
        assert "ce.draining: root drains the entrypoint" == (await ce.drain("")).draining
    async with running(log) as ce:
        assert ce.record.state.door.draining
