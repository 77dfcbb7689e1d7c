"""A process of the starter's own beside those of the job."""

import os
import signal
import subprocess
import sys
from contextlib import suppress
from typing import Final

import pytest

from kettle_services.starter.execution.process_tree import empty_process_tree

SCRIPT: Final = """\
import os, subprocess, time
from kettle.execution.system.linux import become_subreaper
from kettle_services.starter.execution.process_tree import ProcessTree
become_subreaper()
ours = subprocess.Popen(["sh", "-c", "sleep 600 & wait"], stdout=subprocess.DEVNULL)
job = subprocess.Popen(["sh", "-c", "trap '' TERM; (sleep 600 &) ; echo; sleep 600"], stdout=subprocess.PIPE)
job.stdout.readline()
tree = ProcessTree(job.pid, None)
tree.besides = {ours.pid}
later = tree.successor(job.pid)
assert later.besides is tree.besides
assert not tree.reap()
tree.measure()
tree.suspend()
assert open(f"/proc/{ours.pid}/stat").read().split()[2] not in "Tt"
tree.kill_all()
assert tree.status is not None and os.waitstatus_to_exitcode(tree.status) == -9
assert ours.poll() is None
assert tree.reap()
ours.kill()
tree.besides.clear()
tree.kill_all()
print("done")
"""


def test_it_is_not_the_jobs() -> None:
    """It is neither stopped nor killed with the job, nobody waits for its end, and all the rest is ended."""
    with subprocess.Popen(
        [sys.executable, "-c", SCRIPT],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as script:
        try:
            assert script.stdout is not None
            said = script.stdout.readline()
        finally:
            with suppress(ProcessLookupError):
                os.killpg(script.pid, signal.SIGKILL)  # what it has left, if it has not come to its end
        assert ("done\n", "") == (said, script.communicate()[1])


def test_who_is_no_starter_ends_nobody() -> None:
    """What descends from a process that was not made for a job is none of a job's."""
    bystander = subprocess.Popen(["sleep", "600"])
    try:
        with pytest.raises(RuntimeError, match="no starter"):
            empty_process_tree(None).kill_all()
        assert bystander.poll() is None
    finally:
        bystander.kill()
        bystander.wait()
