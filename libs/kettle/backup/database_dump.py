"""
The database of a pool as one file, and back: PostgreSQL's own programs, told of one snapshot.

Passwords are not on the command line of these programs, and roles are not in the file: a pool makes its own.
"""

import asyncio
import os
import re
import shutil
import tempfile
from collections import deque
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final
from urllib.parse import SplitResult, parse_qs, unquote, urlsplit

import asyncpg
import msgspec

from kettle.backup.errors import BackupError
from kettle.backup.manifest import DATABASE, ShardHead, Told, nowhere
from kettle.embedded.binaries import postgres_bin
from kettle.embedded.errors import MissingBinaryError
from kettle.storage.service_roles import COMPONENT

_CONNECT_S: Final = 30.0
_DUMPED: Final = re.compile(r"dumping contents of table")
_RESTORED: Final = re.compile(r"processing data for table")
_NOT_RESTORED: Final = re.compile(r"^\d+; \d+ \d+ (POLICY|ROW SECURITY) ", re.MULTILINE)
"""What names roles: who gives the rights again makes these, too."""
_EPOCHS: Final = 1_000
"""By how many epochs a restored shard is ahead of every owner that it had before, so that none of them can write to it."""
_KEPT_LINES: Final = 5
_HOST: Final = re.compile(r"(?P<host>\[[^]]*\]|[^:]*)(?::(?P<port>\d*))?")


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """One moment of a database, as long as its connection lasts."""

    id: str
    server: str
    """The version of the server."""
    database: str
    at: str
    shards: Sequence[ShardHead]
    migrations: Sequence[str]
    tables: int


@asynccontextmanager
async def snapshot(dsn: str) -> AsyncGenerator[Snapshot]:
    """
    Hold one moment of a database.

    Raises:
        BackupError: it does not answer, or holds no log.
    """
    connection = await _connected(dsn)
    try:
        async with connection.transaction(isolation="repeatable_read", readonly=True):
            if not await connection.fetchval("SELECT to_regclass('log.shard') IS NOT NULL"):
                raise BackupError("the database holds no log; is it the pool's?")
            yield await _looked(connection)
    finally:
        await connection.close(timeout=_CONNECT_S)


async def _connected(dsn: str) -> "asyncpg.Connection[asyncpg.Record]":
    """
    A connection that waits for other programs as long as they take, whatever the site sets for those who wait.
    """
    said = {"application_name": "kettle backup", "idle_in_transaction_session_timeout": "0"}
    try:
        return await asyncpg.connect(dsn, timeout=_CONNECT_S, server_settings=said)
    except (OSError, ValueError, asyncpg.PostgresError) as error:
        raise BackupError(
            f"the database cannot be reached: {str(error) or type(error).__name__}; see whether it runs, and look at "
            f"database_url with kettle config show"
        ) from error


async def _looked(connection: "asyncpg.Connection[asyncpg.Record]") -> Snapshot:
    return Snapshot(
        id=str(await connection.fetchval("SELECT pg_export_snapshot()")),
        server=str(await connection.fetchval("SHOW server_version")),
        database=str(await connection.fetchval("SELECT current_database()")),
        at=str(
            await connection.fetchval(
                "SELECT to_char(now() AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"')"
            )
        ),
        shards=await heads(connection),
        migrations=[
            f"{row['component']}/{row['name']}"
            for row in await connection.fetch("SELECT component, name FROM log.migration ORDER BY 1, 2")
        ],
        tables=int(
            await connection.fetchval(
                "SELECT count(*) FROM pg_class WHERE relkind = 'r' AND relnamespace NOT IN "
                "(SELECT oid FROM pg_namespace WHERE nspname LIKE 'pg\\_%' OR nspname = 'information_schema')"
            )
        ),
    )


async def heads(connection: "asyncpg.Connection[asyncpg.Record]") -> list[ShardHead]:
    """How far the log of each shard is."""
    rows = await connection.fetch("SELECT name, epoch, frame, head FROM log.shard ORDER BY name")
    return [ShardHead(row["name"], row["epoch"], row["frame"], row["head"]) for row in rows]


async def dump(dsn: str, moment: Snapshot, target: Path, told: Told = nowhere) -> None:
    """
    Write the database as it was at a moment.

    Raises:
        BackupError: the program is missing or did not succeed.
    """
    argv = ["--format=custom", f"--snapshot={moment.id}", "--verbose", "--no-password", f"--file={target}"]
    await _run("pg_dump", argv, dsn, _DUMPED, moment.tables, told)
    target.chmod(0o600)


async def require_no_log(dsn: str) -> None:
    """
    Look whether a database can be restored into.

    Raises:
        BackupError: it does not answer, or there is a log in it.
    """
    connection = await _connected(dsn)
    try:
        await _require_no_log(connection)
    finally:
        await connection.close(timeout=_CONNECT_S)


async def _require_no_log(connection: "asyncpg.Connection[asyncpg.Record]") -> None:
    if await connection.fetchval("SELECT to_regclass('log.shard') IS NOT NULL"):
        raise BackupError(
            "there is a log in the database already, and nothing was restored: rename that database first"
        )


async def load(dsn: str, source: Path, told: Told = nowhere, *, renew: bool) -> list[ShardHead]:
    """
    Bring a dump into an empty database; how far its shards are.

    `renew`: for a pool that goes on with it: rights are given again by its master, and no owner of before can write.

    Raises:
        BackupError: the program is missing or did not succeed, or there is something in the database.
    """
    connection = await _connected(dsn)
    try:
        await _require_no_log(connection)
        listing = [line for line in (await _listed(source)).splitlines() if not _NOT_RESTORED.match(line)]
        tables = sum(" TABLE DATA " in line for line in listing)
        with tempfile.NamedTemporaryFile("w", prefix="kettle-restore-", suffix=".list") as file:
            file.write("\n".join(listing) + "\n")
            file.flush()
            argv = ["--no-owner", "--no-privileges", "--no-password", "--exit-on-error", "--verbose"]
            argv += [f"--use-list={file.name}", "--jobs=2", f"--dbname={_name(dsn)}", str(source)]
            try:
                await _run("pg_restore", argv, dsn, _RESTORED, tables, told)
            except BackupError as error:
                what = f"the database {_name(dsn)} has a part of it now: drop it and make it again before you restore again"
                raise BackupError(f"{error}; {what}" if renew else str(error)) from error
        await connection.execute("REVOKE ALL ON ALL FUNCTIONS IN SCHEMA log FROM PUBLIC")
        if renew:
            await connection.execute("DELETE FROM log.migration WHERE component = $1", COMPONENT)
            await connection.execute("UPDATE log.shard SET epoch = epoch + $1", _EPOCHS)
        await connection.execute("ANALYZE", timeout=None)
        return await heads(connection)
    except asyncpg.PostgresError as error:
        raise BackupError(f"the database cannot be restored: {error}") from error
    finally:
        await connection.close(timeout=_CONNECT_S)


async def listed_tables(source: Path) -> int:
    """
    How many tables with data a dump has: that it can be read to its end by PostgreSQL's own program.

    Raises:
        BackupError: it cannot.
    """
    return sum(" TABLE DATA " in line for line in (await _listed(source)).splitlines())


async def _listed(source: Path) -> str:
    process = await asyncio.create_subprocess_exec(
        _program("pg_restore"),
        "--list",
        str(source),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    said, wrong = await process.communicate()
    if process.returncode:
        raise BackupError(f"{source} cannot be read: {wrong.decode(errors='replace').strip()}")
    return said.decode()


async def _run(
    program: str, argv: Sequence[str], dsn: str, step: re.Pattern[str], total: int, told: Told
) -> None:
    """Run a program of PostgreSQL; each line that matches `step` is one of `total`."""
    process = await asyncio.create_subprocess_exec(
        _program(program),
        *argv,
        env=program_environ(dsn),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
        limit=1 << 20,
    )
    assert process.stderr is not None, "it is a pipe"
    done, kept = 0, deque[str](maxlen=_KEPT_LINES)
    try:
        async for raw in process.stderr:
            line = raw.decode(errors="replace").rstrip()
            kept.append(line)
            if step.search(line):
                done += 1
                told(DATABASE, done, max(done, total))
        status = await process.wait()
    except BaseException:
        if process.returncode is None:
            process.kill()
            await process.wait()
        raise
    if status:
        raise BackupError(f"{program} ended with status {status}: {' / '.join(kept) or 'it said nothing'}")


def _program(name: str) -> str:
    """
    A program of the server's version or a newer one: that of our wheel, or where KETTLE_PG_BIN or PATH have it.
    """
    try:
        path = postgres_bin() / name
    except MissingBinaryError:
        found = shutil.which(name)
        if found is None:
            raise BackupError(
                f"{name} is not installed: install kettle[embedded] or PostgreSQL's client programs, or set KETTLE_PG_BIN"
            ) from None
        return found
    return str(path)


def _name(dsn: str) -> str:
    return unquote(urlsplit(dsn).path.lstrip("/"))


def program_environ(dsn: str) -> Mapping[str, str]:
    """
    The address of a database as variables of these programs; a password is in no command line.

    A database with standbys has several hosts, and says to which of them to go.
    """
    parts: SplitResult = urlsplit(dsn)
    said = {key: values[-1] for key, values in parse_qs(parts.query).items()}
    hosts = [_HOST.fullmatch(each) for each in parts.netloc.rpartition("@")[2].split(",")]
    names = ",".join(unquote(each["host"].strip("[]")) for each in hosts if each is not None)
    ports = ",".join(each["port"] or "" for each in hosts if each is not None)
    found = {
        "PGHOST": said.pop("host", "") or names,
        "PGPORT": said.pop("port", "") or (ports.strip(",") and ports),
        "PGUSER": said.pop("user", "") or unquote(parts.username or ""),
        "PGPASSWORD": said.pop("password", "") or unquote(parts.password or ""),
        "PGDATABASE": _name(dsn),
        "PGPASSFILE": said.pop("passfile", ""),
        "PGTARGETSESSIONATTRS": said.pop("target_session_attrs", ""),
        **{f"PG{key.upper()}": value for key, value in said.items() if key.startswith("ssl")},
        "PGAPPNAME": "kettle backup",
    }
    return {
        "PATH": os.environ.get("PATH", "/usr/bin:/bin"),
        "HOME": os.environ.get("HOME", "/nonexistent"),
        "LC_ALL": "C",
        **{key: value for key, value in found.items() if value},
    }
