"""Work beside the job, and what it leaves behind."""

import os
import select
import signal
from collections.abc import Callable
from pathlib import Path

from kettle_services.starter.execution.helper_process import HelperProcess

_PATIENCE_MS = 20_000


def test_nobody_waits_for_what_an_errand_left_behind(tmp_path: Path) -> None:
    """
    Given an errand that dies and leaves a process which holds the file of its outcome, when it is asked, then it has said nothing.
    """
    left = tmp_path / "left"

    def work(become: Callable[[], None]) -> bytes:
        del become
        if (pid := os.fork()) == 0:
            signal.pause()
        left.write_text(str(pid))
        raise RuntimeError("it fails")

    helper = HelperProcess(work, prepare=lambda: None, account=None, cgroup=None, directory=str(tmp_path))
    os.waitpid(helper.pid, 0)
    try:
        assert b"" == helper.outcome()
    finally:
        os.kill(int(left.read_text()), signal.SIGKILL)
        helper.close()


def test_an_errand_says_its_outcome(tmp_path: Path) -> None:
    """What its work returns."""
    helper = HelperProcess(
        lambda become: b"done", prepare=lambda: None, account=None, cgroup=None, directory=str(tmp_path)
    )
    os.waitpid(helper.pid, 0)

    assert b"done" == helper.outcome()
    helper.close()


def test_an_outcome_may_be_longer_than_a_pipe_holds(tmp_path: Path) -> None:
    """
    Given an outcome that nobody reads before the process has ended, when it is long, then the process ends, and the
    outcome is all of it.
    """
    helper = HelperProcess(
        lambda become: b"x" * 200_000,
        prepare=lambda: None,
        account=None,
        cgroup=None,
        directory=str(tmp_path),
    )
    handle = os.pidfd_open(helper.pid)
    poll = select.poll()
    poll.register(handle, select.POLLIN)
    try:
        assert [(handle, select.POLLIN)] == poll.poll(_PATIENCE_MS)
        assert b"x" * 200_000 == helper.outcome()
    finally:
        os.kill(helper.pid, signal.SIGKILL)
        os.waitpid(helper.pid, 0)
        os.close(handle)
        helper.close()
