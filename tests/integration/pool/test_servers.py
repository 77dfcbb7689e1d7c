"""A real master over real servers, with a dummy in the place of a service."""

import os
import shutil
import signal
import stat
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import asyncpg
import msgspec
import pytest

from kettle import pool
from kettle.auth.trust.files import key_in
from kettle.client.connections.pool_file import PoolFile
from kettle.embedded import EmbeddedPostgres
from kettle.runtime import make_lifeline
from kettle.testing.patience import PATIENCE_S
from kettle_services.master.settings import MasterSettings

from .conftest import DummyPool, eventually


@pytest.fixture
def served(tmp_path: Path) -> Iterator[DummyPool]:
    lifeline = make_lifeline()
    dummy = DummyPool(tmp_path, lifeline, ["collector"])
    for variable in ("KETTLE_NATS_URL", "KETTLE_DATABASE_URL", "KETTLE_MASTER_MIGRATE"):
        del dummy.environ[variable]
    # The settings that a personal pool starts with are those of the real services.
    (tmp_path / "empty.toml").touch()
    dummy.environ["KETTLE_CONFIG"] = str(tmp_path / "empty.toml")
    try:
        yield dummy
    finally:
        pool.down(dummy.home, deadline_s=10.0)
        lifeline.close()


def private(path: Path) -> bool:
    return not stat.S_IMODE(path.stat().st_mode) & 0o077


async def query(dsn: str, question: str) -> object:
    connection = await asyncpg.connect(dsn, timeout=PATIENCE_S)
    try:
        return await connection.fetchval(question)
    finally:
        await connection.close()


def database_url(served: DummyPool, role: str) -> str:
    """The address of the database that a service has been given."""
    told = Path(f"/proc/{served.pid(role)}/environ").read_text().split("\0")
    variables = dict(variable.split("=", 1) for variable in told if variable)
    return variables.get("KETTLE_DATABASE_URL", "")


async def test_both_servers_come_up_and_come_back(served: DummyPool) -> None:
    """
    NATS and PostgreSQL are started with a schema, and after SIGKILL they are back at the same address with their data.
    """
    state = served.up(MASTER_THROWAWAY="true").state
    assert await query(state.database_url, "SELECT count(*) FROM log.migration") != 0
    for name in ("nats", "postgres"):
        killed = served.pid(name)
        os.kill(killed, signal.SIGKILL)
        assert eventually(partial(served.runs_anew, name, killed))
    assert await query(state.database_url, "SELECT count(*) FROM log.migration") != 0
    assert served.daemon("collector").starts == 1


def test_credentials_are_for_their_owner_alone(served: DummyPool) -> None:
    """
    Whatever gives access to the pool can be read by its owner alone, and everybody has a key of their own.
    """
    served.up(MASTER_THROWAWAY="true")
    keys = {path.stem: path for path in (served.home / "credentials").glob("*.creds")}
    assert {"audit", "collector", "master", "monitor", "probe", "user"} == set(keys)
    assert keys["user"].read_text() != keys["collector"].read_text()
    files = [
        *keys.values(),
        served.home / "pool.json",
        served.home / "state.json",
    ]
    assert [] == [path for path in files if not private(path)]
    found = PoolFile.load(served.home)
    assert str(keys["user"]) == found.credentials
    assert found.user


def test_only_what_needs_the_database_is_told_where_it_is(served: DummyPool, tmp_path: Path) -> None:
    """The collector gets the database's URL, with a role of its own; a shadow gets none."""
    package = tmp_path / "dummies" / "kettle_services"
    (package / "shadow").mkdir()
    for file in (package / "collector").iterdir():
        (package / "shadow" / file.name).write_bytes(file.read_bytes())
    served.environ["KETTLE_MASTER_DAEMON_LIST"] = '["collector", "shadow"]'
    served.up(MASTER_THROWAWAY="true")
    assert "postgresql://kettle_collector@" in database_url(served, "collector")
    assert "" == database_url(served, "shadow")


def test_services_of_a_sites_database_are_given_the_addresses_that_the_site_names(served: DummyPool) -> None:
    """And what it names for nobody is refused before anything is started."""
    served.environ["KETTLE_DATABASE_URL"] = "postgresql://owner@nowhere/nothing"
    served.environ["KETTLE_MASTER_MIGRATE"] = "false"
    served.up(MASTER_DATABASE_URLS='{"collector": "postgresql://c@nowhere/nothing"}')
    assert "postgresql://c@nowhere/nothing" == database_url(served, "collector")
    with pytest.raises(ValueError, match="no service uses shadow; there are: accounting, archiver,"):
        MasterSettings(database_url="postgresql://x", database_urls={"shadow": "postgresql://y"})
    with pytest.raises(ValueError, match="give database_url, too"):
        MasterSettings(database_urls={"schedd": "postgresql://y"})


async def test_the_database_of_an_earlier_release_gets_the_roles(served: DummyPool) -> None:
    """
    What its one role has made belongs to the role of the service that makes it now; what it holds stays.
    """
    served.up(MASTER_THROWAWAY="true")
    pool.down(served.home)
    shutil.rmtree(served.home / "postgres" / "passfiles")
    async with EmbeddedPostgres(served.home / "postgres", throwaway=True) as server:
        connection = await server.connect()
        try:
            await connection.execute("CREATE SCHEMA jobs CREATE TABLE live (n integer)")
            await connection.execute("INSERT INTO jobs.live VALUES (7)")
            await connection.execute("DELETE FROM log.migration WHERE component = 'rights'")
        finally:
            await connection.close()
    state = served.up(MASTER_THROWAWAY="true").state
    owner = "SELECT relowner::regrole::text FROM pg_class WHERE oid = 'jobs.live'::regclass"
    assert "kettle_accounting" == await query(state.database_url, owner)
    passfile = served.home / "postgres" / "passfiles" / "kettle_gateway"
    assert private(passfile)
    server_of = state.database_url.replace("//kettle@", "//kettle_gateway@").partition("&")[0]
    of_gateway = f"{server_of}&passfile={passfile}"
    assert 7 == await query(of_gateway, "SELECT n FROM jobs.live")


def test_data_survive_a_restart_of_the_pool(served: DummyPool, template: Path) -> None:
    """
    `down` and `up` again: the same keys, the same pool, at a home that says nothing of its past sockets.
    """
    served.environ["KETTLE_MASTER_POSTGRES_TEMPLATE"] = str(template)  # initdb would flush a thousand files
    first = served.up()
    key = key_in(served.home / "credentials" / "user.creds")
    assert key is not None
    pool.down(served.home)
    assert not (served.home / "pool.json").exists()
    second = served.up()
    assert first.state.pool_id == second.state.pool_id
    kept = key_in(served.home / "credentials" / "user.creds")
    assert kept is not None
    assert kept.seed == key.seed


def test_the_state_is_json(served: DummyPool) -> None:
    """What runs can be read by any program, in the order in which it was started."""
    served.up(MASTER_THROWAWAY="true")
    state = msgspec.json.decode((served.home / "state.json").read_bytes())
    assert {"nats", "postgres", "collector"} == {daemon["name"] for daemon in state["daemons"]}
    assert state["daemons"][-1]["name"] == "collector"
