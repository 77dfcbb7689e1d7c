"""
Real servers for tests: started once per session, and a fresh database for each test.

`initdb` takes most of a cold start, so it runs once per session; further servers copy its result.
"""

import os
import secrets
import shutil
import tempfile
from collections.abc import AsyncGenerator, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Final
from urllib.parse import quote, urlsplit

import msgspec

from kettle.embedded import EmbeddedNats, EmbeddedPostgres, Permissions
from kettle.embedded.postgres import quoted
from kettle.testing.patience import PATIENCE_S

EVERYTHING: Final[Mapping[str, Permissions]] = {"test": Permissions(publish=(">",), subscribe=(">",))}
"""One role that may do all there is, for tests that are not about permissions."""

_MEMORY: Final = Path("/dev/shm")  # noqa: S108 - a private directory with a random name is made in it
_MEMORY_BYTES: Final = 2 << 30


class Servers(msgspec.Struct, frozen=True):
    """A PostgreSQL and a NATS server, running."""

    postgres: EmbeddedPostgres
    nats: EmbeddedNats


@asynccontextmanager
async def servers(
    directory: Path,
    *,
    permissions: Mapping[str, Permissions] = EVERYTHING,
    template: Path | None = None,
    durable: bool = False,
) -> AsyncGenerator[Servers]:
    """
    Throw-away servers below a directory while the context lasts.

    `template` comes from `postgres_template`, and makes this take a tenth of the time. `durable`: the database flushes
    what it commits, as a real one does.
    """
    postgres = EmbeddedPostgres(directory / "postgres", throwaway=not durable, template=template)
    nats = EmbeddedNats(
        directory / "nats", credentials=directory / "credentials", permissions=permissions, name="test"
    )
    async with postgres, nats:
        yield Servers(postgres, nats)


async def postgres_template(directory: Path) -> Path:
    """A stopped server with an empty database, for others to be copied from; made if it is not there."""
    server = EmbeddedPostgres(directory, throwaway=True)
    if not (directory / "data" / "PG_VERSION").is_file():
        async with server:
            pass
    return directory


@asynccontextmanager
async def fresh_database(url: str) -> AsyncGenerator[str]:
    """
    The URL of a new, empty database on the server of another one; dropped at the end, even if somebody is still connected.
    """
    import asyncpg  # not everybody who imports this module has a database

    name = f"test_{secrets.token_hex(6)}"
    connection = await asyncpg.connect(url, timeout=PATIENCE_S)
    try:
        # Copying files is faster than logging what is in them, where nothing has to survive; PostgreSQL 15 can choose.
        how = "STRATEGY file_copy" if connection.get_server_version() >= (15,) else ""
        await connection.execute(f"CREATE DATABASE {quoted(name)} TEMPLATE template0 {how}")
        yield of_database(url, name)
        await connection.execute(f"DROP DATABASE IF EXISTS {quoted(name)} WITH (FORCE)")
    finally:
        await connection.close(timeout=PATIENCE_S)


def of_database(url: str, name: str) -> str:
    """The URL of another database of the same server."""
    parts = urlsplit(url)
    query = f"?{parts.query}" if parts.query else ""
    return f"{parts.scheme}://{parts.netloc}/{quote(name, safe='')}{query}"


@contextmanager
def server_directory() -> Generator[Path]:
    """
    A private directory for throw-away servers, removed at the end: in memory where there is enough of it.

    A server has a thousand small files, which some disks take a second to make.
    """
    with temporary(_MEMORY if _roomy(_MEMORY) else None) as path:
        yield path


@contextmanager
def temporary(parent: Path | None = None) -> Generator[Path]:
    """A private directory with a short path, as sockets need it, removed at the end."""
    path = Path(tempfile.mkdtemp(prefix="kettle-", dir=parent))
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def _roomy(directory: Path) -> bool:
    try:
        return os.access(directory, os.W_OK) and shutil.disk_usage(directory).free > _MEMORY_BYTES
    except OSError:
        return False
