"""Looking into jobs that run."""

import asyncio
import os
import pty
import sys
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import msgspec
import pytest
import pytest_asyncio

from kettle.client import Client, CommandRefusedError, select
from kettle.client.jobs.access import STDERR, AttemptAccess
from kettle.testing.patience import PATIENCE_S
from kettle.testing.throwaway_pool import ThrowawayPool
from kettle_wire.commands.access import Exchange, Exchanged, Terminal
from kettle_wire.commands.schedd import AccessGiven
from kettle_wire.events import JobAssigned, JobCompleted, JobStarted, JobVacated
from kettle_wire.jobs import JobId

from .terminals import all_said

SCRIPT = """\
#!/bin/sh
echo one; echo wrong >&2
mkdir logs; echo step > logs/step.log
ln -s /etc/passwd link; ln -s /etc outside; mkfifo pipe
echo two > note
while [ ! -e go ]; do sleep 0.1; done
echo three
while [ ! -e stop ]; do sleep 0.1; done
"""


@pytest.fixture(scope="module")
def configuration() -> dict[str, Any]:
    """A job that has saved a checkpoint goes on at once."""
    return {"settings": {"startd": {"checkpoint_pause": 0.01}}}


async def begun(client: Client, job: JobId) -> AttemptAccess:
    """Wait until the job's program runs and has made its files."""
    async with asyncio.timeout(PATIENCE_S):
        async with aclosing(client.follow(job)) as events:
            async for event in events:
                if isinstance(event.event, JobStarted):
                    break
        visit = await client.visit(job)
        await found(visit, "note", b"two\n")
    return visit


async def found(visit: AttemptAccess, name: str, data: bytes) -> None:
    """Wait until a file has these contents."""
    while True:
        try:
            if (await visit.peek(name)).data == data:
                return
        except CommandRefusedError as error:
            if error.code != "unreadable":
                raise
        await asyncio.sleep(0.05)


@pytest_asyncio.fixture
async def visit(pool: ThrowawayPool, tmp_path: Path) -> AsyncIterator[AttemptAccess]:
    """A job that runs until it is removed."""
    script = tmp_path / "work.sh"
    script.write_text(SCRIPT)
    script.chmod(0o755)
    submitted = await pool.client.submit(
        'executable = work.sh\noutput = work.out\nerror = work.err\nenvironment = "COLOUR=green"\n'
        "request_memory = 64\nqueue\n",
        cwd=tmp_path,
    )
    yield await begun(pool.client, JobId(submitted.cluster, 0))
    await pool.client.remove(select(submitted.cluster))
    async with asyncio.timeout(PATIENCE_S):
        await pool.client.wait(select(submitted.cluster))


async def ran(visit: AttemptAccess, *command: str, given: bytes = b"") -> tuple[int | None, bytes, bytes]:
    """A program beside the job: its exit code, what it wrote."""
    said = {1: b"", 2: b""}
    async with asyncio.timeout(PATIENCE_S), visit.running(command) as session:
        feeding = asyncio.create_task(session.write(given, ends=True))
        try:
            async for output in session.output():
                said[output.descriptor] += output.data
        finally:
            feeding.cancel()
            await asyncio.wait([feeding])
    return session.exit_code, said[1], said[2]


async def test_files_are_seen_as_they_grow(visit: AttemptAccess) -> None:
    """
    Streams by their own names and those that the owner gave them, other files by their paths, from any place on.
    """
    assert b"one\n" == (await visit.peek()).data
    assert b"one\n" == (await visit.peek("work.out")).data
    assert b"wrong\n" == (await visit.peek(STDERR)).data
    assert b"step\n" == (await visit.peek("logs/step.log")).data
    piece = await visit.peek(offset=-2)
    assert (2, 4, b"e\n") == (piece.offset, piece.size, piece.data)
    async with asyncio.timeout(PATIENCE_S), aclosing(visit.follow()) as pieces:
        seen = b""
        async for piece in pieces:
            seen += piece.data
            if seen == b"one\n":
                assert (0, b"", b"") == await ran(visit, "touch", "go")
            elif seen == b"one\nthree\n":
                break


@pytest.mark.parametrize(
    ("name", "says"),
    [("link", "link"), ("outside/passwd", "link"), ("../x", "leaves"), ("/etc/passwd", "leaves"),
     ("logs/../../x", "leaves"), ("pipe", "regular"), ("logs", "regular"), ("absent", "No such file")],
)  # fmt: skip
async def test_nothing_else_is_seen(visit: AttemptAccess, name: str, says: str) -> None:
    """
    What leads out of the sandbox, by its name or by a link that the job made, is refused, and so is what is no file.
    """
    with pytest.raises(CommandRefusedError, match=says) as refused:
        await visit.peek(name)
    assert "unreadable" == refused.value.code


async def test_a_program_runs_beside_the_job(visit: AttemptAccess) -> None:
    """
    It has the job's directory, environment and account, the streams of the person who asks, and an exit status.
    """
    code, out, err = await ran(
        visit, "sh", "-c", "cat note; echo $COLOUR; id -u; cat; echo e >&2; exit 7", given=b"in\n"
    )
    _, job, _ = await ran(visit, "stat", "-c", "%u", "note")
    assert (7, b"two\ngreen\n" + job + b"in\n", b"e\n") == (code, out, err)
    assert (127, b"") == (await ran(visit, "no-such-program"))[:2]


async def test_large_streams_pass(visit: AttemptAccess) -> None:
    """More than any pipe or message holds arrives whole, both ways."""
    data = os.urandom(3_000_000)
    assert (0, data, b"") == await ran(visit, "cat", given=data)


async def test_a_repeat_neither_loses_nor_doubles(visit: AttemptAccess) -> None:
    """
    Input that is said again is not taken again, output that did not come comes again, and a gap is refused.
    """

    async def say(**said: Any) -> Exchanged:
        return await visit.exchange(Exchange(access=visit.access, session=session.name, **said))

    async with asyncio.timeout(PATIENCE_S), visit.running(["cat"]) as session:
        assert [3, 3, 5] == [(await say(at=0, data=data)).taken for data in (b"one", b"one", b"onexy")]
        with pytest.raises(CommandRefusedError, match="missing"):
            await say(at=9, data=b"z")
        while not (first := await say(after=0, wait=2.0)).output:
            pass
        assert (first.number, first) == (1, await say(after=0, wait=2.0))
        last, written = first, b"".join(output.data for output in first.output)
        while len(written) < len(b"onexy"):
            last = await say(after=last.number, wait=2.0)
            written += b"".join(output.data for output in last.output)
        assert b"onexy" == written


async def test_a_terminal(visit: AttemptAccess) -> None:
    """A shell with a terminal has job control, the size of the person's window, and hears of a new one."""
    seen = b""
    async with (
        asyncio.timeout(PATIENCE_S),
        visit.running(["sh", "-i"], terminal=Terminal(kind="vt100", rows=30, columns=90)) as session,
    ):
        await session.write(b"stty size; echo $TERM; tty -s && echo yes; ps -o tty= -p $$\n")
        resized = False
        async for output in session.output():
            seen += output.data
            if b"yes\r\n" in seen and not resized:
                resized = True
                await session.resize(Terminal(rows=31, columns=91))
                await session.write(b"stty size; exit 3\n")
    assert 3 == session.exit_code
    assert all(word in seen for word in (b"30 90", b"vt100", b"31 91", b"pts/"))
    assert b"job control" not in seen


async def test_a_session_leaves_nothing(pool: ThrowawayPool, visit: AttemptAccess) -> None:
    """
    What runs beside the job ends when the person who asked for it goes away, and with the job at the latest.
    """
    async with asyncio.timeout(PATIENCE_S):
        async with visit.running(["sh", "-c", "sleep 987 & exec sleep 987"]):
            while len(sleeping(pool)) < 2:
                await asyncio.sleep(0.05)
        while sleeping(pool):
            await asyncio.sleep(0.05)
        with pytest.raises(CommandRefusedError) as refused:
            await ran(visit, "sh", "-c", "setsid sleep 987 & touch go stop; exec sleep 987")
        assert refused.value.code in {"not_running", "refused"}, "the job, or only its sessions, are over"
        while sleeping(pool):
            await asyncio.sleep(0.05)


LIVES = """\
#!/bin/sh
[ -e lived ] && { echo again > life; while [ ! -e stop ]; do sleep 0.1; done; exit 0; }
echo two > note
touch lived
while [ ! -e go ]; do sleep 0.1; done
exit 85
"""


async def test_a_session_belongs_to_one_life_of_the_program(pool: ThrowawayPool, tmp_path: Path) -> None:
    """
    A program that saves a checkpoint and begins again has lost what was beside it, and ends once, with its own status.
    """
    script = tmp_path / "lives.sh"
    script.write_text(LIVES)
    script.chmod(0o755)
    submitted = await pool.client.submit(
        "executable = lives.sh\ncheckpoint_exit_code = 85\ntransfer_checkpoint_files = lived\n"
        "request_memory = 64\nqueue\n",
        cwd=tmp_path,
    )
    job = JobId(submitted.cluster, 0)
    async with asyncio.timeout(PATIENCE_S):
        visit = await begun(pool.client, job)
        async with visit.running(["sh", "-c", "touch go; exec sleep 987"]) as session:
            with pytest.raises(CommandRefusedError, match="no such session"):
                async for _ in session.output():
                    pass
        assert [] == sleeping(pool)
        await found(visit, "life", b"again\n")
        assert (0, b"again\n", b"") == await ran(visit, "cat", "life")
        async with visit.running(["touch", "stop"]), aclosing(pool.client.follow(job)) as events:
            seen = [type(event.event) async for event in events]
    assert (1, 1, 0) == tuple(seen.count(kind) for kind in (JobAssigned, JobCompleted, JobVacated))


def sleeping(pool: ThrowawayPool) -> list[str]:
    return [each for each in pool.processes() if "sleep 987" in each]


async def test_others_are_kept_out(pool: ThrowawayPool, visit: AttemptAccess, tmp_path: Path) -> None:
    """
    A proof that was made for another attempt, or another person, opens nothing; nor does a job that does not run.
    """
    forged = msgspec.structs.replace(visit.access, proof="0" * 64)
    given = AccessGiven(access=forged, startd=visit.startd, slot=visit.slot)
    with pytest.raises(CommandRefusedError) as refused:
        await visit.with_access(given).peek()
    assert "denied" == refused.value.code
    submitted = await pool.client.submit(
        "executable = /bin/true\nrequest_memory = 1 PB\nqueue\n", cwd=tmp_path
    )
    with pytest.raises(CommandRefusedError) as refused:
        await pool.client.visit(JobId(submitted.cluster, 0))
    assert "not_running" == refused.value.code
    await pool.client.remove(select(submitted.cluster))


async def test_commands(pool: ThrowawayPool, visit: AttemptAccess) -> None:
    """What people type."""
    job = str(visit.job)
    assert (0, "one\n", "") == await pool.kettle("tail", job)
    assert (0, "==> note <==\ntwo\n==> logs/step.log <==\nstep\n", "") == await pool.kettle(
        "tail", job, "note", "logs/step.log"
    )
    status, out, _ = await pool.kettle("tail", "--json", "--maxbytes", "3", job)
    assert (0, {"file": "_condor_stdout", "offset": 1, "text": "ne\n"}) == (status, msgspec.json.decode(out))
    status, _, err = await pool.kettle("tail", job, "link")
    assert (1, True) == (status, "links are not followed" in err)
    assert (5, "two\n", "") == await pool.kettle("exec", job, "sh", "-c", "cat note; exit 5")
    assert (0, "green x\n", "") == await pool.kettle("ssh", job, "echo $COLOUR", "x")
    status, _, err = await pool.kettle("exec", "999.0", "true")
    assert (1, True) == (status, "999.0 is not in the queue" in err)


async def test_a_shell_on_a_terminal(pool: ThrowawayPool, visit: AttemptAccess) -> None:
    """`kettle ssh` on a terminal is a shell on a terminal there."""
    ours, theirs = pty.openpty()
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-P", "-m", "kettle_services.cli", "ssh", str(visit.job),
        stdin=theirs, stdout=theirs, stderr=theirs,
        env={**pool.environ, "KETTLE_HOME": str(pool.home)}, start_new_session=True,
    )  # fmt: skip
    os.close(theirs)
    os.write(ours, b"echo $((6 * 7)) $COLOUR; exit 4\n")
    async with asyncio.timeout(PATIENCE_S):
        status = await process.wait()
    seen = all_said(ours)
    assert (4, True) == (status, b"42 green" in seen)
