"""The log in a real PostgreSQL: crashes, lost answers, races, pieces, plans."""

import asyncio
import os
import signal
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from kettle.embedded import EmbeddedPostgres
from kettle.eventsourcing.log import Answered, FencedError, LogUnavailableError, StoredEvent
from kettle.eventsourcing.shard import Shard
from kettle.storage import PgLog, PgWorkingSet
from kettle.storage.database import Connection, Database
from kettle.storage.pg_log import AHEAD, PIECE
from kettle.storage.queries import QUERIES
from kettle.testing.patience import PATIENCE_S
from kettle_wire.events import JobRemoved
from kettle_wire.frames import Entry, Frame, encode


def frame(number: int, position: int, count: int = 1, *, epoch: int = 1) -> Frame:
    entries = [Entry(f"job/{i}.0", number, "job.removed/1", b"data") for i in range(count)]
    return Frame("s", epoch, number, position, 1_763_719_200_000_001, entries)


class Losing(Database):
    """Loses the answer of the next statement: it is carried out, then the connection is gone."""

    lose = 0

    @asynccontextmanager
    async def connection(self) -> AsyncGenerator[Connection, None]:
        async with super().connection() as connection:
            yield connection
            if self.lose:
                self.lose -= 1
                raise asyncpg.ConnectionDoesNotExistError("the answer was lost")


async def test_an_append_whose_answer_was_lost_is_there_once(dsn: str) -> None:
    """The append is repeated, writes nothing the second time, and is found to have succeeded."""
    async with PgLog.connect(dsn, patience=PATIENCE_S) as log, Losing.connect(dsn) as database:
        losing = PgLog(database)
        await losing.take("s", owner="me")
        database.lose = 2
        await losing.append(frame(1, 1, 3), [Answered(id="c", frame=1, reply=b"r")])
        await losing.append(frame(2, 4))
        assert [encode(frame(1, 1, 3)), encode(frame(2, 4))] == [encode(f) async for f in log.read("s")]
        database.lose = 1
        await losing.append(frame(3, 5, 0), [Answered(id="d", frame=2, reply=b"r")])
        assert ["c", "d"] == [a.id for a in await log.answers("s", newest=9)]


async def test_a_lost_answer_of_a_stale_owner_stays_a_refusal(dsn: str) -> None:
    """Looking does not take another owner's frame for ours."""
    async with PgLog.connect(dsn, patience=PATIENCE_S) as log, Losing.connect(dsn) as database:
        losing = PgLog(database)
        await losing.take("s", owner="old")
        await log.take("s", owner="new")
        await log.append(frame(1, 1, epoch=2))
        database.lose = 1
        with pytest.raises(FencedError):
            await losing.append(frame(1, 1))


async def test_a_save_whose_answer_was_lost_is_not_a_refusal(dsn: str) -> None:
    """The cursor tells that it was done."""
    async with PgLog.connect(dsn, patience=PATIENCE_S) as log, Losing.connect(dsn) as database:
        await log.take("s", owner="me")
        working_set = PgWorkingSet(database)
        database.lose = 1
        await working_set.save("s", epoch=1, was=0, now=3, put=[StoredEvent("a", 1, b"x")], drop=[])
        assert (3, [StoredEvent("a", 1, b"x")]) == await PgWorkingSet(log.database).load("s")


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGQUIT], ids=["killed", "immediate shutdown"])
async def test_nothing_is_lost_or_doubled_when_the_server_is_killed(
    directory: Path, how: signal.Signals
) -> None:
    """Callers wait while the server is away; every event that was answered is there, once, in order."""
    async with (
        EmbeddedPostgres(directory / "postgres", throwaway=False) as server,
        PgLog.connect(server.dsn, patience=PATIENCE_S) as log,
        Shard.own(log, "s", owner="me") as shard,
    ):
        committer = asyncio.create_task(shard.run())
        acknowledged: list[int] = []
        stop = asyncio.Event()

        async def call(i: int) -> None:
            while not stop.is_set():
                acknowledged.append(await shard.record([(f"job/{i}.0", JobRemoved())], now_us=1))

        callers = [asyncio.create_task(call(i)) for i in range(16)]
        before = 0
        for _ in range(3):
            async with asyncio.timeout(PATIENCE_S):
                while len(acknowledged) == before:
                    await asyncio.sleep(0.01)
            before = len(acknowledged)
            os.kill(server.pid, how)
            await server.wait()
            await server.start()
            async with asyncio.timeout(PATIENCE_S):
                while len(acknowledged) < before + 100:
                    await asyncio.sleep(0.01)
        stop.set()
        await asyncio.gather(*callers)
        committer.cancel()
        frames = [f async for f in log.read("s")]
        entries = [entry for f in frames for entry in f.entries]
        assert len(acknowledged) == len(entries)
        assert list(range(1, len(frames) + 1)) == [f.number for f in frames]
        assert sorted({(e.stream, e.version) for e in entries}) == sorted(
            (e.stream, e.version) for e in entries
        )
        assert set(acknowledged) == {f.number for f in frames}


async def test_owners_that_race_leave_a_contiguous_log(dsn: str) -> None:
    """Whatever they try, positions and frames have neither gap nor repetition."""
    async with PgLog.connect(dsn, patience=PATIENCE_S) as log:

        async def contend(name: str) -> int:
            wrote = 0
            for _ in range(20):
                tenure = await log.take("s", owner=name)
                try:
                    for i in range(5):
                        await log.append(
                            frame(tenure.frame + i + 1, tenure.head + 2 * i + 1, 2, epoch=tenure.epoch)
                        )
                        wrote += 2
                except FencedError:
                    continue
            return wrote

        wrote = sum(await asyncio.gather(*(contend(f"o{i}") for i in range(4))))
        frames = [f async for f in log.read("s")]
        assert list(range(1, len(frames) + 1)) == [f.number for f in frames]
        assert wrote == 2 * len(frames)
        assert [f.position for f in frames] == list(range(1, wrote + 1, 2))


async def test_the_log_goes_over_from_one_piece_to_the_next(dsn: str) -> None:
    """Pieces are made ahead, and a frame may lie across two of them."""
    async with PgLog.connect(dsn, patience=PATIENCE_S) as log:
        await log.take("s", owner="me")
        await log.database.run(lambda c: c.execute("UPDATE log.shard SET head = $1, frame = 9", PIECE - 3))
        tenure = await log.take("s", owner="me")
        across = frame(10, PIECE - 2, 5, epoch=tenure.epoch)
        await log.append(across)
        assert [encode(across)] == [encode(f) async for f in log.read("s", after=9)]
        tables = await log.database.run(
            lambda c: c.fetch("SELECT DISTINCT tableoid::regclass::text AS name FROM log.event ORDER BY 1")
        )
        assert ["log.event_1_0", "log.event_1_1"] == [row["name"] for row in tables]


async def test_a_running_owner_makes_the_next_piece_in_time(dsn: str) -> None:
    """It also does so without taking the shard over again."""
    async with PgLog.connect(dsn, patience=PATIENCE_S) as log:
        await log.take("s", owner="me")
        await log.database.run(lambda c: c.execute("UPDATE log.shard SET head = $1", PIECE - AHEAD - 2))
        await log.append(frame(1, PIECE - AHEAD - 1, 3))
        made = await log.database.run(lambda c: c.fetchval("SELECT to_regclass('log.event_1_1') IS NOT NULL"))
        assert made


async def test_a_new_piece_does_not_wait_for_readers_of_other_shards(dsn: str) -> None:
    """A long report must not hold up a new schedd."""
    async with PgLog.connect(dsn, patience=PATIENCE_S) as log:
        await log.take("other", owner="me")
        async with log.database.connection() as reader, reader.transaction():
            await reader.fetch("SELECT count(*) FROM log.event")
            async with asyncio.timeout(PATIENCE_S):
                await log.take("s", owner="me")


async def test_a_database_that_is_not_there_is_waited_for(directory: Path) -> None:
    """As long as the caller has patience."""
    with pytest.raises(LogUnavailableError, match=r"within 0\.3 seconds"):
        async with PgLog.connect(f"postgresql://nobody@/kettle?host={directory}", patience=0.3):
            pass


async def test_an_error_of_ours_is_not_retried(dsn: str) -> None:
    """Waiting would not mend it."""
    async with PgLog.connect(dsn, patience=PATIENCE_S) as log:
        with pytest.raises(asyncpg.UndefinedTableError):
            await asyncio.wait_for(
                log.database.run(lambda c: c.execute("SELECT * FROM no_such_table")), PATIENCE_S
            )
        with pytest.raises(asyncpg.exceptions.DataError):
            await asyncio.wait_for(log.database.run(lambda c: c.execute("SELECT $1::int", "x")), PATIENCE_S)


HOT: list[tuple[str, tuple[Any, ...], str]] = [
    ("read", (1, 10_000, 0, 20_000, 1_000, 1 << 20), "event_1_0_pkey"),
    ("stream", (1, "job/77.0"), "event_1_0_shard_stream_ver_idx"),
    ("answers", (1, 100), "command_age"),
    ("forget_answers", (1, 100), "command_age"),
    ("shard", ("s",), "shard_name_key"),
    ("move_cursor", ("p", 1, "s", 1, 2), "projection_pkey"),
]


@pytest.mark.parametrize(("query", "arguments", "index"), HOT, ids=[q for q, _, _ in HOT])
async def test_hot_queries_use_their_index(
    dsn: str, query: str, arguments: tuple[Any, ...], index: str
) -> None:
    """A lost index, or a query that stopped fitting it, fails here and not in a pool of a million jobs."""
    async with PgLog.connect(dsn, patience=PATIENCE_S) as log, log.database.connection() as connection:
        await log.take("s", owner="me")
        await connection.execute(
            """
            INSERT INTO log.event SELECT 1, i / 5, i, 1, 1, now(), 'job/' || i % 5000 || '.0', 't', '', ''
              FROM generate_series(1, 60000) i;
            INSERT INTO log.command SELECT 1, i::text, i, now(), '' FROM generate_series(1, 20000) i;
            INSERT INTO log.shard (name, kind, epoch, owner) SELECT 's' || i, 's', 1, '' FROM generate_series(1, 3000) i;
            INSERT INTO log.projection SELECT 'p', 1, i FROM generate_series(1, 3000) i;
            ANALYZE log.event, log.command, log.shard, log.projection;
            """
        )
        await connection.execute(f"PREPARE hot AS {QUERIES[query]}")
        values = ", ".join(f"'{argument}'" for argument in arguments)
        plan = await connection.fetchval(f"EXPLAIN (FORMAT JSON) EXECUTE hot ({values})")
        assert index in plan
        assert "Seq Scan" not in plan
