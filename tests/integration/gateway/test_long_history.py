"""Ten million jobs that have left: a page at the end of a list costs what the first one does."""

import faulthandler
import logging
import os
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from time import perf_counter
from typing import Final

import msgspec
import pytest
import pytest_asyncio

from kettle.projections import Jobs
from kettle.projections import prepare as make_tables
from kettle.projections.stored_projection import microseconds
from kettle.storage import Database, PgLog
from kettle.storage.database import Connection
from kettle.storage.migration import migrate
from kettle.testing.servers.embedded import servers
from kettle_services.gateway.rest.job_rows import Viewer
from kettle_services.gateway.rest.job_statements import PAST, list_statements
from kettle_services.gateway.rest.job_tables import JobTables, session_settings
from kettle_services.gateway.rest.page_tokens import RowPlace
from kettle_wire.rest.jobs import ListHistory

LONG: Final = "KETTLE_TEST_LONG"
pytestmark = [
    pytest.mark.embedded,
    pytest.mark.skipif(
        LONG not in os.environ, reason=f"it takes minutes: ten million rows ({LONG}=1 makes them)"
    ),
]

ROWS: Final = int(os.environ.get("KETTLE_TEST_HISTORY", "10000000"))
PIECE: Final = 10_000
FILLED_WITHIN_S: Final = 3600.0
SHARD: Final = "schedd.schedd"
OWNERS: Final = 50
LIMIT: Final = 200
LAST: Final = datetime(2026, 11, 1, tzinfo=UTC)
DEPTHS: Final = (0.0, 0.1, 0.5, 0.9, 0.99)
ORDERS: Final[tuple[tuple[str, str], ...]] = (("-left", ""), ("left", ""), ("-left", "user7"))
"""By what a list is sorted, and whose jobs it has."""
COLUMNS: Final = (
    "shard", "cluster", "proc", "owner", "status", "submitted_at", "left_at", "frame", "exit_code", "wall_time", "memory", "queued",
    "started", "completed", "search", "ad",
)  # fmt: skip
_log: Final = logging.getLogger(__name__)


def left(number: int) -> datetime:
    """When the job left that is the so manieth from the newest."""
    return LAST - timedelta(seconds=number)


async def lines() -> AsyncIterator[bytes]:
    """
    Jobs as CSV, each a second older than the one before; their ads are short, for lists do not read them.
    """
    ad = msgspec.msgpack.encode({"Cmd": "/bin/true"}).hex()
    newest = int(LAST.timestamp())
    for first in range(0, ROWS, PIECE):
        piece: list[str] = []
        for number in range(first, min(first + PIECE, ROWS)):
            moment, second = left(number).isoformat(), newest - number
            piece.append(
                f"{SHARD},{number // 1000},{number % 1000},user{number % OWNERS},4,{moment},{moment},{number},0,1.0,{number % 4096},"
                f"{second},{second},{second},{{}},\\x{ad}\n"
            )
        yield "".join(piece).encode()


async def fill(connection: Connection) -> None:
    """The history, copied into a table whose indexes are made when it is full, as a rebuild makes them."""
    await connection.execute("SET search_path TO jobs")
    await connection.execute("ALTER TABLE history SET UNLOGGED")
    indexes = await connection.fetch(
        "SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = 'jobs' AND tablename = 'history' AND indexdef NOT LIKE '%UNIQUE%'"
    )
    for index in indexes:
        await connection.execute(f"DROP INDEX {index['indexname']}")
    await connection.copy_to_table(
        "history", schema_name="jobs", columns=COLUMNS, source=lines(), format="csv", timeout=FILLED_WITHIN_S
    )
    for index in indexes:
        await connection.execute(index["indexdef"], timeout=FILLED_WITHIN_S)
    await connection.execute("ANALYZE history")


@pytest_asyncio.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    """A server of its own on the disk, which is gone with the test."""
    faulthandler.cancel_dump_traceback_later()  # what ends a test that hangs knows nothing of this one
    async with servers(tmp_path, durable=True) as running:
        async with PgLog.connect(running.postgres.dsn) as log:
            await log.database.run(migrate)
            await make_tables(Jobs(), log.database, [log])
            async with log.database.connection() as connection:
                await connection.execute("SET statement_timeout TO 0")
                began = perf_counter()
                await fill(connection)
                size = await connection.fetchval("SELECT pg_database_size(current_database())")
            _log.info("%d rows in %.0f s, %.1f GB", ROWS, perf_counter() - began, size / 1e9)
            assert size < 8e9
        async with Database.connect(running.postgres.dsn, session=session_settings(60.0)) as reading:
            yield reading


def place(sort: str, depth: float) -> RowPlace | None:
    """Of the row at which so much of the list is over; None: none of it."""
    if not depth:
        return None
    number = int(ROWS * (depth if sort.startswith("-") else 1 - depth))
    return RowPlace(microseconds(left(number)), SHARD, number // 1000, number % 1000)


async def blocks(database: Database, asked: ListHistory, after: RowPlace | None) -> int:
    """How many blocks of 8 KiB the database looks at for a page."""
    [statement] = list_statements(PAST, asked, None, after, limit=asked.limit + 1)
    async with database.connection() as connection:
        text = f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {statement.text}"
        said = await connection.fetchval(text, *statement.arguments)
    [explained] = msgspec.json.decode(said)
    return int(explained["Plan"]["Shared Hit Blocks"] + explained["Plan"]["Shared Read Blocks"])


async def test_a_page_costs_the_same_wherever_it_is(database: Database) -> None:
    """
    Wish 3: pages of a history of ten million jobs, the newest or the oldest first or those of one person, are read in as many blocks at
    the end of the list as at its beginning, and follow each other without a gap.
    """
    tables = JobTables(database, most_seconds=60.0)
    for sort, owner in ORDERS:
        asked = msgspec.convert(
            {"sort": sort, "owner": [owner] if owner else [], "limit": LIMIT}, ListHistory
        )
        seen: list[int] = []
        for depth in DEPTHS:
            after = place(sort, depth)
            seen.append(await blocks(database, asked, after))
            began = perf_counter()
            async with tables.read() as reading:
                one = await reading.jobs(asked, None, after, Viewer.of("ada", ()))
                two = await reading.jobs(asked, None, one.more, Viewer.of("ada", ()))
            took = (perf_counter() - began) / 2
            _log.info("%s %s at %g: %.1f ms, %d blocks", sort, owner, depth, took * 1000, seen[-1])
            numbers = [job.cluster * 1000 + job.proc for job in (*one.jobs, *two.jobs)]
            step = (OWNERS if owner else 1) * (1 if sort.startswith("-") else -1)
            assert list(range(numbers[0], numbers[0] + 2 * LIMIT * step, step))[: len(numbers)] == numbers
            assert len(one.jobs) == LIMIT
        assert max(seen) <= 2 * min(seen), (sort, owner, seen)
