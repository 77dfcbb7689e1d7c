"""The jobs of one starter's process, one after the other."""

import gc
import socket
from typing import Final

from kettle.execution.attempts.messages import RunJob
from kettle_services.starter.reports.final import StarterProcess
from kettle_services.starter.reports.startd_connection import StartdConnection
from kettle_services.starter.starter import Starter
from kettle_wire.tasks import ATTRIBUTE

_JOBS: Final = 100
"""How many one process runs at most."""


def run_starter(sock: socket.socket, lifeline_fd: int) -> None:
    """
    Be a starter: wait for the order on `sock`, carry it out, and rest until the next one.

    Most of what a short job costs is a new process: its pages are copied one by one as they are touched.  One whose job
    simply ended, and left nothing, is as good as new; any other ends with its job.
    """
    supervisor = StarterProcess(StartdConnection(sock), lifeline_fd)
    for left in reversed(range(_JOBS)):
        if not _run_one(supervisor, last=not left):
            break
        gc.collect(
            0
        )  # nobody else does: what belonged to that job is nothing to the next one, and all that is young
    supervisor.close()


def _run_one(supervisor: StarterProcess, *, last: bool) -> bool:
    """Whether there is to be another one; nothing of this one is kept meanwhile."""
    order = supervisor.line.order(supervisor.lifeline_fd)
    return order is not None and _starter(supervisor, order, last=last).run_job()


def _starter(supervisor: StarterProcess, order: RunJob, *, last: bool) -> Starter:
    """Of a job of several tasks, one that runs these."""
    if ATTRIBUTE not in order.spec.ad:
        return Starter(supervisor, order, last=last)
    # Rarely needed, and each page costs memory.
    from kettle_services.starter.tasks.task_starter import TaskStarter

    return TaskStarter(supervisor, order, last=last)
