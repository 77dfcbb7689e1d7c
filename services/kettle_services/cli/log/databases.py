"""
Where the log is: the databases of a pool, which shard is in which, and the directory of archived pieces.

A database's address may hold a password, so it comes from the pool's file or from the environment, never from the command
line, where every process of the machine could read it.
"""

import argparse
import os
from collections.abc import AsyncGenerator, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Final, Protocol

import msgspec

from kettle.archive import ArchivedLog, ArchiveError, FileArchives
from kettle.client import PoolFile
from kettle.eventsourcing.log import LogUnavailableError, ReadableLog, Tenure
from kettle.storage import PgLog
from kettle.storage.database import ERRORS, Database
from kettle_services.cli.errors import CommandError, UsageError
from kettle_wire.frames import Frame

FURTHER: Final = "KETTLE_ACCOUNTING_DATABASES"
"""The setting of accounting that names further databases."""
ARCHIVE: Final = "KETTLE_ARCHIVE_DIRECTORY"


class ReadLog(ReadableLog, Protocol):
    """A log of which somebody wants to know everything."""

    async def stream(self, shard: str, stream: str) -> list[tuple[Frame, int]]:
        """See `Log.stream`."""
        ...


class ShardLocation(msgspec.Struct, frozen=True):
    """One shard, where it stands, and the log that holds it."""

    log: ReadLog
    tenure: Tenure
    database: Database | None = None
    """Where the newest events of it are; None: it is in files alone."""

    @property
    def shard(self) -> str:
        """Its name."""
        return self.tenure.shard


class Places(msgspec.Struct, frozen=True):
    """The shards of a pool."""

    logs: Sequence[PgLog]
    """The first one's database has the tables of projections."""
    every: Sequence[ShardLocation]
    """By name."""

    def named(self, shards: Sequence[str]) -> list[ShardLocation]:
        """
        Those with these names; all of them if there are none.

        Raises:
            UsageError: there is no such shard.
        """
        known = [place.shard for place in self.every]
        for shard in shards:
            if shard not in known:
                raise UsageError(f"there is no shard '{shard}'; there are: {', '.join(known) or 'none'}")
        return [place for place in self.every if not shards or place.shard in shards]


def databases(home: Path) -> list[str]:
    """
    The addresses of a pool's databases, first the one with the tables of projections.

    Raises:
        CommandError: nothing says where they are.
    """
    first = os.environ.get("KETTLE_DATABASE_URL") or PoolFile.load(home).database_url
    if not first:
        raise CommandError(f"{home}/pool.json does not say where the database is; set KETTLE_DATABASE_URL")
    given = os.environ.get(FURTHER)
    if given is None:
        return [first, *_configured(home).accounting.databases]
    try:
        further = msgspec.json.decode(given or "[]", type=list[str])
    except msgspec.MsgspecError as error:
        raise CommandError(f'{FURTHER} is not a list as in ["postgresql://...", ...]: {error}') from error
    return [first, *further]


def archive_directory(home: Path) -> Path:
    """
    Where archived pieces are: as KETTLE_ARCHIVE_DIRECTORY or `kettle.toml` says, else in the pool's own directory.

    Raises:
        CommandError: `kettle.toml` cannot be read.
    """
    named = os.environ.get(ARCHIVE) or _configured(home).kettle.archive_directory
    return Path(named or home / "archive").expanduser()


class _Shared(msgspec.Struct, frozen=True):
    archive_directory: str = ""


class _Accounting(msgspec.Struct, frozen=True):
    databases: list[str] = []


class _Configured(msgspec.Struct, frozen=True):
    """Settings of the services that readers of their log need, too."""

    kettle: _Shared = _Shared()
    accounting: _Accounting = _Accounting()


def _configured(home: Path) -> _Configured:
    path = Path(os.environ.get("KETTLE_CONFIG") or home / "kettle.toml")
    try:
        return msgspec.toml.decode(path.read_bytes(), type=_Configured)
    except FileNotFoundError:
        return _Configured()
    except (OSError, msgspec.MsgspecError) as error:
        raise CommandError(f"{path}: {error}") from error


@asynccontextmanager
async def places(home: Path, *, patience: float) -> AsyncGenerator[Places]:
    """
    The shards of a pool; connected as long as the context lasts.

    Raises:
        CommandError: a database does not answer or holds no log.
    """
    async with AsyncExitStack() as stack:
        logs: list[PgLog] = []
        found: list[ShardLocation] = []
        try:
            for address in databases(home):
                database = await stack.enter_async_context(Database.connect(address, patience=patience))
                log = PgLog(database, archives=FileArchives(archive_directory(home)))
                logs.append(log)
                found += [ShardLocation(log, tenure, database) for tenure in await log.shards()]
        except (*ERRORS, LogUnavailableError) as error:
            raise CommandError(f"the log cannot be read: {error}") from error
        yield Places(logs, sorted(found, key=lambda place: place.shard))


@asynccontextmanager
async def archived_places(directory: Path) -> AsyncGenerator[Places]:
    """
    The shards of an archive that is all there is of a log: that of a simulated pool.

    Raises:
        CommandError: there is none.
    """
    log = ArchivedLog(directory)
    try:
        found = [ShardLocation(log, tenure) for tenure in await log.shards()]
    except ArchiveError as error:
        raise CommandError(str(error)) from error
    yield Places([], found)


def places_of(arguments: argparse.Namespace, home: Path) -> AbstractAsyncContextManager[Places]:
    """
    Where the events are that a command is about: in files, if it names a simulated pool, else in the pool's log.
    """
    if arguments.simulated is not None:
        return archived_places(arguments.simulated)
    return places(home, patience=arguments.patience)
