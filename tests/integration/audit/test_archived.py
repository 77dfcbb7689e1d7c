"""The audit and the commands over a log of which a part is in files."""

import asyncio
from datetime import UTC, datetime
from pathlib import Path

import pytest

from kettle.archive import archive
from kettle.audit import AuditReport, AuditScope, check
from kettle.eventsourcing.shard import Shard
from kettle.storage import PgLog
from kettle.testing.services import Backend
from kettle_services.cli.log.databases import ShardLocation
from kettle_services.cli.log.event_pages import EventFilter, read
from kettle_services.cli.log.folds import WORKING_SETS
from kettle_wire.events import ClusterSubmitted, JobRemoved

SHARD = "schedd.old"
AT = 1_700_000_000_000_000
CLUSTERS = 10


@pytest.fixture
async def directory(backend: Backend, tmp_path: Path) -> Path:
    """A shard in pieces of four events, all but the newest of them archived here."""
    async with (
        PgLog.connect(backend.dsn, piece_events=4) as log,
        Shard.own(log, SHARD, owner="test") as shard,
    ):
        loop = asyncio.ensure_future(shard.run())
        for cluster in range(1, CLUSTERS + 1):
            submitted = ClusterSubmitted(cluster=cluster, owner="ada", ad={}, columns=[], rows=[[]])
            changes = [(f"cluster/{cluster}", submitted), (f"job/{cluster}.0", JobRemoved(reason="r"))]
            await shard.record(changes, now_us=AT + cluster)
        loop.cancel()
        await archive(log.database, tmp_path, older_than=datetime.now(UTC))
    return tmp_path


async def audit(backend: Backend, directory: Path) -> AuditReport:
    return await check(backend.dsn, wanted=AuditScope(folds=WORKING_SETS, archive=directory))


async def test_the_audit_reads_the_archive(backend: Backend, directory: Path) -> None:
    """Events in files are audited like the others, and the files by their hashes."""
    left = await backend.log.database.run(lambda c: c.fetchval("SELECT count(*) FROM log.event"))
    assert left < 2 * CLUSTERS
    report = await audit(backend, directory)
    assert [] == [check.first for check in report.checks if check.problems]
    assert (20, 20, 10) == tuple(report.check(name).examined for name in ("positions", "versions", "frames"))
    assert 0 < report.check("archives").examined


async def test_a_file_that_is_another(backend: Backend, directory: Path) -> None:
    """A file that was changed is found, and named."""
    file = next(iter(sorted((directory / SHARD).glob("*.events.parquet"))))
    file.write_bytes(file.read_bytes()[:-1] + b"x")
    found = (await audit(backend, directory)).check("archives")
    assert found.first is not None
    assert (SHARD, 0) == (found.first.shard, found.first.position)
    assert file.name in found.first.sentence


async def test_a_manifest_that_says_something_else(backend: Backend, directory: Path) -> None:
    """So is a manifest that does not agree with the database, and nothing else fails."""
    (directory / SHARD / "manifest.json").unlink()
    report = await audit(backend, directory)
    assert ["archives"] == [check.name for check in report.checks if check.problems]
    assert "the manifest does not name" in str(report.check("archives").first)


async def test_showing_reads_the_archive(backend: Backend, directory: Path) -> None:
    """Filters hold for archived events, too, and the seam between files and table does not show."""
    from kettle.archive import FileArchives

    log = PgLog(backend.log.database, archives=FileArchives(directory))
    (tenure,) = [tenure for tenure in await log.shards() if tenure.shard == SHARD]
    place = ShardLocation(log, tenure)
    everything = [row async for row in read(place, EventFilter(after=0, until=tenure.frame))]
    assert list(range(1, 21)) == [row.position for row in everything]
    removed = [row async for row in read(place, EventFilter(after=1, until=9, types=["job.*"]))]
    assert list(range(4, 19, 2)) == [row.position for row in removed]
    one = [row async for row in read(place, EventFilter(after=0, until=10, streams=frozenset({"cluster/2"})))]
    assert [3] == [row.position for row in one]
