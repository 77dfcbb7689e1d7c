import asyncio
import os
import signal
from pathlib import Path

import asyncpg
import pytest

from kettle.embedded import EmbeddedPostgres, MissingBinaryError, binaries
from kettle.testing.servers.embedded import fresh_database, servers


async def test_pair_starts_and_leaves_nothing(directory: Path, template: Path) -> None:
    """A test gets both servers at once, and no process stays behind."""
    async with servers(directory, template=template) as pair:
        pids = (pair.postgres.pid, pair.nats.pid)
        assert pair.postgres.running
        assert pair.nats.running
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_pair_works_under_uvloop(directory: Path, template: Path) -> None:
    """The other event loop starts, restarts and stops the servers just the same."""
    uvloop = pytest.importorskip("uvloop")

    async def restart() -> None:
        async with servers(directory, template=template) as pair:
            for server in (pair.postgres, pair.nats):
                os.kill(server.pid, signal.SIGKILL)
                assert -signal.SIGKILL == await server.wait()
                await server.start()

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(restart())


async def test_tests_do_not_see_each_other(directory: Path, template: Path) -> None:
    """Each fresh database is empty, and gone afterwards even if somebody is still connected."""
    async with EmbeddedPostgres(directory / "p", throwaway=True, template=template) as postgres:
        async with fresh_database(postgres.dsn) as first, fresh_database(postgres.dsn) as second:
            one, other = await asyncpg.connect(first), await asyncpg.connect(second)
            await one.execute("CREATE TABLE mine (n int)")
            assert await other.fetchval("SELECT to_regclass('mine')") is None
            await other.close()
        assert one.is_closed() or not await alive(one)
        with pytest.raises(asyncpg.InvalidCatalogNameError):
            await asyncpg.connect(first)


async def alive(connection: "asyncpg.Connection[asyncpg.Record]") -> bool:
    try:
        await connection.execute("SELECT 1")
    except (asyncpg.PostgresConnectionError, asyncpg.AdminShutdownError, asyncpg.InterfaceError):
        return False
    return True


def test_missing_programs_are_explained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    Who has not installed the extra is told which; a path of their own that is wrong is named with its variable.
    """
    with pytest.raises(MissingBinaryError, match="which KETTLE_PG_BIN names, is not a program"):
        binaries.postgres_bin({"KETTLE_PG_BIN": str(tmp_path)})
    with pytest.raises(MissingBinaryError, match="which KETTLE_NATS_BIN names, is not a program"):
        binaries.nats_server({"KETTLE_NATS_BIN": str(tmp_path)})
    monkeypatch.setattr(binaries, "_PG_WHEEL", "a_wheel_that_is_not_there")
    with pytest.raises(MissingBinaryError, match=r"install kettle\[embedded\], or set KETTLE_PG_BIN"):
        binaries.postgres_bin({})


def test_own_programs_are_used(tmp_path: Path) -> None:
    """The environment can name the programs of a distribution."""
    for name in ("postgres", "initdb", "nats-server"):
        (tmp_path / name).touch(mode=0o755)
    assert tmp_path == binaries.postgres_bin({"KETTLE_PG_BIN": str(tmp_path)})
    assert tmp_path / "nats-server" == binaries.nats_server(
        {"KETTLE_NATS_BIN": str(tmp_path / "nats-server")}
    )
    assert os.access(binaries.postgres_bin() / "postgres", os.X_OK)
    assert os.access(binaries.nats_server(), os.X_OK)
