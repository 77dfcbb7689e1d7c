"""
A batch system behind a real OpenSSH server: one connection, few sessions, and answers that nothing printed besides can
change.
"""

import asyncio
import re
import shutil
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import asyncssh
import msgspec
import pytest
from tests.conformance.batch.entrypoint import World, until
from tests.conformance.providers.line import Line, line

from kettle.commands.port import EndNotSeenError, HostRefusedError, NotStartedError
from kettle.commands.ssh import SshCommands, open_host
from kettle.commands.ssh_host import HostAddress, SshHost
from kettle.testing.patience import PATIENCE_S
from kettle.testing.servers.fake_slurm import FakeSlurm
from kettle.testing.servers.sshd import SshServer, no_sshd, sshd
from kettle_services.ce.batch.settings import BatchSettings
from kettle_services.ce.domain.attempts.attempt import Stage
from kettle_wire.batch import BatchKind

_SESSIONS = 8
_SESSION_BYTES = 1000
"""More than what asks for a session, and less than a script with the input of a test."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Generator[SshServer]:
    if why := no_sshd():
        pytest.skip(why)
    greeting = "Welcome!\nkettle-0:0:output\n100|RUNNING|None|k|n|0|0|0|"
    with sshd(tmp_path_factory.mktemp("sshd"), greeting=greeting) as made:
        yield made


@pytest.fixture
async def between(server: SshServer) -> AsyncGenerator[Line]:
    async with line(server.port) as made:
        yield made


@pytest.fixture
async def commands(server: SshServer, between: Line) -> AsyncGenerator[SshCommands]:
    made = opened(server, between.port)
    yield made
    await made.close()


def opened(server: SshServer, port: int, *, key: str = "key", host: str = "host") -> SshCommands:
    """Commands over a connection."""
    where = open_host(
        f"{server.user}@127.0.0.1:{port}",
        str(server.place / key),
        str(server.known_hosts(port, key=host)),
        sessions=_SESSIONS,
        patience=20.0,
    )
    return SshCommands(where, {"HELLO": "it's me"}, sessions=_SESSIONS)


class TestCommands:
    """What commands over SSH are."""

    async def test_each_has_its_own_answer(self, commands: SshCommands) -> None:
        """However many are run together, each has its input, output, errors and status, byte by byte."""

        async def one(number: int) -> None:
            script = f'cat; echo "$HELLO $1"; echo bad {number} >&2; exit {number % 7}'
            ran = await commands.run(["sh", "-c", script, "sh", f"a 'b' {number}"], f"in {number}", within=30)
            assert (number % 7, f"in {number}\nit's me a 'b' {number}\n", f"bad {number}") == (
                ran.status,
                ran.output,
                ran.errors,
            )

        await asyncio.gather(*(one(number) for number in range(16)))

    async def test_many_need_few_sessions(self, server: SshServer, between: Line) -> None:
        """Eighty commands are a few sessions, of which there are never more at once than there may be."""
        host = Counting(
            HostAddress.read(f"{server.user}@127.0.0.1:{between.port}"),
            asyncssh.read_private_key(str(server.place / "key")),
            str(server.known_hosts(between.port)),
            sessions=_SESSIONS,
            patience=20.0,
        )
        commands = SshCommands(host, {}, sessions=_SESSIONS)
        ran = await asyncio.gather(*(commands.run(["echo", str(number)], within=60) for number in range(80)))
        await commands.close()
        assert [f"{number}\n" for number in range(80)] == [each.output for each in ran]
        assert host.sessions_at_once <= _SESSIONS
        assert host.sessions_made <= 24

    async def test_one_that_takes_too_long_is_ended_alone(self, commands: SshCommands) -> None:
        """A command has its time, and those beside it are answered."""
        slow = asyncio.create_task(commands.run(["sleep", "600"], within=1))
        assert "here\n" == (await commands.run(["echo", "here"], within=30)).output
        with pytest.raises(EndNotSeenError):
            await slow

    async def test_what_is_cut_off_is_in_doubt(
        self, commands: SshCommands, between: Line, tmp_path: Path
    ) -> None:
        """
        A command that runs when the connection is lost may have done anything; the next one gets a new connection.
        """
        began = tmp_path / "began"
        lost = asyncio.create_task(commands.run(["sh", "-c", f"touch {began}; sleep 600"], within=60))
        await until(began.exists, lambda: "it does not begin")
        between.lose()
        with pytest.raises(EndNotSeenError):
            await lost
        assert "again\n" == (await commands.run(["echo", "again"], within=30)).output

    async def test_so_is_what_was_cut_off_before_it_was_heard(
        self, commands: SshCommands, between: Line, tmp_path: Path
    ) -> None:
        """That a command had begun may be among what is lost with the connection."""
        began = tmp_path / "began"
        await commands.run(["true"], within=30)  # so that there is a connection
        with between.deaf(_SESSION_BYTES):
            lost = asyncio.create_task(
                commands.run(["sh", "-c", f"touch {began}; sleep 600"], "long " * _SESSION_BYTES, within=60)
            )
            await until(began.exists, lambda: "it does not begin")
        with pytest.raises(EndNotSeenError):
            await lost

    async def test_a_host_that_is_away_runs_nothing(self, commands: SshCommands, between: Line) -> None:
        """Nobody got through, so nothing was run."""
        async with between.cut():
            with pytest.raises(NotStartedError):
                await commands.run(["true"], within=30)

    async def test_both_sides_prove_who_they_are(self, server: SshServer, between: Line) -> None:
        """A host with another key, and one that does not take ours, are told nothing."""
        for wrong in (opened(server, between.port, key="other"), opened(server, between.port, host="other")):
            with pytest.raises(HostRefusedError):
                await wrong.run(["true"], within=30)
            await wrong.close()


@asynccontextmanager
async def dialled_out(server: SshServer) -> AsyncGenerator[int]:
    """
    The port at which a site is reached that lets nobody in: it has called us, with `ssh -R`, and is behind that connection.
    """
    ssh = shutil.which("ssh")
    if ssh is None:
        pytest.skip("there is no ssh (Debian package openssh-client)")
    words = [ssh, "-F", "none", "-N", "-R", f"127.0.0.1:0:127.0.0.1:{server.port}"]
    for each in (
        f"UserKnownHostsFile={server.known_hosts(server.port)}", "IdentitiesOnly=yes", "BatchMode=yes", "ExitOnForwardFailure=yes",
    ):  # fmt: skip
        words += ["-o", each]
    words += ["-i", str(server.place / "key"), "-p", str(server.port), f"{server.user}@127.0.0.1"]
    calling = await asyncio.create_subprocess_exec(*words, stderr=asyncio.subprocess.PIPE)
    try:
        assert calling.stderr is not None
        heard: list[str] = []
        async with asyncio.timeout(PATIENCE_S):
            while not (found := re.search(r"Allocated port (\d+) ", heard[-1] if heard else "")):
                heard.append((await calling.stderr.readline()).decode())
                assert heard[-1], heard
        yield int(found[1])
    finally:
        calling.kill()
        await calling.wait()


async def test_a_site_that_lets_nobody_in_calls_us(server: SshServer) -> None:
    """
    Its own connection to us is the way to it: commands are run there, it proves who it is, and without its call nothing is run.
    """
    async with dialled_out(server) as port:
        commands = opened(server, port)
        ran = await asyncio.gather(*(commands.run(["echo", str(number)], within=60) for number in range(20)))
        assert [f"{number}\n" for number in range(20)] == [each.output for each in ran]
        stranger = opened(server, port, host="other")
        with pytest.raises(HostRefusedError):
            await stranger.run(["true"], within=30)
        await stranger.close()
        await commands.close()
    with pytest.raises(NotStartedError):
        await commands.run(["true"], within=30)
    await commands.close()


class Counting(SshHost):
    """A host whose sessions are counted."""

    sessions_made = 0
    sessions_at_once = 0
    _now = 0

    async def run(self, script: str, *, within: float) -> str:
        """Count it."""
        self._now += 1
        self.sessions_made += 1
        self.sessions_at_once = max(self.sessions_at_once, self._now)
        try:
            return await super().run(script, within=within)
        finally:
            self._now -= 1


@pytest.fixture
def fake(tmp_path: Path) -> Generator[FakeSlurm]:
    with FakeSlurm(tmp_path / "slurm") as programs:
        yield programs


async def test_a_job_runs_on_a_site_that_shares_no_files(
    server: SshServer, between: Line, fake: FakeSlurm, tmp_path: Path
) -> None:
    """
    Inputs go to a login, the job is submitted there, and its results come back, over one connection; nothing stays there.
    """
    fake.set_mode("runs", "motd")
    settings = BatchSettings(
        name="site",
        kind=BatchKind.SLURM,
        directory=str(tmp_path / "there"),
        host=f"{server.user}@127.0.0.1:{between.port}",
        key_file=str(server.place / "key"),
        known_hosts_file=str(server.known_hosts(between.port)),
        environment=fake.environment,
        poll_least=0.1,
        poll_most=0.2,
    )
    async with World(settings, tmp_path).running() as entrypoint:
        await entrypoint.well()
        program = "cat in; mkdir d; echo one >d/one; head -c 100000 /dev/zero >large; exit 5"
        listed = await entrypoint.submit(program, TransferOutput="d,large", TransferOutputRemaps="")
        changed = await entrypoint.submit("echo new >new; cat in >&2")
        gone = await entrypoint.submit("exit 0", TransferOutput="never-made")
        final = await entrypoint.final(listed)
        assert final.result.exit is not None
        assert (5, None) == (final.result.exit.code, final.result.ending)
        data = {each.name: each.data for each in final.outputs}
        assert {
            "_condor_stdout": b"what it reads\n",
            "_condor_stderr": b"",
            "d/one": b"one\n",
            "large": None,
        } == data
        assert bytes(100_000) == await entrypoint.output(listed, "large", 100_000)
        found = await entrypoint.final(changed)
        assert {"new", "_condor_stdout", "_condor_stderr"} == {each.name for each in found.outputs}
        ending = (await entrypoint.final(gone)).result.ending
        assert ending is not None
        assert "never-made" in ending.reason
        for each in (listed, changed, gone):
            run = await entrypoint.stage(each, Stage.ENDED)
            assert run.id == await entrypoint.follower.sandboxes.begun(run)
            never = msgspec.structs.replace(run, intent="kaaaaaaaaaaaaaa")
            assert None is await entrypoint.follower.sandboxes.begun(never)
            await entrypoint.confirm(each)
            there = Path(entrypoint.follower.sandboxes.path(run.intent))
            await until(partial(_is_gone, there), lambda: "its sandbox stays")


def _is_gone(path: Path) -> bool:
    return not path.exists()
