"""The steps of one attempt, reported as they come: at most once a second, all of them each time."""

import os
import time
from collections.abc import Callable
from typing import Final

import msgspec

from kettle.execution.system.linux import boottime
from kettle_services.starter.tasks.task_processes import TaskProcesses
from kettle_wire.tasks import Step
from kettle_wire.worker_reports import Stepped

_BETWEEN_S: Final = 1.0
_LONGEST_REASON: Final = 300
_LONGEST_MS: Final = 3_600_000


class StepLog:
    """What has happened; `tell` passes it on, and returns whether somebody was there."""

    def __init__(self, tell: Callable[[Stepped], bool]) -> None:
        self._tell = tell
        self.all: list[Step] = []
        self._told = 0
        self._next_at = 0.0

    def add(self, step: Step) -> None:
        """Something has happened.  All steps have to fit into one message, so reasons are short."""
        if len(step.reason) > _LONGEST_REASON:
            step = msgspec.structs.replace(step, reason=f"{step.reason[:_LONGEST_REASON]} ...")
        self.all.append(step)
        self.say()

    def say(self) -> None:
        """Report what was not reported yet, if it is time."""
        if self._told < len(self.all) and boottime() >= self._next_at:
            self._next_at = boottime() + _BETWEEN_S
            if self._tell(Stepped(steps=list(self.all))):
                self._told = len(self.all)

    def timeout_ms(self) -> int:
        """When it is."""
        if self._told == len(self.all):
            return _LONGEST_MS
        return int(max(0.0, self._next_at - boottime()) * 1000) + 1


def at_end(began: Step, processes: TaskProcesses, reason: str) -> Step:
    """The end of a task; `reason`: why somebody has ended it."""
    code = os.waitstatus_to_exitcode(processes.status) if processes.status is not None else None
    spent = processes.spent
    return msgspec.structs.replace(
        began,
        outcome="ended" if reason else "done" if code == 0 else "failed",
        ended=time.time(),
        code=code if code is not None and code >= 0 else None,
        signal=-code if code is not None and code < 0 else None,
        user_cpu=round(spent.ru_utime, 6) if spent is not None else 0.0,
        system_cpu=round(spent.ru_stime, 6) if spent is not None else 0.0,
        memory_kib=spent.ru_maxrss if spent is not None else 0,
        reason=reason,
    )
