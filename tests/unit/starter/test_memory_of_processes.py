"""What a job without a control group has in memory: what processes share counts once."""

import json
import subprocess
import sys
from typing import Final

from kettle.execution.system.linux import proportional_kib

MIB: Final = 64
CHILDREN: Final = 4
JOB: Final = f"""
import os, sys
held = bytearray({MIB} << 20)
for page in range(0, len(held), 4096):
    held[page] = 1
waits, ends = os.pipe()
children = []
for _ in range({CHILDREN}):
    pid = os.fork()
    if pid == 0:
        os.close(ends)
        os.read(waits, 1)
        os._exit(0)
    children.append(pid)
sys.stdout.write("ready\\n")
sys.stdout.flush()
sys.stdin.read()
os.close(ends)
for pid in children:
    os.waitpid(pid, 0)
"""
STARTER: Final = f"""
import json, subprocess, sys
from kettle.execution.system.linux import descendants_of, resident_kib
from kettle_services.starter.execution.process_tree import ProcessTree
import os
job = subprocess.Popen([sys.executable, "-c", {JOB!r}], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
job.stdout.readline()
tree = ProcessTree(job.pid, None)
print(json.dumps([tree.measure(), tree.measured_well, sum(map(resident_kib, descendants_of(os.getpid())))]))
job.stdin.close()
job.wait()
"""


def test_processes_that_share_memory_have_it_once() -> None:
    """The proportional sets of forked processes add up to what is there, their resident sets to much more."""
    said = subprocess.run([sys.executable, "-c", STARTER], check=True, capture_output=True, text=True).stdout
    measured, well, added = json.loads(said)
    assert well
    assert MIB << 10 < measured < 2 * MIB << 10
    assert added > CHILDREN * MIB << 10


def test_a_process_that_has_ended_has_nothing() -> None:
    ended = subprocess.Popen(["/bin/true"])
    ended.wait()
    assert 0 == proportional_kib(ended.pid)
