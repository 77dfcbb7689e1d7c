"""
When the process that forks commands ends before its time, what fails says why, and the next command is carried out.
"""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from kettle.testing.commands import warm
from kettle.testing.commands.running import run

DONE = ["-c", "print('done')"]


@pytest.fixture(autouse=True)
def processes(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[warm.ForkingProcess]]:
    """Those that are made here, which have no modules of ours; the one of the other tests goes on."""
    now: list[warm.ForkingProcess] = []
    monkeypatch.setattr(warm, "_now", now)
    monkeypatch.setattr(warm, "_PACKAGES", ())
    yield now
    for each in now:
        each.close()


async def test_it_says_which_signal_has_killed_it(
    processes: list[warm.ForkingProcess], tmp_path: Path
) -> None:
    assert (0, "done\n", "") == await run(DONE, tmp_path, os.environ)
    [first] = processes
    first.process.send_signal(signal.SIGKILL)
    first.process.wait()
    with pytest.raises(
        warm.ForkingEndedError, match=f"{first.process.pid}, .* was killed by SIGKILL.*none.*open"
    ):
        await run(DONE, tmp_path, os.environ)
    assert (0, "done\n", "") == await run(DONE, tmp_path, os.environ)
    assert [first] != processes


async def test_a_command_that_it_has_begun_says_so_too(
    processes: list[warm.ForkingProcess], tmp_path: Path
) -> None:
    """Nobody knows any more how it has ended."""
    kills = "import os, signal; os.kill(os.getppid(), signal.SIGKILL)"
    with pytest.raises(warm.ForkingEndedError, match="was killed by SIGKILL"):
        await run(["-c", kills], tmp_path, os.environ)
    assert [] == processes


async def test_it_says_when_its_lifeline_was_closed_by_mistake(
    processes: list[warm.ForkingProcess], tmp_path: Path
) -> None:
    """As by one who closes the number of a file twice."""
    assert (0, "done\n", "") == await run(DONE, tmp_path, os.environ)
    os.close(processes[0].lifeline.fileno())
    processes[0].process.wait()
    with pytest.raises(
        warm.ForkingEndedError, match=r"has ended with 0.*lifeline any more.*by who does not own it"
    ):
        await run(DONE, tmp_path, os.environ)


async def test_what_is_written_to_its_lifeline_by_mistake_does_not_end_it(
    processes: list[warm.ForkingProcess], tmp_path: Path
) -> None:
    """As by one who writes to the number of a file that is closed."""
    assert (0, "done\n", "") == await run(DONE, tmp_path, os.environ)
    [first] = processes
    os.write(first.lifeline.fileno(), b"stray")
    assert (0, "done\n", "") == await run(DONE, tmp_path, os.environ)
    assert [first] == processes
    first.process.kill()
    with pytest.raises(warm.ForkingEndedError, match=r"SIGKILL.*b'stray' to the lifeline"):
        await run(DONE, tmp_path, os.environ)


async def test_it_says_what_went_wrong_in_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(warm, "_PACKAGES", ("no_such_package",))
    with pytest.raises(warm.ForkingEndedError, match=r"(?s)has ended with 1.*Traceback.*no_such_package"):
        await run(DONE, tmp_path, os.environ)
