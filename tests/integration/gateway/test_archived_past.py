"""What is asked of a time whose records are in the archive."""

import asyncio
from datetime import UTC, datetime
from pathlib import Path

import pytest

from kettle.archive import archive
from kettle.eventsourcing.shard import Shard
from kettle.projections import PROJECTIONS, rebuild
from kettle.storage import PgLog
from kettle.testing.services import Backend
from kettle_services.gateway.rest.job_rows import Viewer
from kettle_services.gateway.rest.job_tables import JobTables
from kettle_services.gateway.rest.past_queues import PastQueues
from kettle_services.gateway.rest.refusals import RequestRefused
from kettle_wire.events import ClusterSubmitted, JobRemoved
from kettle_wire.rest.jobs import ListJobs

AT = 1_790_000_000
CLUSTERS = 7


async def test_a_list_whose_records_are_archived_says_where_they_are(
    backend: Backend, tmp_path: Path
) -> None:
    """
    How jobs were that have left since is refused with the command that reads it; of a time whose records are here it is listed.
    """
    async with (
        PgLog.connect(backend.dsn, piece_events=4) as log,
        Shard.own(log, "schedd.ap", owner="test") as shard,
    ):
        loop = asyncio.ensure_future(shard.run())
        for number in range(1, CLUSTERS + 1):
            submitted = ClusterSubmitted(cluster=number, owner="ada", ad={}, columns=[], rows=[[]])
            await shard.record([(f"cluster/{number}", submitted)], now_us=(AT + 2 * number) * 10**6)
            removed = JobRemoved(reason="no")
            await shard.record([(f"job/{number}.0", removed)], now_us=(AT + 2 * number + 1) * 10**6)
        await rebuild(PROJECTIONS["jobs"](), log.database, [log])
        loop.cancel()
        await archive(log.database, tmp_path, older_than=datetime.now(UTC))
    tables = JobTables(backend.log.database, most_seconds=30.0)

    async def at(second: float) -> list[str]:
        asked = ListJobs(as_of=datetime.fromtimestamp(AT + second, UTC))
        async with tables.read() as reading:
            found = await PastQueues(reading, asked, Viewer.of("ada", ())).page(None, None)
        return [job.id for job in found.jobs]

    with pytest.raises(RequestRefused, match=r"kettle log show schedd\.ap --frame 1:") as refused:
        await at(2.5)
    assert (410, "gone") == (refused.value.status, refused.value.code)
    assert [f"{CLUSTERS}.0@ap"] == await at(2 * CLUSTERS + 0.5)
