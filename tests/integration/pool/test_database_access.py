"""What a master does to the schema of a database when it starts."""

import asyncpg

from kettle.storage.schema_state import SchemaState, schema_state
from kettle.testing.patience import PATIENCE_S
from kettle.testing.servers.embedded import fresh_database, server_directory
from kettle.testing.servers.selection import database_server
from kettle_services.master.database_access import DatabaseAccess, migration_stages
from kettle_services.master.settings import MasterSettings


async def state(dsn: str, *, forget: str = "") -> SchemaState:
    """How a database stands, after it has forgotten that a step was taken."""
    connection = await asyncpg.connect(dsn, timeout=PATIENCE_S)
    try:
        await connection.execute("DELETE FROM log.migration WHERE name = $1", forget)
        return await schema_state(connection)
    finally:
        await connection.close()


async def test_a_database_of_the_site_is_not_finished_by_the_first_new_master() -> None:
    """
    A new database is whole at once; of one that older services on other hosts may use, what these cannot work with is left.
    """
    last = "01_post_projections"
    with server_directory() as directory:
        async with database_server(directory) as server, fresh_database(server) as dsn:
            access = DatabaseAccess(MasterSettings(database_url=dsn), None)
            await access.prepare()
            assert [] == (await state(dsn)).pending
            await state(dsn, forget=last)
            await access.prepare()
            assert [last] == [step.name for step in (await state(dsn)).pending]


def test_who_takes_the_last_steps() -> None:
    """Unasked only a master whose database no other host reaches; otherwise as it is said."""
    assert [("pre", "post"), ("pre",)] == [migration_stages(post=None, own=own) for own in (True, False)]
    assert [("pre",), ("pre", "post")] == [
        migration_stages(post=post, own=not post) for post in (False, True)
    ]
