"""The jobs that work for a task queue: ordinary ones, described as everybody describes jobs."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from kettle.classad.printing import quoted_string
from kettle_wire.session_attributes import TASK_QUEUE

PROGRAM: Final = "kettle_task_worker.py"
LANE: Final = "kettle_task_lane.py"
_STARTS: Final = 20
"""A worker that a signal has ended begins again so often."""
_NO_INTERPRETER: Final = 78
"""Exit code of a worker whose lanes cannot be begun (EX_CONFIG), as in `kettle_task_worker.py`."""


class WorkerJobs(msgspec.Struct, frozen=True, kw_only=True):
    """How many jobs work for a queue, and what each takes."""

    workers: int = 1
    cpus: int = 1
    """Of each, and as many tasks run at once in it."""
    memory: int = 512
    """MiB."""
    disk: int = 1024
    """MiB."""
    idle: float = 60.0
    """Seconds without tasks after which a worker ends and its slot is free."""
    python: str = ""
    """The interpreter on the machine that calls functions; empty: that of the worker, `python3` of its PATH."""
    more: Sequence[str] = ()
    """Lines of a submit description that are put behind these."""


def description(queue: str, name: str, jobs: WorkerJobs) -> str:
    """
    The submit description of the workers of a queue.

    A worker that a signal ends begins again, as one does whose memory was too small for a while; one that ends by itself is
    done.  One that cannot run the interpreter that its lanes are to have has no tasks, and is held.
    """
    place = Path(__file__).parent
    words = ["--lanes", str(jobs.cpus), "--idle", f"{jobs.idle:g}"]
    holds: list[str] = []
    if jobs.python:
        words += ["--python", jobs.python]
        reason = quoted_string(f"{jobs.python}, which is to run the tasks, cannot be run on its machine")
        holds = [f"on_exit_hold = ExitCode =?= {_NO_INTERPRETER}", f"on_exit_hold_reason = {reason}"]
    quoted = " ".join("'" + each.replace("'", "''") + "'" for each in words).replace('"', '""')
    lines = [
        f"executable = {place / PROGRAM}",
        f'arguments = "{quoted}"',
        f"transfer_input_files = {place / LANE}",
        "should_transfer_files = YES",
        "when_to_transfer_output = ON_EXIT",
        'transfer_output_files = ""',
        f"request_cpus = {jobs.cpus}",
        f"request_memory = {jobs.memory}",
        f"request_disk = {jobs.disk * 1024}",
        f"batch_name = {name}",
        f"on_exit_remove = (ExitBySignal =!= true) || (NumJobStarts >= {_STARTS})",
        *holds,
        f'My.{TASK_QUEUE} = "{queue}"',
        *jobs.more,
        f"queue {jobs.workers}",
    ]
    return "\n".join(lines) + "\n"
