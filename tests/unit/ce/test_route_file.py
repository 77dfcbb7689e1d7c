"""The file with the routes, as an entrypoint takes it."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from kettle.eventsourcing.memory import MemoryLog, MemoryWorkingSet
from kettle.eventsourcing.shard import Shard
from kettle_services.ce.domain.state import CeState
from kettle_services.ce.record import Record, shard_of
from kettle_services.ce.route_file import RouteFile


@asynccontextmanager
async def reading(log: MemoryLog, path: Path, systems: Mapping[str, str]) -> AsyncGenerator[RouteFile]:
    async with Shard.own(log, shard_of("schedd"), owner="me") as shard, asyncio.TaskGroup() as tasks:
        record = await Record.recall(log, MemoryWorkingSet(log), shard, CeState(), interval=60.0)
        committing = tasks.create_task(shard.run())
        file = RouteFile(str(path), record, systems)
        await file.recall()
        yield file
        committing.cancel()


async def test_routes_to_a_batch_system_that_is_not_there_are_refused(tmp_path: Path) -> None:
    """
    Those before stay in force.  When a batch system goes from the settings its routes are refused with the next start, and until there are
    others they take no jobs.
    """
    log, path = MemoryLog(), tmp_path / "routes"
    routes = 'JOB_ROUTER_ROUTE_NAMES = R\nJOB_ROUTER_ROUTE_R @=end\nGridResource = "batch TARGET"\n@end\n'
    path.write_text(routes.replace("TARGET", "here"))
    async with reading(log, path, {"here": "slurm"}) as file:
        assert file.table is not None
        version = file.table.version
        path.write_text(routes.replace("TARGET", "away"))
        (problem,) = await file.load()
        assert f"{path}: route R, line 3: GridResource" in problem
        assert "no batch system away in [[ce.batch]], which has here" in problem
        assert version == file.table.version
    path.write_text(routes.replace("TARGET", "here"))
    async with reading(log, path, {"other": "slurm"}) as file:
        assert file.table is not None
        assert (version, {"other": "slurm"}) == (file.table.version, file.table.systems)
        (problem,) = await file.load()
        assert "no batch system here in [[ce.batch]], which has other" in problem
