"""A process of the starter's own beside those of the job."""

import subprocess
import sys
from typing import Final

SCRIPT: Final = """\
import os, subprocess, time
from kettle.execution.system.linux import become_subreaper
from kettle_services.starter.execution.process_tree import ProcessTree
become_subreaper()
ours = subprocess.Popen(["sh", "-c", "sleep 600 & wait"])
job = subprocess.Popen(["sh", "-c", "trap '' TERM; (sleep 600 &) ; echo; sleep 600"], stdout=subprocess.PIPE)
job.stdout.readline()
tree = ProcessTree(job.pid, None)
tree.besides = {ours.pid}
later = tree.successor(job.pid)
assert later.besides is tree.besides
assert not tree.reap()
tree.measure()
tree.suspend()
assert open(f"/proc/{ours.pid}/stat").read().split()[2] == "S"
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
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, check=False, text=True, timeout=60
    )
    assert (done.stdout, done.stderr) == ("done\n", "")
