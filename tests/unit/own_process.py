"""
Tests of what ends, or waits for, whatever descends from its process, as a starter does: each in a process of its own.

In the process of all tests these would be the servers and commands of other tests, too.
"""

import functools
import os
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import ParamSpec

from kettle.execution.system.linux import become_subreaper

P = ParamSpec("P")


def alone(test: Callable[P, None]) -> Callable[P, None]:
    """Run a test in a fork, which is the subreaper of what it starts."""

    @functools.wraps(test)
    def forked(*given: P.args, **named: P.kwargs) -> None:
        child = os.fork()
        if child == 0:
            status = 1
            try:
                become_subreaper()
                test(*given, **named)
                status = 0
            except BaseException:  # noqa: BLE001 - the runner of this process
                traceback.print_exc()
            finally:
                sys.stderr.flush()
                os._exit(status)
        assert 0 == os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), "what went wrong is in the errors"

    return forked


@contextmanager
def bystander() -> Generator[None]:
    """A process of another test, as these share theirs: it is not ended, and nobody else waits for it."""
    with subprocess.Popen(["/bin/sleep", "600"]) as other:
        yield
        lives = other.poll() is None
        other.kill()
    assert lives
    assert -signal.SIGKILL == other.returncode
