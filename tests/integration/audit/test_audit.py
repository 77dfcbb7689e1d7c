"""What an audit looks at, and what it leaves alone."""

import asyncio

import msgspec
import pytest

from kettle.audit import AuditError, AuditScope, check
from kettle.audit.sampling import Sample
from kettle.bus.ports import StreamSpec
from kettle.eventsourcing.shard import Shard
from kettle.storage import PgLog
from kettle.testing.servers.embedded import fresh_database
from kettle.testing.services import Backend, eventually, owned
from kettle_services.cli.log.folds import WORKING_SETS
from kettle_services.collector.domain.machine_presence import THERE
from kettle_wire.events import (
    CycleNegotiated,
)
from kettle_wire.frames import encode as encode_frame
from kettle_wire.frames import hollow

from .life import AT, SHARD, SUBMITTED, audit, damage, firsts, live_through, reached


@pytest.fixture
async def backend(backend: Backend) -> Backend:
    return await live_through(backend)


async def test_a_clean_log(backend: Backend) -> None:
    """Nothing is found in a log with all that belongs to it, and every check had something to look at."""
    report = await audit(backend)
    assert {} == firsts(report)
    assert report.clean
    assert {
        "positions": 15, "frames": 10, "versions": 15, "events": 15, "times": 10, "attempts": 3, "claims": 2,
        "head": 2, "bus": 10, "working_set": 7, "usage": 1, "archives": 0, "projection.jobs": 12,
        "projection.machines": 3,
    } == {c.name: c.examined for c in report.checks}  # fmt: skip
    assert [("collector", 3, 3, 3), (SHARD, 7, 12, 7)] == [
        (s.shard, s.frames, s.events, s.on_bus) for s in report.shards
    ]


async def test_without_a_bus_and_not_full(backend: Backend) -> None:
    """An audit that is not full folds nothing; one without a bus compares nothing with it."""
    report = await audit(backend, full=False)
    assert report.clean
    assert (0, 10) == tuple(report.check(name).examined for name in ("working_set", "bus"))
    report = await check(backend.dsn, wanted=AuditScope(folds=WORKING_SETS))
    assert report.clean
    assert (7, 0) == tuple(report.check(name).examined for name in ("working_set", "bus"))


async def test_one_shard(backend: Backend) -> None:
    """Only what was asked for is looked at, and what is not there is an error."""
    report = await audit(backend, shards=["collector"])
    assert ["collector"] == [shard.shard for shard in report.shards]
    assert report.clean
    with pytest.raises(AuditError, match=r"there is no shard schedd\.other"):
        await audit(backend, shards=["schedd.other"])


async def test_no_log(backend: Backend) -> None:
    """A database that cannot be read is an error, not a clean log."""
    await damage(backend, "DROP TABLE log.shard")
    with pytest.raises(AuditError, match="cannot be read"):
        await audit(backend)


OF_AP = "shard = (SELECT id FROM log.shard WHERE name = 'schedd.ap')"
DELETE = f"DELETE FROM log.event WHERE {{}} AND {OF_AP}"


async def test_the_collectors_working_set(backend: Backend) -> None:
    """A machine that the collector took for present when it was gone is found."""
    await damage(backend, ("UPDATE log.working_set SET state = $1 WHERE stream = 'machine/m'", THERE))
    assert {"working_set": ("collector", 3)} == firsts(await audit(backend))


async def test_the_table_of_machines(backend: Backend) -> None:
    """So is one that its table forgot, and a passage that never was."""
    await damage(backend, "DELETE FROM machines.machine WHERE machine = 'n'")
    assert {"projection.machines": ("collector", 2)} == firsts(await audit(backend))
    await damage(
        backend, "INSERT INTO machines.passage VALUES ('collector', 1000, now(), 'ghost', true, NULL)"
    )
    problems = (await audit(backend)).check("projection.machines")
    assert 2 == problems.problems


async def test_tables_of_another_release(backend: Backend) -> None:
    """Tables that another release made are not compared, and the report says so."""
    await damage(backend, "UPDATE log.projected SET version = version + 1 WHERE name = 'jobs'")
    report = await audit(backend)
    assert report.clean
    (skipped,) = report.check("projection.jobs").skipped
    assert skipped.startswith(f"{SHARD}: its tables are of version")


@pytest.mark.parametrize(("seed", "found"), [(0, {}), (7, {"projection.jobs": (SHARD, 10)})])
async def test_a_sample(backend: Backend, seed: int, found: dict[str, tuple[str, int]]) -> None:
    """A sampled audit folds and compares some streams alone; which ones, its seed says."""
    await damage(backend, "DELETE FROM jobs.history WHERE proc = 0")
    wanted = AuditScope(folds=WORKING_SETS, sample=1, seed=seed)
    report = await check(backend.dsn, wanted=wanted)
    assert found == firsts(report)
    assert 15 == report.check("versions").examined
    assert (1 if found else 0) == sum(Sample(1, 3, seed=seed).takes(stream) for stream in ("cluster/1",))


async def test_folds_of_a_damaged_log_are_not_compared(backend: Backend) -> None:
    """
    What a damaged log comes to is no reason to doubt what is stored; the report says that it was left out.
    """
    await damage(backend, DELETE.format("pos = 4"))
    working_set = (await audit(backend)).check("working_set")
    assert [f"{SHARD}: what the log says of it is damaged"] == working_set.skipped
    assert 0 == working_set.problems


async def test_a_bus_that_knows_more(backend: Backend) -> None:
    """A bus that is ahead of the database is found: the database was restored from an older copy."""
    async with backend.bus() as bus:
        await bus.append(backend.subjects.events(SHARD), b"frame 8", expect_last=7)
    report = await audit(backend)
    assert {"bus": (SHARD, 8)} == firsts(report)
    assert "the bus has frame 8, the database ends with frame 7" in str(report.check("bus").first)


async def test_a_forged_message(backend: Backend) -> None:
    """A frame on the bus that nobody committed is found at its number, hollow or whole."""
    async with owned(backend, "negotiator") as negotiator, backend.bus() as bus:
        stream = backend.subjects.event_stream("negotiator")
        event = CycleNegotiated(cycle=1, started=1.0, duration=1.0, slots=1, idle=1)
        await negotiator.record(("cycle/1", event), at_us=AT)
        await eventually(lambda: reached(bus, stream, 1))
    async with backend.bus() as bus:
        frame = await anext(backend.log.read("negotiator"))
        forged = msgspec.structs.replace(frame, at=frame.at + 1)
        for message in (encode_frame(forged), encode_frame(hollow(forged))):
            await bus.delete_stream(stream)
            await bus.ensure_stream(
                StreamSpec(name=stream, subjects=[backend.subjects.events("negotiator")], remake=False)
            )
            await bus.append(backend.subjects.events("negotiator"), message, expect_last=0)
            assert {"bus": ("negotiator", 1)} == firsts(await audit(backend))


async def test_a_bus_that_forgot(backend: Backend) -> None:
    """A bus without the frames is no problem: it may forget."""
    wanted = AuditScope(folds=WORKING_SETS)
    async with backend.bus() as bus:
        found = await check(backend.dsn, bus, subjects=type(backend.subjects)("another"), wanted=wanted)
    assert found.clean
    assert 0 == found.check("bus").examined


async def test_several_databases(backend: Backend) -> None:
    """An audit goes over the shards of all databases of a pool, and each shard's problem is told."""
    async with fresh_database(backend.dsn) as other:
        async with PgLog.connect(other) as log, Shard.own(log, "schedd.far", owner="test") as shard:
            loop = asyncio.ensure_future(shard.run())
            await shard.record([("cluster/1", SUBMITTED)], now_us=AT)
            loop.cancel()
            await log.database.run(lambda c: c.execute("UPDATE log.shard SET head = 5"))
        await damage(backend, "UPDATE log.shard SET head = 99 WHERE name = 'schedd.ap'")
        report = await check([backend.dsn, other], wanted=AuditScope(folds=WORKING_SETS))
    assert [(SHARD, 12), ("schedd.far", 1)] == [(p.shard, p.position) for p in report.check("head").firsts]
    assert ["collector", SHARD, "schedd.far"] == [shard.shard for shard in report.shards]
