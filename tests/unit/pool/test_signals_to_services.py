"""A signal to a service of a pool reaches a process of this pool, or none."""

import os
import signal
import subprocess
import sys
from pathlib import Path

from kettle.pool import processes

SLEEPS = [sys.executable, "-c", "import time; time.sleep(600)"]


def test_a_server_that_descends_from_the_master_gets_it() -> None:
    """It carries no mark."""
    with subprocess.Popen(SLEEPS) as server:
        assert processes.signal_service(server.pid, signal.SIGTERM, "one", master=os.getpid())
        assert -signal.SIGTERM == server.wait()


def test_only_a_process_with_the_mark_of_the_pool_gets_it() -> None:
    """A number that the state of the pool still has may be another process's by now."""
    environ = dict(os.environ)
    with (
        subprocess.Popen(SLEEPS, env=environ | processes.mark("one")) as service,
        subprocess.Popen(SLEEPS, env=environ | processes.mark("other")) as of_another,
        subprocess.Popen(SLEEPS, env=environ) as stranger,
    ):
        while any(b"time.sleep" not in shown(each.pid) for each in (service, of_another, stranger)):
            pass
        for each in (service, of_another, stranger):
            assert (each is service) == processes.signal_service(
                each.pid, signal.SIGTERM, "one", master=service.pid
            )
        assert -signal.SIGTERM == service.wait()
        assert not processes.signal_service(service.pid, signal.SIGTERM, "one", master=service.pid)
        assert of_another.poll() is None
        assert stranger.poll() is None
        of_another.kill()
        stranger.kill()


def shown(pid: int) -> bytes:
    """The words of a process."""
    return Path(f"/proc/{pid}/cmdline").read_bytes()
