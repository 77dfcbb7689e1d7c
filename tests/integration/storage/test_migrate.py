"""Bringing a database's schema up to date."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import asyncpg
import pytest
import pytest_asyncio

from kettle.storage.database import Database
from kettle.storage.migration import migrate


@pytest_asyncio.fixture
async def database(dsn: str) -> AsyncIterator[Database]:
    async with Database.connect(dsn, patience=30.0) as database:
        yield database


@pytest.fixture
def release(tmp_path: Path) -> Path:
    """The first release of a component with one table."""
    (tmp_path / "migrations").mkdir()
    (tmp_path / "schema.sql").write_text("CREATE TABLE fruit (name text);")
    return tmp_path


def next_release(directory: Path) -> None:
    (directory / "migrations" / "01_pre_colour.sql").write_text("ALTER TABLE fruit ADD colour text;")
    (directory / "migrations" / "02_post_colour.sql").write_text(
        "ALTER TABLE fruit ALTER colour SET NOT NULL;"
    )
    (directory / "schema.sql").write_text("CREATE TABLE fruit (name text, colour text NOT NULL);")


async def columns(database: Database) -> list[tuple[str, str]]:
    rows = await database.run(
        lambda c: c.fetch(
            "SELECT column_name, is_nullable FROM information_schema.columns WHERE table_name = 'fruit' ORDER BY 1"
        )
    )
    return [(row["column_name"], row["is_nullable"]) for row in rows]


async def run(database: Database, directory: Path, *stages: str) -> list[str]:
    chosen = stages or ("pre", "post")
    return await database.run(
        lambda c: migrate(c, component="fruit", directory=directory, stages=chosen)  # type: ignore[arg-type]
    )


async def test_a_new_database_gets_the_whole_schema(database: Database, release: Path) -> None:
    """And the steps that led to it count as done."""
    next_release(release)
    assert ["schema"] == await run(database, release)
    assert [("colour", "NO"), ("name", "YES")] == await columns(database)
    assert [] == await run(database, release)


async def test_an_old_database_is_brought_up_to_date_in_two_stages(database: Database, release: Path) -> None:
    """What the old release can live with comes first; in the end old and new database are the same."""
    assert ["schema"] == await run(database, release)
    next_release(release)
    assert ["01_pre_colour"] == await run(database, release, "pre")
    assert [("colour", "YES"), ("name", "YES")] == await columns(database)
    assert ["02_post_colour"] == await run(database, release, "post")
    assert [("colour", "NO"), ("name", "YES")] == await columns(database)


async def test_a_step_that_fails_leaves_no_trace(database: Database, release: Path) -> None:
    """All or nothing."""
    await run(database, release)
    next_release(release)
    (release / "migrations" / "03_pre_wrong.sql").write_text("ALTER TABLE nosuch ADD x text;")
    with pytest.raises(asyncpg.UndefinedTableError):
        await run(database, release)
    assert [("name", "YES")] == await columns(database)


async def test_services_that_start_at_once_do_not_collide(database: Database) -> None:
    """One makes the schema, the others find it."""
    ran = await asyncio.gather(*(database.run(migrate) for _ in range(4)))
    assert [[], [], [], ["schema"]] == sorted(ran)
