"""
A machine joins a running pool by one command, runs its jobs, and is cut off when it is removed; with the commands that an
administrator types, and a master of its own as on another machine.
"""

import asyncio
import json
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from kettle import pool as pools
from kettle.bus.nats import NatsBus
from kettle.bus.ports import RefusedError
from kettle.client import select
from kettle.pool.personal_settings import Tables
from kettle.testing.commands.running import KETTLE
from kettle.testing.patience import PATIENCE_S
from kettle.testing.servers import selection
from kettle.testing.throwaway_pool import ThrowawayPool, throwaway_pool
from kettle_wire.commands.startd import RELEASE, Release
from kettle_wire.iam_http import token_id
from kettle_wire.identity import daemon, user, worker
from kettle_wire.subjects import Subjects

from .waiting import the_machine

NAME = "n2.example.org"
SERVICES = ["collector", "negotiator", "schedd", "shadow", "startd", "accounting", "iam"]
LEAVE = [sys.executable, *KETTLE, "worker", "leave", NAME]
SETTINGS: Tables = {"master": {"daemon_list": SERVICES}}
JOBS = f"""
executable = /bin/sh
transfer_executable = false
arguments = "-c 'echo $(ClusterId).$(ProcId)'"
output = out.$(ProcId)
requirements = TARGET.Machine == "{NAME}"
queue 4
"""
OF_A_MACHINE = """
[startd]
num_cpus = 2
update_interval = 1.0
container_runtimes = []
max_job_retirement_time = 600
"""


async def said(pool: ThrowawayPool, *words: str, status: int = 0) -> str:
    """What a command prints, or complains of."""
    ended, out, err = await pool.kettle(*words)
    assert status == ended, out + err
    return err if status else out


def address(pool: ThrowawayPool) -> str:
    return f"http://127.0.0.1:{(pool.home / 'iam' / 'port').read_text()}"


async def token_in(pool: ThrowawayPool, file: Path) -> str:
    """A new join token, in place of the one that is in the file."""
    shown = await said(pool, "worker", "token", "create", "--lifetime", "10m", "--into", str(file))
    token = file.read_text().strip()
    assert token_id(token) in shown
    assert token not in shown
    assert 0o600 == file.stat().st_mode & 0o777
    return token


async def joined(pool: ThrowawayPool, home: Path) -> str:
    """
    Have a machine join that keeps its files in `home`, under no name of the pool's own; the token that it used.
    """
    secret = home.parent / "token"
    withdrawn, token = [await token_in(pool, secret) for _ in range(2)]
    shown = {each["token"] for each in json.loads(await said(pool, "worker", "token", "list", "--json"))}
    assert {token_id(token)} == {token_id(withdrawn), token_id(token)} & shown
    words = ("--token-file", str(secret), "--home", str(home))
    own = await the_machine(pool)
    taken = await said(pool, "worker", "join", address(pool), *words, "--name", own, status=1)
    assert f"{own} is the name of a host of this pool" in taken
    given = await said(pool, "worker", "join", address(pool), *words, "--name", NAME)
    assert f"This machine is {NAME}" in given
    settings = home / "kettle.toml"
    settings.write_text(settings.read_text().replace("\n[startd]\n", OF_A_MACHINE, 1))
    return token


async def until_seen(pool: ThrowawayPool) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while NAME not in {ad.get("Machine") for ad in await pool.client.ads("Machine")}:
            await asyncio.sleep(0.02)


async def impostures(pool: ThrowawayPool, credentials: Path) -> None:
    """What the credential of the machine does not open."""
    for identity in (user(pool.client.pool.user), worker("vm"), daemon("schedd"), worker(NAME)):
        async with NatsBus.connect(
            pool.state.nats_url,
            subjects=Subjects(pool.client.pool.pool),
            identity=identity,
            credentials=str(credentials),
            patience=PATIENCE_S,
        ) as bus:
            with pytest.raises(RefusedError) as refused:
                await bus.call(RELEASE, NAME, Release(claims=[], reason=""), deadline=PATIENCE_S)
            assert "not_permitted" == refused.value.code


def startd_of(home: Path) -> int:
    """The process of the machine's startd."""
    state = pools.state(home)
    assert state is not None
    return next(each.pid for each in state.daemons if each.name == "startd")


async def line_with(words: str, lines: asyncio.StreamReader) -> None:
    """Read until a line has these words; who gives up sees what was read."""
    read: list[str] = []
    try:
        while not (read and words in read[-1]):
            read.append((await lines.readline()).decode())
            assert read[-1], "".join(read)
    except asyncio.CancelledError as error:
        error.add_note(f"read so far: {read}")
        raise


@asynccontextmanager
async def leave(environ: Mapping[str, str]) -> AsyncGenerator[tuple[Process, asyncio.StreamReader]]:
    """The command by which an administrator has the machine leave, and what it complains of."""
    process = await asyncio.create_subprocess_exec(*LEAVE, env=environ, stderr=PIPE)
    assert process.stderr is not None
    try:
        yield process, process.stderr
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def leaves_when_it_is_empty(pool: ThrowawayPool, home: Path, work: Path) -> None:
    """
    A job that runs has its retirement time and ends as if nothing were; the machine stays until its result, which is too
    large for a message, has been fetched, also if it is not heard of meanwhile for longer than its ads live.
    """
    environ = {**pool.environ, "KETTLE_HOME": str(pool.home)}
    program = "touch begun; while test ! -e end; do sleep 0.05; done; head -c 700000 /dev/zero"
    last = JOBS.replace("echo $(ClusterId).$(ProcId)", program).replace("queue 4", "queue")
    submitted = await pool.client.submit(last, cwd=work)
    async with asyncio.timeout(PATIENCE_S):
        places = (home / "execute", home / "startd" / "execute")  # root's jobs cannot reach the first
        # Sandboxes of jobs that have ended may still be there.
        while not (
            begun := [file for place in places if place.exists() for file in place.glob("dir_*/begun")]
        ):
            await asyncio.sleep(0.02)
        (running,) = begun
        shadow, startd = pool.kill("shadow", signal.SIGSTOP), startd_of(home)
        running.with_name("end").touch()
        async with leave(environ) as (leaver, lines):
            try:
                # Of one job or more: that of a former one the shadow may not have confirmed before it was stopped.
                await line_with("the results of ", lines)
                os.kill(startd, signal.SIGSTOP)
                await line_with("is not heard of", lines)
                os.kill(startd, signal.SIGCONT)
                await line_with("the results of ", lines)
            finally:
                for process in (shadow, startd):
                    os.kill(process, signal.SIGCONT)
            assert 0 == await leaver.wait()
        assert 700_000 == (work / "out.0").stat().st_size
        await pool.client.wait(select(submitted.cluster))
    (ad,) = await pool.client.history(select(submitted.cluster))
    assert (1, 0) == (ad["NumJobStarts"], ad["ExitCode"])


async def test_a_machine_joins_runs_jobs_and_is_cut_off(tmp_path: Path, template: Path) -> None:
    """
    It is seen and runs what is for it; its credential opens nothing of anybody else's; when it is removed its connection
    ends, and the token lets in nobody a second time.
    """
    if not selection.servers_are_ours():
        pytest.skip("whom servers of somebody else let in is theirs to say")
    home = tmp_path / "machine" / "home"
    home.parent.mkdir(mode=0o700)
    async with throwaway_pool(tmp_path, cpus=1, template=template, settings=SETTINGS) as pool:
        token = await joined(pool, home)
        try:
            await asyncio.to_thread(pools.up, home, environ=pool.environ)
            await until_seen(pool)
            submitted = await pool.client.submit(JOBS, cwd=tmp_path)
            async with asyncio.timeout(PATIENCE_S):
                await pool.client.wait(select(submitted.cluster))
            printed = [(tmp_path / f"out.{number}").read_text().strip() for number in range(4)]
            assert [f"{submitted.cluster}.{number}" for number in range(4)] == printed
            await impostures(pool, home / "credentials" / "worker.creds")
            again = ("worker", "join", address(pool), "--token", token, "--name", "n3")
            other = ("--home", str(tmp_path / "machine" / "other"))
            assert "used by another machine" in await said(pool, *again, *other, status=1)
            assert "jointoken.misused" in await said(pool, "audit", "--alarms")
            log = home / "log" / "startd.log"
            await leaves_when_it_is_empty(pool, home, tmp_path)
            async with asyncio.timeout(PATIENCE_S):
                while "user authentication revoked" not in log.read_text():
                    await asyncio.sleep(0.01)
        finally:
            await asyncio.to_thread(pools.down, home)
    assert [] == pool.left
