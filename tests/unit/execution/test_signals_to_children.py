"""A signal reaches a child of ours, and nobody who was given its number when it had ended."""

import signal
import subprocess
import sys

from kettle.execution.system.linux import end_group, signal_child, signal_process, start_time

SLEEPS = [sys.executable, "-c", "import time; print('sleeps', flush=True); time.sleep(600)"]


def test_a_child_gets_it() -> None:
    """Until it has ended; it need not be reaped for that."""
    with subprocess.Popen(SLEEPS, stdout=subprocess.PIPE) as child:
        assert signal_child(child.pid, signal.SIGKILL)
        assert child.stdout is not None
        assert b"" == child.stdout.read().removeprefix(b"sleeps\n")
        while start_time(child.pid) is not None:  # a zombie in a moment
            pass
        assert not signal_child(child.pid, signal.SIGKILL)
        assert -signal.SIGKILL == child.wait()
        assert not signal_child(child.pid, signal.SIGKILL)


def test_a_process_that_is_no_child_does_not() -> None:
    """Such as one that has the number of a child that was."""
    program = f"import subprocess, sys; made = subprocess.Popen({SLEEPS!r}); print(made.pid, flush=True); made.wait()"
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        said = {child.stdout.readline().strip() for _ in range(2)} - {"sleeps"}
        grandchild = int(said.pop())
        try:
            assert not signal_child(grandchild, signal.SIGKILL)
            end_group(grandchild)
            assert start_time(grandchild) is not None
        finally:
            signal_process(grandchild, signal.SIGKILL)
    assert 0 == child.returncode


def test_a_group_ends_with_its_leader_and_not_when_somebody_has_waited_for_it() -> None:
    """A leader that has ended and is not reaped keeps the number of its group."""
    program = f"import subprocess; subprocess.Popen({SLEEPS!r})"
    leader = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, start_new_session=True, text=True
    )
    with leader:
        assert leader.stdout is not None
        assert "sleeps\n" == leader.stdout.readline()
        while start_time(leader.pid) is not None:
            pass
        end_group(leader.pid)
        assert "" == leader.stdout.read(), "what it has left is over"
        assert 0 == leader.wait()
    with subprocess.Popen(SLEEPS, stdout=subprocess.PIPE, start_new_session=True) as left:
        end_group(leader.pid)
        assert left.poll() is None
        end_group(left.pid)
        assert -signal.SIGKILL == left.wait()
