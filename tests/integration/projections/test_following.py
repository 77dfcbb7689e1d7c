"""Projections in the running service: how far they are, and what becomes of one that stops."""

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest

from kettle.bus.ports import RefusedError
from kettle.projections import PROJECTIONS, Lag, lags, prepare, rebuild
from kettle.runtime.health import readiness
from kettle.storage import PgLog
from kettle.testing.patience import PATIENCE_S
from kettle.testing.servers.embedded import fresh_database
from kettle.testing.services import Backend, Owner, eventually, hosted, owned
from kettle_services.accounting.settings import AccountingSettings
from kettle_services.accounting.wiring import serve
from kettle_wire.attempts import ExitRecord
from kettle_wire.commands.accounting import QUERY_HISTORY, QUERY_USAGE, QueryHistory, QueryUsage
from kettle_wire.endpoint import Position
from kettle_wire.events import JobCompleted, MachineJoined
from kettle_wire.identity import user

from .workload import AT, SHARD, USAGE, assigned, count, day, differing, submitted

MACHINE = ("machine/m", MachineJoined(machine="m", cpus=4, memory=1024))


def settings(backend: Backend, **more: object) -> AccountingSettings:
    return backend.settings(AccountingSettings, shard_poll=0.1, patience=PATIENCE_S, **more)


async def lag_of(backend: Backend, name: str, shard: str) -> Lag:
    (one,) = [
        lag
        for lag in await lags(backend.log.database, [backend.log], now=lambda: AT / 1_000_000 + 60)
        if (lag.projection, lag.shard) == (name, shard)
    ]
    return one


async def caught_up(backend: Backend, name: str, shard: str) -> None:
    async def even() -> bool:
        return not (await lag_of(backend, name, shard)).frames

    await eventually(even)


async def test_lags(backend: Backend) -> None:
    """
    Behind in frames, and in seconds by the age of the oldest frame that is not applied; a working set, too.
    """
    async with owned(backend, SHARD) as ap:
        await ap.record(submitted(1), at_us=AT)
        await prepare(PROJECTIONS["jobs"](), backend.log.database, [backend.log])
        await ap.record(submitted(2), at_us=AT + 10_000_000)
        await ap.record(submitted(3), at_us=AT + 50_000_000)
    assert Lag(projection="jobs", version=3, shard=SHARD, frame=1, head=3, seconds=50.0) == await lag_of(
        backend, "jobs", SHARD
    )
    assert 0 == (await lag_of(backend, "working_set", SHARD)).frame
    await rebuild(PROJECTIONS["jobs"](), backend.log.database, [backend.log])
    assert (0, 0.0) == ((lag := await lag_of(backend, "jobs", SHARD)).frames, lag.seconds)


async def test_one_that_stops_and_goes_on(backend: Backend, caplog: pytest.LogCaptureFixture) -> None:
    """
    It says where and why, makes the service not ready, and lets the others go on; a rebuild repairs it without a restart.
    """
    async with (
        owned(backend, SHARD) as ap,
        owned(backend, "schedd.other") as other,
        owned(backend, "collector") as collector,
        hosted("accounting", settings(backend), serve) as rt,
        backend.bus(user("test")) as bus,
    ):
        await ap.record(submitted(1, count=2), at_us=AT)
        await caught_up(backend, "jobs", SHARD)
        await backend.log.database.run(lambda c: c.execute("DELETE FROM jobs.live WHERE proc = 1"))
        last = await ap.record(("job/1.0", assigned()), ("job/1.1", assigned()), at_us=AT)

        async def stopped() -> str | None:
            return (await lag_of(backend, "jobs", SHARD)).error

        why = await eventually(stopped)
        assert why is not None
        assert why.startswith(
            "at frame 2, position 3, stream job/1.1: UnknownJobError: ap: an event of job 1.1"
        )
        assert {"bus": True, "projections": False} == await readiness(
            cast("Any", rt)._checks, deadline=PATIENCE_S
        )
        with pytest.raises(RefusedError, match=r"jobs stopped in schedd\.ap at frame 2"):
            await bus.call(QUERY_HISTORY, "accounting", QueryHistory(at_least=Position(SHARD, last)))
        await collector.record(MACHINE, at_us=AT)
        await other.record(submitted(7), at_us=AT)
        await caught_up(backend, "machines", "collector")
        await caught_up(backend, "jobs", "schedd.other")
        assert 1 == sum(record.levelname == "CRITICAL" for record in caplog.records)

        await rebuild(PROJECTIONS["jobs"](), backend.log.database, [backend.log])
        await ap.record(("job/1.1", JobCompleted(attempt=1, exit=ExitRecord(code=0), usage=USAGE)), at_us=AT)
        await caught_up(backend, "jobs", SHARD)

        async def ready() -> bool:
            return all((await readiness(cast("Any", rt)._checks)).values())

        await eventually(ready)
        assert [] == await differing(backend, "jobs")
        assert await stopped() is None


async def test_tables_that_cannot_be_made(backend: Backend) -> None:
    """The service runs without them, says so, and serves what it can."""
    await prepare(PROJECTIONS["jobs"](), backend.log.database, [backend.log])
    await backend.log.database.run(lambda c: c.execute("UPDATE log.projected SET version = 99"))
    async with (
        owned(backend, "collector") as collector,
        hosted("accounting", settings(backend), serve) as rt,
        backend.bus(user("test")) as bus,
    ):
        with pytest.raises(RefusedError, match="of version 99, this release has 3") as refused:
            await bus.call(QUERY_USAGE, "accounting", QueryUsage())
        assert "unavailable" == refused.value.code
        await collector.record(MACHINE, at_us=AT)
        await caught_up(backend, "machines", "collector")
        assert {"bus": True, "projections": False} == await readiness(
            cast("Any", rt)._checks, deadline=PATIENCE_S
        )


async def record(owner: Owner, clusters: range) -> None:
    for cluster in clusters:
        for changes in day(cluster):
            await owner.record(*changes, at_us=AT + cluster)


@pytest.mark.parametrize("point", ["projection.before=kill@5", "projection.committed=kill@5"])
async def test_killed_at_every_step(backend: Backend, point: str, tmp_path: Path) -> None:
    """
    Killed with the rows written, committed or acknowledged: the next one goes on, nothing is lost or counted twice.
    """
    place = msgspec.structs.asdict(settings(backend))
    environ = {
        f"KETTLE_{name.upper()}": str(place[name])
        for name in ("pool", "nats_url", "nats_credentials", "database_url")
    }
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "kettle_services.accounting",
        env={**os.environ, **environ, "KETTLE_FAULT_POINTS": point},
    )
    async with owned(backend, SHARD) as ap:
        async with asyncio.timeout(PATIENCE_S):
            cluster = 1
            while process.returncode is None:
                await record(ap, range(cluster, cluster + 1))
                cluster += 1
        assert -signal.SIGKILL == await process.wait()
        async with hosted("accounting", settings(backend), serve):
            await record(ap, range(cluster, cluster + 3))
            await caught_up(backend, "jobs", SHARD)
            assert [] == await differing(backend, "jobs")
            assert 4 * (cluster + 2) == await count(backend, "jobs.history")


async def test_queues_of_further_databases(backend: Backend) -> None:
    """
    A queue whose log is in another database is followed as well, and found again by a rebuild that knows where.
    """
    async with fresh_database(backend.dsn) as dsn, PgLog.connect(dsn) as far:
        elsewhere = msgspec.structs.replace(backend, log=far)
        async with (
            owned(backend, SHARD) as ap,
            owned(elsewhere, "schedd.far") as other,
            hosted("accounting", settings(backend, databases=[dsn]), serve),
        ):
            await record(ap, range(1, 3))
            await record(other, range(1, 4))

            async def complete() -> bool:
                return 4 * 5 == await count(backend, "jobs.history")

            await eventually(complete)
            found = await lags(backend.log.database, [backend.log, far])
            assert [SHARD, "schedd.far"] == [lag.shard for lag in found if lag.projection == "jobs"]
            await rebuild(PROJECTIONS["jobs"](), backend.log.database, [backend.log, far])
            assert await complete()
            await record(other, range(4, 5))

            async def more() -> bool:
                return 4 * 6 == await count(backend, "jobs.history")

            await eventually(more)
