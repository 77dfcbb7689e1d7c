"""
Real servers for tests: started once per session, and a fresh database for each test.

`initdb` takes most of a cold start, so it runs once per session; further servers copy its result.
"""

import secrets
import shutil
import tempfile
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import msgspec

from kettle.embedded import EmbeddedNats, EmbeddedPostgres, Permissions
from kettle.embedded.postgres import quoted

EVERYTHING: Final[Mapping[str, Permissions]] = {"test": Permissions(publish=(">",), subscribe=(">",))}
"""One role that may do all there is, for tests that are not about permissions."""


class Servers(msgspec.Struct, frozen=True):
    """
    A PostgreSQL and a NATS server, running.
    """

    postgres: EmbeddedPostgres
    nats: EmbeddedNats


@asynccontextmanager
async def servers(
    directory: Path,
    *,
    permissions: Mapping[str, Permissions] = EVERYTHING,
    template: Path | None = None,
) -> AsyncGenerator[Servers]:
    """
    Throw-away servers below a directory while the context lasts.

    `template` comes from `postgres_template`, and makes this take a tenth of the time.
    """
    postgres = EmbeddedPostgres(directory / "postgres", throwaway=True, template=template)
    nats = EmbeddedNats(
        directory / "nats", credentials=directory / "credentials", permissions=permissions, name="test"
    )
    async with postgres, nats:
        yield Servers(postgres, nats)


async def postgres_template(directory: Path) -> Path:
    """
    A stopped server with an empty database, for others to be copied from; made if it is not there.
    """
    server = EmbeddedPostgres(directory, throwaway=True)
    if not (directory / "data" / "PG_VERSION").is_file():
        async with server:
            pass
    return directory


@asynccontextmanager
async def fresh_database(server: EmbeddedPostgres) -> AsyncGenerator[str]:
    """
    The URL of a new, empty database, which is dropped at the end whoever is still connected.
    """
    name = f"test_{secrets.token_hex(6)}"
    connection = await server.connect("postgres")
    try:
        await connection.execute(f"CREATE DATABASE {quoted(name)} TEMPLATE template0 STRATEGY file_copy")
        yield server.dsn_of(name)
        await connection.execute(f"DROP DATABASE IF EXISTS {quoted(name)} WITH (FORCE)")
    finally:
        await connection.close(timeout=10)


@asynccontextmanager
async def short_directory() -> AsyncGenerator[Path]:
    """
    A private directory with a short path, for sockets, removed at the end.
    """
    path = Path(tempfile.mkdtemp(prefix="kettle-"))
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)
