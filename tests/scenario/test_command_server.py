"""condor_* commands in a loop are carried out by a command server, and are what they always are."""

import asyncio
import os
import select
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

import pytest

from kettle.command_server import asking
from kettle.testing.commands.running import Said, execute
from kettle.testing.patience import PATIENCE_S
from kettle_services.condor.compiled_launcher import compile_into
from kettle_services.condor.launchers import launcher
from kettle_services.condor.start import SERVED

from .condor import WAITS, Condor

ASKS: Final = {
    "condor_q": ["-af", "ClusterId", "JobStatus"],
    "condor_history": ["-limit", "1"],
    "condor_status": ["-af", "Name", "State"],
    "condor_qusers": ["-af", "Name"],
    "condor_submit": ["-dry-run", "-"],
    "condor_config_val": ["SCHEDD_NAME"],
    "condor_userprio": ["-getreslist", "nobody"],  # its other tables have the minute in them
    "condor_version": [],
}
"""What is asked of some commands; of the others, what they take."""


@pytest.fixture
async def served(condor: Condor, tmp_path: Path) -> AsyncIterator[Condor]:
    """Commands that a server carries out, or that say that none has; where there is a compiler, as a compiled program asks."""
    place = tmp_path / "bin"
    place.mkdir()
    program = compile_into(tmp_path)
    for name in SERVED:
        text = launcher(name, program=program)
        begin = text.index("from kettle_services")
        (place / name).write_text(f"{text[:begin]}sys.exit('carried out by no server')\n")
        (place / name).chmod(0o755)
    there = Condor(place, condor.pool, condor.work)
    there.environ |= {"XDG_RUNTIME_DIR": str(tmp_path), asking.VARIABLE: "on"}
    usual = Condor(condor.place, condor.pool, condor.work)
    usual.environ = there.environ
    directory = tmp_path / "kettle"
    try:
        async with asyncio.timeout(PATIENCE_S):
            while not (said := await there.execute("condor_version")).out:
                assert "carried out by no server\n" == said.err
                await usual.execute("condor_version")  # the second of late starts one
        yield there
    finally:
        for path in directory.glob("*.lock"):
            _end(path)


def _end(lock: Path) -> None:
    """End the server that holds a lock."""
    handle = os.pidfd_open(int(lock.read_text()))
    try:
        signal.pidfd_send_signal(handle, signal.SIGTERM)
        ended = select.poll()
        ended.register(handle, select.POLLIN)
        assert ended.poll(PATIENCE_S * 1000)
    finally:
        os.close(handle)


async def test_they_say_the_same_as_without_a_server(served: Condor, condor: Condor) -> None:
    """Each has the status, output and errors of its file with an interpreter of its own."""
    await condor.pool.client.submit(f"{WAITS}queue\n", cwd=condor.work)
    await condor.pool.client.history(limit=1)  # which has then the jobs of earlier tests, for both who ask
    for name in sorted(SERVED):
        words = ASKS.get(name, ["-help"])
        executed = await condor.execute(name, *words, typed=f"{WAITS}queue\n")
        assert executed == await served.execute(name, *words, typed=f"{WAITS}queue\n"), name
        assert executed.out or executed.err, name
    assert f"{served.place}\n" == (await served.execute("condor_config_val", "BIN")).out


async def test_jobs_are_submitted_and_removed_in_a_loop(served: Condor) -> None:
    """A loop of a shell, with a description at standard input each time."""
    script = (
        "for i in 1 2 3; do printf 'executable = /bin/sleep\\nrequirements = false\\nqueue\\n' | condor_submit -terse; done"
        " | while read first dash last; do condor_rm ${first%.*}; done"
    )
    said = await execute(["sh", "-c", script], served.work, served.environ)
    assert (0, "") == (said.status, said.err)
    assert 3 == said.out.count("have been marked for removal")


async def test_one_that_wants_a_terminal_carries_itself_out(served: Condor) -> None:
    """The server hands it back before it has done anything."""
    said = await served.execute("condor_submit", "-interactive")
    assert Said(1, "", "carried out by no server\n") == said
