"""
condor_submit -interactive: a job that waits for its visitor and ends with the visit.

The job is a shell that waits until the visitor's has begun, and then for the lock that the visitor's shell holds: it
ends with it, also when the visitor is cut off.
"""

import os
import sys
from typing import TYPE_CHECKING, Final

from kettle.client.connections.condor_config import CondorConfig
from kettle_services.condor.connections.pool_client import client_of
from kettle_wire.jobs import JobId

if TYPE_CHECKING:
    from kettle.client.jobs.access import AttemptAccess

PATIENCE_S: Final = 180
"""Seconds that the job waits for its visitor."""

_WAITS: Final = (
    f"n=0; until [ -e .session ]; do n=$((n+1)); [ $n -gt {PATIENCE_S} ] && exit 0; sleep 1; done; "
    "flock .session.lock true; rm -f .session .session.lock"
)
_VISITS: Final = "exec 9>.session.lock; flock 9; : > .session; "

LINES: Final = (
    "+InteractiveJob = true",
    "shell =",
    "executable = /bin/sh",
    "transfer_executable = false",
    "arguments2 =",
    f"arguments = \"-c '{_WAITS}'\"",
)
"""What a description says as well, to the end: the program is another one, and all else is as it was."""
DESCRIPTION: Final = "description = interactive job\nqueue\n"
"""What is submitted when nothing is named."""


def visit(job: JobId, *, pool: str, name: str) -> int:
    """
    Be in the place of the job's program, to the end; the exit status of the shell.

    An interrupted wait takes the job out of the queue.
    """
    # Most submissions are none: what an event loop takes is loaded only here.
    from kettle.client.jobs.side_program import SHELL, run_beside
    from kettle_services.condor.connections.job_access import visiting

    knobs = CondorConfig(os.environ)
    tty = sys.stdin.isatty()

    async def work(access: "AttemptAccess") -> int:
        if tty:
            sys.stderr.write(f"Welcome to {access.slot}!\n")
        return await run_beside(access, ["sh", "-c", _VISITS + SHELL], _write, tty=tty, listens=True)

    sys.stdout.write("Waiting for job to start...\n")
    sys.stdout.flush()
    try:
        return visiting(knobs, job, work, patient=True, pool=pool, name=name)
    except KeyboardInterrupt:
        from kettle.client import select

        client = client_of(knobs, pool=pool, name=name)
        client.run(lambda one: one.act("remove", select(str(job)), "Interrupted by user"))
        raise


def _write(descriptor: int, data: bytes) -> None:
    stream = sys.stderr if descriptor == 2 else sys.stdout
    stream.buffer.write(data)
    stream.buffer.flush()
