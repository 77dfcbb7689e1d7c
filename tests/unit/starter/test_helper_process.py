"""Work beside the job, and what it leaves behind."""

import os
import signal
from collections.abc import Callable
from pathlib import Path

from kettle_services.starter.execution.helper_process import HelperProcess


def test_nobody_waits_for_what_an_errand_left_behind(tmp_path: Path) -> None:
    """
    Given an errand that dies and leaves a process which holds its pipe, when it is asked, then it has said nothing.
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
