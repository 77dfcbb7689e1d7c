"""
The process of one probe: its task comes on standard input, and what it finds goes to standard output. It ends with all that it has
started, if it leads a group of processes.
"""

import os
import resource
import signal
import sys
import time

import msgspec

from kettle.execution.site_probes.checks import ProbeTask, look


def main() -> None:
    """Run it, with the memory that it may have."""
    task = msgspec.json.decode(sys.stdin.buffer.read(), type=ProbeTask)
    most = task.probe.memory << 20
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    began = time.monotonic()
    found = look(task)
    told = msgspec.structs.replace(found, seconds=round(time.monotonic() - began, 3))
    sys.stdout.buffer.write(msgspec.json.encode(told))
    sys.stdout.buffer.flush()
    if (
        os.getpgrp() == os.getpid()
    ):  # what a program of the owner's has left running would be one more each time
        os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    main()
