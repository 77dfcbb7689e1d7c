"""Commands that are forked from a process that has their modules are the commands that a person executes."""

import asyncio
import os
import signal
from contextlib import suppress
from pathlib import Path

import pytest

from kettle.testing.commands import warm
from kettle.testing.commands.running import KETTLE, executable, execute, run
from kettle.testing.patience import PATIENCE_S
from kettle.testing.throwaway_pool import ThrowawayPool
from kettle_services.cli.commands import COMMANDS as KETTLE_COMMANDS
from kettle_services.condor.start import COMMANDS

from .condor import WAITS, Condor

ASKS = {
    "condor_q": ["-af", "ClusterId", "JobStatus"],
    "condor_history": ["-limit", "1"],
    "condor_status": ["-af", "Name", "State"],
    "condor_qusers": ["-af", "Name"],
    "condor_submit": ["-dry-run", "-"],
    "condor_config_val": ["SCHEDD_NAME"],
}
"""What is asked of some commands; of the others, what they take."""
HELPS = ["-help"]


async def test_they_say_the_same_as_executed(condor: Condor, pool: ThrowawayPool) -> None:
    """Every condor_* command has the status, output and errors of its file with an interpreter of its own."""
    await pool.client.submit(f"{WAITS}queue\n", cwd=condor.work)
    await pool.client.history(limit=1)  # which has then the jobs of earlier tests, for both who ask
    for name in COMMANDS:
        words = ASKS.get(name, HELPS)
        executed = await condor.execute(name, *words, typed=f"{WAITS}queue\n")
        assert executed == await condor(name, *words, typed=f"{WAITS}queue\n"), name
        assert executed.out or executed.err, name


async def test_each_kettle_command_explains_itself_as_executed(pool: ThrowawayPool) -> None:
    """The words that choose a command load it, in an interpreter of its own as well."""
    environ = {**pool.environ, "KETTLE_HOME": str(pool.home)}
    asks = [[name, "--help"] for name in KETTLE_COMMANDS]
    asks += [
        ["version"],
        ["q", "--attributes", "ClusterId"],
        ["status", "--ads", "Machine", "--attributes", "Name"],
    ]
    for words in asks:
        executed = await execute(executable([*KETTLE, *words]), pool.home, environ)
        assert executed == await pool.kettle(*words, cwd=pool.home), words
        assert executed.out or executed.err, words


@pytest.mark.parametrize(
    ("program", "status"),
    [
        ("raise SystemExit(3)", 3),
        ("raise SystemExit", 0),
        ("raise SystemExit('refused')", 1),
        ("1 / 0", 1),
        ("import os; os._exit(4)", 4),
        ("import os; os.kill(os.getpid(), 9)", -signal.SIGKILL),
        ("import sys; sys.exit(sys.argv[1:] != ['a word', ''])", 0),
        ("import sys; sys.exit(len(sys.stdin.read()))", 5),
        ("import os, sys; print(os.getcwd(), os.environ['A']); sys.exit('KETTLE_B' in os.environ)", 0),
        ("import sys; print(sys.flags, sys.stdin.encoding, sys.stdout.isatty(), __name__)", 0),
        ("import time; print(time.strftime('%H', time.localtime(0)))", 0),
        ("import atexit; atexit.register(print, 'over')", 0),
    ],
)
async def test_a_program_ends_as_executed(program: str, status: int) -> None:
    """Its status, its words, its input, its variables, its directory, its errors."""
    words = ["-c", program, "a word", ""]
    variables = {**os.environ, "A": "1", "TZ": "Asia/Tokyo"}
    forked = await run(words, Path("/"), variables, "typed")
    executed = await execute(executable(words), Path("/"), variables, "typed")
    assert status == forked.status == executed.status
    assert executed.out == forked.out
    assert executed.err.splitlines()[-1:] == forked.err.splitlines()[-1:]


async def test_it_ends_with_what_it_has_started_when_nobody_waits_any_more(tmp_path: Path) -> None:
    """As one that is executed, which is killed with its group."""
    program = (
        "import os, time; os.fork(); open(str(os.getpid()), 'w').write(str(os.getpgrp())); time.sleep(1000)"
    )
    waiting = asyncio.ensure_future(run(["-c", program], tmp_path, os.environ))
    async with asyncio.timeout(PATIENCE_S):
        while len(found := [path.read_text() for path in tmp_path.iterdir()]) < 2 or "" in found:
            await asyncio.sleep(0.01)
        assert 2 == len(processes_of(int(found[0])))
        waiting.cancel()
        while processes_of(int(found[0])):
            await asyncio.sleep(0.01)


def processes_of(group: int) -> list[str]:
    """The living processes of a process group."""
    found: list[str] = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(FileNotFoundError, ProcessLookupError):  # it has ended since it was listed
            state, _parent, leader, *_ = path.read_text().rpartition(")")[2].split()
            if int(leader) == group and state != "Z":
                found.append(path.parent.name)
    return found


def test_variables_of_an_interpreter_are_read_by_one_of_its_own() -> None:
    """What an interpreter reads when it starts is not for one that has started, nor what is too long."""
    streams = [0, 1, 2]
    for name, value in (("PYTHONOPTIMIZE", "2"), ("LC_ALL", "POSIX"), ("A", "x" * 200_000)):
        assert warm.fork(["-c", "1 / 0"], Path("/"), {**os.environ, name: value}, streams) is None, name
