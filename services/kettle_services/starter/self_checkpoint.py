"""
Self-checkpoints of one job: it ends with a special code, its files are saved, and it is started again.

While a checkpoint is being fetched no process of the job runs, so that the files do not change.  The report is repeated
until it is confirmed: the starter does not need to know whether there is a startd.
"""

import os
import time
from collections.abc import Callable
from typing import Final

import msgspec

from kettle.execution.attempts.messages import ReportMessage
from kettle.execution.job_environment.job_ad import JobAd
from kettle.execution.sandbox.directory import Mark, Sandbox
from kettle.execution.sandbox.output_files import Purpose, Results, collect
from kettle.execution.system.linux import boottime
from kettle.retry.backoff import Backoff
from kettle_services.starter.file_transfer.checkpoint_destination import Remote
from kettle_services.starter.reports.startd_connection import StartdConnection
from kettle_wire.attempts import Ending, Usage
from kettle_wire.codes import HoldCode
from kettle_wire.worker_reports import Body, Checkpointed, Report

_REPEATS: Final = Backoff(first=1.0, longest=60.0, spread=0.0)
_LONGEST_PAUSE: Final = 30.0
"""In shortest ones."""
_IDLE_CPU_S: Final = 1.0
"""What starting a program may take: with less it has done no work."""


class SelfCheckpoint:
    """
    The newest checkpoint of a job.  `report` makes a report of its arguments.

    Between two starts of the program are at least `pause` seconds, and more as long as it uses no CPU.
    """

    def __init__(self, job: JobAd, report: Callable[[Body], Report], pause: float) -> None:
        self._job = job
        self._make = report
        self._code = job.checkpoint_code
        self._number = 0
        self._said: Report | None = None
        self._repeats = 0
        self._repeat_at = 0.0
        self._shortest, self._between = pause, 0.0
        self._cpu = 0.0
        self._started = self._next_at = boottime()
        self.unsaved: Results | None = None
        """What is to be saved and is not yet, as far as we know."""

    @property
    def report(self) -> Report | None:
        """The report of what is to be saved and is not yet: a startd that has just started knows of none."""
        return self._said if self.unsaved is not None else None

    @property
    def goes_on(self) -> bool:
        """Whether the program is to be started again now."""
        if self.unsaved is not None or boottime() < self._next_at:
            return False
        self._started = boottime()
        return True

    def is_made(self, status: int | None) -> bool:
        """Whether the wait status of the program says that there is one."""
        return status is not None and os.waitstatus_to_exitcode(status) == self._code

    def take(
        self, sandbox: Sandbox, before: dict[str, Mark], usage: Usage, remote: Remote | None = None
    ) -> Ending | None:
        """
        Look at what is to be saved, and send it to its URL if it has one; why there is nothing to save, if the job did
        not make it.

        Raises what `collect` does, and `Remote.save`.
        """
        self._number += 1
        self._space(usage.user_cpu + usage.system_cpu)
        place = remote.place if remote is not None else ""
        results = collect(sandbox, self._job, before, code=Purpose.CHECKPOINT, place=place)
        if results.missing:
            names = ", ".join(results.missing)
            return Ending(
                code=HoldCode.FailedToCheckpoint,
                reason=f"the job did not make {names} for its checkpoint",
            )
        if remote is not None:
            results = remote.save(results)
        self.unsaved = results
        usage = msgspec.structs.replace(usage, sent=results.sent)
        made = Checkpointed(number=self._number, at=time.time(), usage=usage, outputs=results.files)
        self._said, self._repeats, self._repeat_at = self._make(made), 0, boottime()
        return None

    def _space(self, cpu: float) -> None:
        """Say when the program may be started next, from the CPU seconds of all its runs."""
        used, self._cpu = cpu - self._cpu, cpu
        longer = max(self._shortest, 2 * self._between) if used < _IDLE_CPU_S else self._shortest
        self._between = min(longer, _LONGEST_PAUSE * self._shortest)
        self._next_at = self._started + self._between

    def say(self, line: StartdConnection) -> None:
        """Send the report to the startd, if it is time to do so (again)."""
        if self.report is not None and boottime() >= self._repeat_at:
            self._repeat_at = boottime() + _REPEATS.length(self._repeats)
            self._repeats += 1
            line.send(ReportMessage(self.report))

    def timeout_ms(self) -> int:
        """When it is time for that, or for the program to go on."""
        at = self._next_at if self.unsaved is None else self._repeat_at
        return int(max(0.0, at - boottime()) * 1000) + 1

    def confirm(self, number: int) -> None:
        """It is saved."""
        if number == self._number:
            self.unsaved = None
