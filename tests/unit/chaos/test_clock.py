"""Clocks that are turned, and what is left of them."""

import subprocess
import sys
from mmap import ACCESS_READ, mmap
from pathlib import Path

import pytest

from kettle.testing.chaos.clock import Clock, library, tidied

pytestmark = pytest.mark.skipif(library() is None, reason="needs libfaketime (pip install libfaketime)")

_TELL = "import sys, time; [print(time.time(), flush=True) for line in sys.stdin]"


def under(clock: Clock) -> subprocess.Popen[str]:
    """A process that tells the time for each line that it reads."""
    return subprocess.Popen(
        [sys.executable, "-c", _TELL],
        env=clock.environ(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def asked(process: subprocess.Popen[str]) -> float:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("\n")
    process.stdin.flush()
    return float(process.stdout.readline())


def shared(process: subprocess.Popen[str]) -> list[bool]:
    """Whether its memory and its semaphore are there."""
    return [memory(process).exists(), Path(f"/dev/shm/sem.faketime_sem_{process.pid}").exists()]


def memory(process: subprocess.Popen[str]) -> Path:
    return Path(f"/dev/shm/faketime_shm_{process.pid}")


def test_what_a_killed_process_shared_is_removed(tmp_path: Path) -> None:
    """
    Given two processes with turned clocks, one of which is killed, then that one leaves nothing, and the other is let be.
    """
    clock = Clock(tmp_path / "clock")
    with tidied():
        killed, lives = under(clock), under(clock)
        told = asked(killed), asked(lives)
        # While somebody uses the memory, no other chaos of this machine removes it.
        with memory(killed).open("rb") as file, mmap(file.fileno(), 0, access=ACCESS_READ):
            killed.kill()
            killed.communicate()
            assert [True, True] == shared(killed), f"it left nothing to be removed; the time was {told}"
    assert [False, False] == shared(killed)
    assert [True, True] == shared(lives)
    clock.turn(3600.0)
    while asked(lives) < told[1] + 3000.0:  # it looks at the file each second
        pass
    lives.communicate()
    assert (0, [False, False]) == (lives.returncode, shared(lives))


def test_what_was_there_before_stays(tmp_path: Path) -> None:
    """What is left of a process that had ended before is no business of ours."""
    with subprocess.Popen(["/bin/true"]) as ended:
        pass
    left = [tmp_path / f"faketime_shm_{ended.pid}", tmp_path / f"sem.faketime_sem_{ended.pid}"]
    with tidied(tmp_path):
        for file in left:
            file.touch()
        with tidied(tmp_path):
            pass
        assert [True, True] == [file.exists() for file in left]
    assert [False, False] == [file.exists() for file in left]
