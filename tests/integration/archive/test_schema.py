"""A database of an earlier release becomes what a new one is."""

from pathlib import Path

from kettle.storage import Database, PgLog
from kettle.storage.migration import migrate
from kettle.storage.pg_log import PIECE
from kettle.testing.patience import PATIENCE_S
from kettle.testing.servers.embedded import fresh_database
from kettle_wire.frames import encode

from .conftest import frames, put

FIRST = Path(__file__).parent / "first_schema.sql"
"""The schema of the first release."""

CATALOG = {
    "columns": """
        SELECT table_name || '.' || column_name, data_type, is_nullable, column_default, is_identity
          FROM information_schema.columns WHERE table_schema = 'log'""",
    "constraints": """
        SELECT conrelid::regclass || ' ' || pg_get_constraintdef(oid) FROM pg_constraint
         WHERE connamespace = 'log'::regnamespace AND contype <> 'n'""",
    "indexes": "SELECT indexdef FROM pg_indexes WHERE schemaname = 'log'",
    "functions": "SELECT pg_get_functiondef(oid) FROM pg_proc WHERE pronamespace = 'log'::regnamespace",
    "tables": """
        SELECT relname, relkind::text, reloptions::text, pg_get_partkeydef(oid) FROM pg_class
         WHERE relnamespace = 'log'::regnamespace AND relkind IN ('r', 'p')""",
}


async def catalog(database: Database) -> dict[str, list[str]]:
    async with database.connection() as connection:
        return {
            what: sorted(str(tuple(row)) for row in await connection.fetch(query))
            for what, query in CATALOG.items()
        }


async def first_release(dsn: str) -> None:
    async with Database.connect(dsn, patience=PATIENCE_S) as database, database.connection() as connection:
        await connection.execute(FIRST.read_text())
        await connection.execute(
            "CREATE TABLE log.migration (component text NOT NULL, name text NOT NULL,"
            " at timestamptz NOT NULL DEFAULT now(), PRIMARY KEY (component, name));"
            "INSERT INTO log.migration VALUES ('log', 'schema');"
        )


async def test_an_old_database_gets_the_schema_of_a_new_one(dsn: str, postgres: str) -> None:
    """Columns, constraints, indexes and functions are the same."""
    await first_release(dsn)
    async with fresh_database(postgres) as new, Database.connect(dsn) as old, Database.connect(new) as made:
        await old.run(migrate)
        await made.run(migrate)
        assert await catalog(made) == await catalog(old)


async def test_the_log_of_an_old_database_goes_on(dsn: str) -> None:
    """Its shards keep the size of pieces that they have."""
    await first_release(dsn)
    old = frames("s", [3, 4])
    async with Database.connect(dsn) as database:
        await database.run(
            lambda c: c.execute(
                "INSERT INTO log.shard (name, kind, epoch, owner) VALUES ('s', 's', 1, 'me');"
                "SELECT log.make_piece(1, 0);"
            )
        )
    async with PgLog.connect(dsn, piece_events=64) as log:
        await put(log, old)
        size = await log.database.run(lambda c: c.fetchval("SELECT piece_events FROM log.shard"))
        assert (PIECE, [encode(f) for f in old]) == (size, [encode(f) async for f in log.read("s")])
