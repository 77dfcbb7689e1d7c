"""
Brings the schema of a database up to this release: whole for a new database, step by step for an old one.

A component that keeps tables of its own has a directory with the same layout: `schema.sql` and `migrations/`.
"""

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, Literal

import asyncpg

from kettle.eventsourcing.log import LogError
from kettle.storage.database import Connection
from kettle.storage.queries import SQL

Stage = Literal["pre", "post"]

_log = logging.getLogger(__name__)

_BOOKS: Final = """
CREATE SCHEMA IF NOT EXISTS log;
CREATE TABLE IF NOT EXISTS log.migration (
    component text NOT NULL,
    name      text NOT NULL,
    at        timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (component, name)
)
"""
_BASE: Final = "schema"


class OldSchemaError(LogError):
    """The database has to be brought up to date by somebody who may do that."""


async def migrate(
    connection: Connection,
    *,
    component: str = "log",
    directory: Path = SQL,
    stages: tuple[Stage, ...] = ("pre", "post"),
) -> list[str]:
    """
    Run what is missing, in order, all or nothing; returns its names. Two that run at once wait for each other.

    Where nothing is missing this only reads, as a service may.

    Raises:
        OldSchemaError: something is missing, and the role of this connection may not change the schema.
    """
    steps = {file.stem: file for file in sorted((directory / "migrations").glob("*_*_*.sql"))}
    chosen = [name for name in steps if name.split("_")[1] in stages]
    try:
        if await connection.fetchval("SELECT to_regclass('log.migration') IS NOT NULL"):
            done = await _done(connection, component)
            if _BASE in done and done.issuperset(chosen):
                return []
        ran = await _run(connection, component, directory, steps, chosen)
    except asyncpg.InsufficientPrivilegeError as error:
        raise OldSchemaError(
            f"the schema of the database is older than this release, and {error}: start the master of the pool, or a "
            f"service with the role that owns the schema, once"
        ) from error
    for name in ran:
        _log.info("migrated %s: %s", component, name)
    return ran


async def _done(connection: Connection, component: str) -> set[str]:
    rows = await connection.fetch("SELECT name FROM log.migration WHERE component = $1", component)
    return {str(row["name"]) for row in rows}


async def _run(
    connection: Connection, component: str, directory: Path, steps: Mapping[str, Path], chosen: Sequence[str]
) -> list[str]:
    async with connection.transaction():
        await connection.execute("SELECT pg_advisory_xact_lock(hashtext('kettle.migrate'))")
        await connection.execute(_BOOKS)
        done = await _done(connection, component)
        if _BASE not in done:
            await connection.execute((directory / "schema.sql").read_text())
            ran, noted = [_BASE], [_BASE, *steps]
        else:
            ran = noted = [name for name in chosen if name not in done]
            for name in ran:
                await connection.execute(steps[name].read_text())
        await connection.executemany(
            "INSERT INTO log.migration (component, name) VALUES ($1, $2)",
            [(component, name) for name in noted],
        )
    return ran
