import asyncio
import datetime as dt
import subprocess
import sys
from collections.abc import AsyncIterator, Iterable, Mapping
from pathlib import Path

import pytest
import pytest_asyncio

from kettle.archive import FileArchives
from kettle.storage import PgLog
from kettle.testing.patience import PATIENCE_S
from kettle.testing.servers.embedded import fresh_database, server_directory
from kettle.testing.servers.selection import database_server
from kettle_wire.frames import Entry, Frame

SMALL = 64
"""Events in a piece."""
NOON_US = 1_763_719_200_000_001
LATER = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
"""After every event that `frames` makes."""


def frames(shard: str, sizes: Iterable[int], *, epoch: int = 1, step_us: int = 1_000_000) -> list[Frame]:
    """Frames of these sizes, with ten streams that are spoken of in turn, each with versions from 1 on."""
    made: list[Frame] = []
    position = 1
    for number, size in enumerate(sizes, 1):
        entries = [
            Entry(
                f"job/{at % 10}.0",
                at // 10 + (1 if at % 10 else 0),
                f"job.removed/{at % 3 + 1}",
                b"\x80" * (at % 7),
                b"" if at % 4 else b"trace",
            )
            for at in range(position, position + size)
        ]
        made.append(Frame(shard, epoch, number, position, NOON_US + number * step_us, entries))
        position += size
    return made


async def put(log: PgLog, made: Iterable[Frame]) -> None:
    for frame in made:
        await log.append(frame)


async def unlocked(log: PgLog) -> None:
    """
    Wait until PostgreSQL has noticed that the one who held the lock of archivers is dead: it tells nobody, and has other things to do.
    """
    async with asyncio.timeout(PATIENCE_S):
        while await log.database.run(
            lambda c: c.fetchval(
                "SELECT count(*) FROM pg_locks JOIN pg_database ON oid = database"
                " WHERE locktype = 'advisory' AND datname = current_database()"
            )
        ):
            await asyncio.sleep(0.01)


async def see(log: PgLog, shard: str, frame: int, *, projection: str = "p") -> None:
    """A projection that has seen the frames up to one."""
    await log.database.run(
        lambda c: c.execute(
            "INSERT INTO log.projection (name, version, shard, frame) VALUES ($1, 1, $2, $3)"
            " ON CONFLICT (name, version, shard) DO UPDATE SET frame = excluded.frame",
            projection,
            shard,
            frame,
        )
    )


async def tables(log: PgLog) -> list[str]:
    """The tables that hold events."""
    rows = await log.database.run(
        lambda c: c.fetch(
            "SELECT relname FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace"
            " WHERE nspname = 'log' AND relkind = 'r' AND relname ~ '^event_' ORDER BY 1"
        )
    )
    return [row["relname"] for row in rows]


def archiver(
    dsn: str, directory: Path, *, limit: int = -1, **environ: str
) -> subprocess.CompletedProcess[str]:
    """An archiver in a process of its own, which can be killed, and whose files may have a limit of bytes."""
    program = """
import asyncio, datetime, pathlib, resource, sys
from kettle.archive import archive
from kettle.storage import Database

async def main():
    async with Database.connect(sys.argv[1]) as database:
        later = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
        await archive(database, pathlib.Path(sys.argv[2]), older_than=later)

resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[3]), int(sys.argv[3])))
asyncio.run(main())
"""
    return subprocess.run(
        [sys.executable, "-c", program, dsn, str(directory), str(limit)],
        env=_environ(environ),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def _environ(more: Mapping[str, str]) -> dict[str, str]:
    roots = [str(Path(__file__).parents[3] / root) for root in ("libs", "schemas", "services")]
    return {"PATH": "/usr/bin:/bin", "PYTHONPATH": ":".join(roots), **more}


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def postgres() -> AsyncIterator[str]:
    """One server for all tests."""
    with server_directory() as path:
        async with database_server(path) as url:
            yield url


@pytest_asyncio.fixture
async def dsn(postgres: str) -> AsyncIterator[str]:
    """An empty database."""
    async with fresh_database(postgres) as url:
        yield url


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """An archive directory that does not exist yet."""
    return tmp_path / "archive"


@pytest_asyncio.fixture
async def log(dsn: str, directory: Path) -> AsyncIterator[PgLog]:
    """A log with small pieces, taken over by `me`."""
    async with PgLog.connect(
        dsn, patience=PATIENCE_S, archives=FileArchives(directory), piece_events=SMALL
    ) as log:
        await log.take("s", owner="me")
        yield log
