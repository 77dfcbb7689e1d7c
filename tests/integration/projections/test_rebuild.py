"""Tables that are rebuilt from the log, beside those in use."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from kettle.eventsourcing.log import Tenure
from kettle.eventsourcing.projection import UnreadableError
from kettle.projections import PROJECTIONS, RebuildError, Rebuilt, lags, prepare, rebuild
from kettle.storage import PgLog
from kettle.testing.patience import PATIENCE_S
from kettle.testing.services import Backend, Owner, eventually, hosted, owned
from kettle_services.accounting.settings import AccountingSettings
from kettle_services.accounting.wiring import serve
from kettle_wire.events import MachineJoined
from kettle_wire.frames import Entry, Frame

from .workload import AT, SHARD, Changes, count, day, differing

ONCE = Path(__file__).with_name("rebuild_once.py")
TABLES = ("jobs.live", "jobs.history", "jobs.claim", "jobs.depth_by_minute")


def settings(backend: Backend) -> AccountingSettings:
    return backend.settings(AccountingSettings, shard_poll=0.1, patience=PATIENCE_S)


async def record(owner: Owner, clusters: range) -> int:
    frame = 0
    for cluster in clusters:
        for i, changes in enumerate(day(cluster, owner=f"user{cluster % 3}")):
            frame = await owner.record(*changes, at_us=AT + (100 * cluster + i) * 1_000_000)
    return frame


async def caught_up(backend: Backend) -> None:
    async def behind() -> bool:
        return not any(
            lag.frames for lag in await lags(backend.log.database, [backend.log]) if lag.projection == "jobs"
        )

    await eventually(behind)


async def counts(backend: Backend) -> list[int]:
    return [await count(backend, table) for table in TABLES]


async def rebuild_in_a_process(backend: Backend, faults: str = "") -> int:
    """The exit status."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, str(ONCE), backend.dsn, "jobs", env={**os.environ, "KETTLE_FAULT_POINTS": faults}
    )
    async with asyncio.timeout(PATIENCE_S):
        return await process.wait()


async def test_a_rebuild_while_events_flow(backend: Backend) -> None:
    """
    The running service goes on with the new tables without a restart; nothing is lost and nothing doubled.
    """
    async with owned(backend, SHARD) as ap, hosted("accounting", settings(backend), serve):
        await record(ap, range(1, 20))
        rebuilt = asyncio.Event()

        async def flow() -> int:
            cluster = 20
            while not rebuilt.is_set():
                await record(ap, range(cluster, cluster + 1))
                cluster += 1
            return cluster - 1

        flowing = asyncio.create_task(flow())
        done: list[Rebuilt] = []
        for _ in range(3):
            done.append(await rebuild(PROJECTIONS["jobs"](), backend.log.database, [backend.log]))
            async with asyncio.timeout(PATIENCE_S):
                while ap.shard.frame <= done[-1].frames:
                    await asyncio.sleep(0.01)
        rebuilt.set()
        clusters = await flowing
        await caught_up(backend)
        assert [] == await differing(backend, "jobs")
        assert [clusters, 4 * clusters, clusters] == (await counts(backend))[:3]
        assert done[0].frames < done[1].frames < done[2].frames
    assert 0 == await count(backend, "pg_namespace WHERE nspname LIKE 'jobs\\_%'")


@pytest.mark.parametrize("point", ["rebuild.filled", "rebuild.swapped"])
async def test_a_rebuild_that_is_killed(backend: Backend, point: str) -> None:
    """
    The tables are right whatever was reached, the service goes on with them, and a rerun works and clears up.
    """
    async with owned(backend, SHARD) as ap, hosted("accounting", settings(backend), serve):
        await record(ap, range(1, 10))
        assert -signal.SIGKILL == await rebuild_in_a_process(backend, f"{point}=kill")
        await record(ap, range(10, 20))
        await caught_up(backend)
        assert [] == await differing(backend, "jobs")
        assert 1 == await count(backend, "pg_namespace WHERE nspname LIKE 'jobs\\_%'")
        assert 0 == await rebuild_in_a_process(backend)
        await record(ap, range(20, 30))
        await caught_up(backend)
        assert [] == await differing(backend, "jobs")
        assert [29, 4 * 29, 29] == (await counts(backend))[:3]
    assert 0 == await count(backend, "pg_namespace WHERE nspname LIKE 'jobs\\_%'")


class HeldLog:
    """A log whose frames come when the test says so."""

    def __init__(self, log: PgLog) -> None:
        self._log = log
        self.asked = asyncio.Event()
        self.goes_on = asyncio.Event()

    async def tenure(self, shard: str) -> Tenure | None:
        return await self._log.tenure(shard)

    async def shards(self) -> list[Tenure]:
        return await self._log.shards()

    async def read(self, shard: str, *, after: int = 0, until: int | None = None) -> AsyncGenerator[Frame]:
        self.asked.set()
        await self.goes_on.wait()
        async for frame in self._log.read(shard, after=after, until=until):
            yield frame


async def test_two_rebuilds_at_once(backend: Backend) -> None:
    """The second is refused with a sentence, and one after the other both work."""
    database = backend.log.database
    async with owned(backend, SHARD) as ap:
        await record(ap, range(1, 10))
    held = HeldLog(backend.log)
    first = asyncio.create_task(rebuild(PROJECTIONS["jobs"](), database, [held]))
    async with asyncio.timeout(PATIENCE_S):
        await held.asked.wait()
    with pytest.raises(
        RebuildError, match="jobs is being rebuilt by somebody else; wait until that has ended"
    ):
        await rebuild(PROJECTIONS["jobs"](), database, [backend.log])
    held.goes_on.set()
    await first
    await rebuild(PROJECTIONS["jobs"](), database, [backend.log])
    assert [] == await differing(backend, "jobs")


async def test_tables_of_another_release(backend: Backend) -> None:
    """
    Tables that an older release made are rebuilt before they are used; those of a newer one are not touched.
    """
    database = backend.log.database
    async with owned(backend, SHARD) as ap:
        await record(ap, range(1, 3))
    assert await prepare(PROJECTIONS["jobs"](), database, [backend.log]) is not None
    assert await prepare(PROJECTIONS["jobs"](), database, [backend.log]) is None
    await database.run(lambda c: c.execute("UPDATE log.projected SET version = 0; DROP TABLE jobs.live"))
    assert await prepare(PROJECTIONS["jobs"](), database, [backend.log]) is not None
    assert [] == await differing(backend, "jobs")
    await database.run(lambda c: c.execute("UPDATE log.projected SET version = 99"))
    with pytest.raises(RebuildError, match="of version 99, this release has 3: start the newer release"):
        await prepare(PROJECTIONS["jobs"](), database, [backend.log])


async def test_a_rebuild_that_cannot_succeed(backend: Backend) -> None:
    """An event that nobody can read, and a shard that is nowhere: the tables in use stay as they are."""
    database = backend.log.database
    async with owned(backend, SHARD) as ap:
        last = await record(ap, range(1, 3))
    await prepare(PROJECTIONS["jobs"](), database, [backend.log])
    before = await counts(backend)
    with pytest.raises(RebuildError, match=r"follow schedd\.ap, in none of the databases given"):
        await rebuild(PROJECTIONS["jobs"](), database, [])
    tenure = await backend.log.take(SHARD, owner="test")
    bad = Frame(
        SHARD, tenure.epoch, last + 1, tenure.head + 1, AT, [Entry("job/9.9", 1, "no.such/1", b"\xc1")]
    )
    await backend.log.append(bad)
    with pytest.raises(
        UnreadableError, match=rf"frame {last + 1}, position {tenure.head + 1}, stream job/9\.9"
    ):
        await rebuild(PROJECTIONS["jobs"](), database, [backend.log])
    assert before == await counts(backend)


async def test_the_progress_of_a_rebuild(backend: Backend) -> None:
    """It is told frame by frame up to the last one of all shards."""
    heard: list[tuple[int, int]] = []
    joined: Changes = [("machine/m", MachineJoined(machine="m", cpus=1, memory=1))]
    async with owned(backend, "collector") as first, owned(backend, "collector.2") as second:
        for owner in (first, first, second):
            await owner.record(*joined, at_us=AT)
    done = await rebuild(
        PROJECTIONS["machines"](),
        backend.log.database,
        [backend.log],
        report=lambda done, total: heard.append((done, total)),
    )
    assert [(2, 3), (3, 3)] == heard
    assert (2, 3, 3) == (done.shards, done.frames, done.events)
