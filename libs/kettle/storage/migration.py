"""
Brings the schema of a database up to this release: whole for a new database, step by step for an old one.

A component that keeps tables of its own has a directory with the same layout: `schema.sql` and `migrations/`.
"""

import logging
from pathlib import Path
from typing import Final, Literal

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


async def migrate(
    connection: Connection,
    *,
    component: str = "log",
    directory: Path = SQL,
    stages: tuple[Stage, ...] = ("pre", "post"),
) -> list[str]:
    """
    Run what is missing, in order, all or nothing; returns its names. Two that run at once wait for each other.
    """
    async with connection.transaction():
        await connection.execute("SELECT pg_advisory_xact_lock(hashtext('kettle.migrate'))")
        await connection.execute(_BOOKS)
        rows = await connection.fetch("SELECT name FROM log.migration WHERE component = $1", component)
        done = {str(row["name"]) for row in rows}
        steps = {file.stem: file for file in sorted((directory / "migrations").glob("*_*_*.sql"))}
        if _BASE not in done:
            await connection.execute((directory / "schema.sql").read_text())
            ran, noted = [_BASE], [_BASE, *steps]
        else:
            ran = noted = [n for n in steps if n not in done and n.split("_")[1] in stages]
            for name in ran:
                await connection.execute(steps[name].read_text())
        await connection.executemany(
            "INSERT INTO log.migration (component, name) VALUES ($1, $2)",
            [(component, name) for name in noted],
        )
    for name in ran:
        _log.info("migrated %s: %s", component, name)
    return ran
