import asyncio
import os
import signal
from pathlib import Path
from typing import Any, cast

import asyncpg
import pytest

from kettle.embedded import AlreadySupervisedError, EmbeddedPostgres, StartError
from kettle.testing.patience import PATIENCE_S


def proc(pid: int, name: str) -> str:
    return Path(f"/proc/{pid}/{name}").read_text()


def status(pid: int, field: str) -> str:
    lines = proc(pid, "status").splitlines()
    return next(line.partition(":")[2].strip() for line in lines if line.startswith(f"{field}:"))


def server(directory: Path, template: Path) -> EmbeddedPostgres:
    return EmbeddedPostgres(directory / "postgres", throwaway=True, template=template)


async def write(postgres: EmbeddedPostgres, number: int) -> None:
    connection = await postgres.connect()
    await connection.execute("CREATE TABLE IF NOT EXISTS kept (n int)")
    await connection.execute("INSERT INTO kept VALUES ($1)", number)
    await connection.close()


async def read(postgres: EmbeddedPostgres) -> list[int]:
    connection = await postgres.connect()
    rows = await connection.fetch("SELECT n FROM kept ORDER BY n")
    await connection.close()
    return [row["n"] for row in rows]


async def test_first_start_makes_everything_and_data_stays(directory: Path) -> None:
    """
    A persistent server makes its data at the first start and finds it at the second; then it flushes what it commits.
    """
    async with EmbeddedPostgres(directory / "postgres") as postgres:
        await write(postgres, 1)
        connection = await postgres.connect()
        assert ("on", "on") == (
            await connection.fetchval("SHOW fsync"),
            await connection.fetchval("SHOW synchronous_commit"),
        )
        await connection.close()
    async with EmbeddedPostgres(directory / "postgres") as postgres:
        assert [1] == await read(postgres)
    assert not (directory / "postgres/data/postmaster.pid").exists()


async def test_killed_server_comes_back_with_its_data(directory: Path, template: Path) -> None:
    """After SIGKILL the end is noticed, and a new start has the same address and every commit."""
    async with server(directory, template) as postgres:
        address = postgres.dsn
        for number in range(3):
            await write(postgres, number)
            os.kill(postgres.pid, signal.SIGKILL)
            assert -signal.SIGKILL == await postgres.wait()
            assert not postgres.running
            await postgres.start()
        assert address == postgres.dsn
        assert [0, 1, 2] == await read(postgres)


async def test_nobody_else_can_reach_it(directory: Path, template: Path) -> None:
    """It listens on a socket in a private directory only, asks for the password, and is not root."""
    async with server(directory, template) as postgres:
        inner = directory / "postgres"
        connection = await postgres.connect()
        assert await connection.fetchval("SHOW listen_addresses") == ""
        await connection.close()
        assert {0o700} == {(inner / name).stat().st_mode & 0o777 for name in ("data", "socket", ".")}
        assert {0o600} == {(inner / name).stat().st_mode & 0o777 for name in ("passfile", "postgres.log")}
        assert "0" not in status(postgres.pid, "Uid").split()
        assert status(postgres.pid, "CapEff").strip("0") == ""
        with pytest.raises(asyncpg.InvalidPasswordError):
            await asyncpg.connect(
                host=str(inner / "socket"), user="kettle", password="guess", database="kettle"
            )


async def test_password_is_on_no_command_line(directory: Path, template: Path) -> None:
    """Neither the address nor the command line of the server holds the password."""
    async with server(directory, template) as postgres:
        secret = (directory / "postgres" / "passfile").read_text().strip().rpartition(":")[2]
        assert len(secret) == 64
        assert secret not in postgres.dsn
        assert secret not in proc(postgres.pid, "cmdline")
        assert secret not in proc(postgres.pid, "environ")


async def test_second_supervisor_is_refused(directory: Path, template: Path) -> None:
    """While one supervisor has the directory, another is refused; afterwards it is not."""
    async with server(directory, template):
        with pytest.raises(AlreadySupervisedError):
            await server(directory, template).start()
    async with server(directory, template) as postgres:
        assert postgres.running


async def test_orphan_is_ended_first(directory: Path, template: Path) -> None:
    """A server that an earlier supervisor left behind is ended before a new one is started, never doubled."""
    orphan = server(directory, template)
    await orphan.start()
    await write(orphan, 1)
    cast("Any", orphan)._lock.release()  # as if its supervisor had died and the server had not

    async with server(directory, template) as postgres:
        assert await orphan.wait() == 0
        assert [1] == await read(postgres)


async def test_pid_of_another_process_is_not_killed(directory: Path, template: Path) -> None:
    """A process that merely got the number of a dead server stays alive, and keeps nobody from starting."""
    async with server(directory, template):
        pass
    bystander = await asyncio.create_subprocess_exec("sleep", "60")
    try:
        (directory / "postgres/data/postmaster.pid").write_text(f"{bystander.pid}\n/elsewhere\n")
        async with server(directory, template):
            assert bystander.returncode is None
    finally:
        bystander.kill()
        await bystander.wait()


async def test_long_path_gets_a_short_socket(directory: Path, template: Path) -> None:
    """
    Where the path is too long for a socket, it is in a private directory elsewhere, which is found again after a crash
    and gone after a stop.
    """
    deep = directory / ("d" * 100)
    postgres = server(deep, template)
    await postgres.start()
    elsewhere = (deep / "postgres" / "socket").readlink()
    assert elsewhere.stat().st_mode & 0o777 == 0o700
    os.kill(postgres.pid, signal.SIGKILL)
    await postgres.wait()
    await postgres.start()
    assert elsewhere == (deep / "postgres" / "socket").readlink()
    await write(postgres, 1)
    await postgres.stop()
    assert not elsewhere.exists()
    assert not (deep / "postgres" / "socket").is_symlink()


async def test_failed_start_says_what_the_server_said(directory: Path, template: Path) -> None:
    """A server that does not come up is reported with the end of its log, and nothing of it is left."""
    postgres = EmbeddedPostgres(
        directory / "postgres", throwaway=True, template=template, settings={"shared_buffers": "none"}
    )
    with pytest.raises(StartError, match='invalid value for parameter "shared_buffers"'):
        await postgres.start()
    assert not postgres.running
    async with server(directory, template) as again:
        assert again.running


async def test_cancelled_start_leaves_nothing(directory: Path) -> None:
    """A start that is cancelled while it makes the data ends what it started, and the next one succeeds."""
    postgres = EmbeddedPostgres(directory / "postgres", throwaway=True)
    starting = asyncio.create_task(postgres.start())
    stage = directory / "postgres" / "data.new"
    async with asyncio.timeout(PATIENCE_S):
        while not (stage / "postgresql.conf").exists():
            await asyncio.sleep(0.005)
    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await starting
    assert not (directory / "postgres" / "data").exists()
    async with postgres:
        await write(postgres, 1)
