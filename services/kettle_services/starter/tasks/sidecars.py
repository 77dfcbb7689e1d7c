"""Tasks that run beside the others: begun in their order, and ended together."""

import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import msgspec

from kettle.execution.job_environment.job_ad import JobAd
from kettle.execution.system.linux import boottime, start_time
from kettle_services.starter.execution.process_tree import ProcessTree
from kettle_services.starter.tasks.steps import StepLog
from kettle_services.starter.tasks.task_processes import TaskProcesses
from kettle_wire.tasks import Step

if TYPE_CHECKING:
    from kettle.execution.containers.job_container import JobContainer

_PATIENCE_S: Final = 5.0
"""How long they may take to end, if the job's own limit is not shorter."""


class Sidecar(msgspec.Struct, frozen=True):
    """One that has begun."""

    pid: int
    began: Step
    container: "JobContainer | None" = None
    started: int | None = None
    """When its process began, clock ticks since boot: another one may be given its number."""


class Sidecars:
    """The sidecars of one job."""

    def __init__(self, steps: StepLog) -> None:
        self._steps = steps
        self._running: list[Sidecar] = []

    def living(self, processes: TaskProcesses) -> list[int]:
        """The processes of those that have not ended."""
        return [sidecar.pid for sidecar in self._running if _lives(processes, sidecar)]

    def add(self, sidecar: Sidecar, processes: TaskProcesses) -> None:
        """One has begun: its end is to be noticed among those of `processes`."""
        processes.visitors[sidecar.pid] = None
        self._running.append(msgspec.structs.replace(sidecar, started=start_time(sidecar.pid)))

    def end(
        self,
        processes: TaskProcesses,
        job: JobAd,
        limit: float,
        listen: Callable[[ProcessTree, int, float], bool],
    ) -> None:
        """
        Ask all to end, and kill what is left after a while.  `listen` waits for a descriptor until a time, and hears orders.
        """
        until = boottime() + min(_PATIENCE_S, job.kill_timeout(limit))
        for pid in self.living(processes):
            processes.signal_family(pid, signal.SIGTERM)
        for sidecar in self._running:
            with suppress(ProcessLookupError):
                handle = os.pidfd_open(sidecar.pid)
                try:
                    while _lives(processes, sidecar) and boottime() < until:
                        listen(processes, handle, until)
                        processes.reap()
                finally:
                    os.close(handle)
        processes.kill_all()
        self.over(processes)

    def over(self, processes: TaskProcesses) -> None:
        """None of their processes is left: say how each has ended."""
        for sidecar in self._running:
            self._steps.add(_ended(sidecar, processes))
            if sidecar.container is not None:
                sidecar.container.clear()
        self._running.clear()


def _lives(processes: TaskProcesses, sidecar: Sidecar) -> bool:
    """
    Whether its process has not ended.

    The kernel collects those that end while an image is prepared, and nobody sees the end of these: their numbers are free.
    """
    if processes.visitors.get(sidecar.pid) is not None or sidecar.started is None:
        return False
    return start_time(sidecar.pid) == sidecar.started


def _ended(sidecar: Sidecar, processes: TaskProcesses) -> Step:
    status = processes.visitors.pop(sidecar.pid, None)
    code = os.waitstatus_to_exitcode(status) if status is not None else None
    return msgspec.structs.replace(
        sidecar.began,
        outcome="done",
        ended=time.time(),
        code=code if code is not None and code >= 0 else None,
        signal=-code if code is not None and code < 0 else None,
    )
