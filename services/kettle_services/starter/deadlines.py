"""
What falls due for a job by the clock alone: its lease, its own limits, the end of its patience, looks and measurements.

All times are on `boottime`.
"""

import math
from collections.abc import Iterator
from typing import Final

from kettle.execution.attempts.job_spec import JobSpec
from kettle.execution.job_environment.job_ad import JobAd
from kettle.execution.system.linux import boottime
from kettle_services.starter.reports.endings import limits, lost_lease
from kettle_wire.attempts import Ending

_FIRST_MEASURE_S: Final = 8.0
"""After so long, or after the pause between two measurements if that is shorter, the first one is made."""


class Deadlines:
    """The deadlines of one attempt."""

    def __init__(self, spec: JobSpec, job: JobAd) -> None:
        self._spec = spec
        self._job = job
        self._lease = spec.deadline
        self._limits: list[tuple[float, Ending]] = []
        self._kill_at = math.inf
        self._look_at = boottime() + spec.monitor_interval
        self._measure_at = boottime() + min(_FIRST_MEASURE_S, spec.measure_interval)

    def renew(self, deadline: float) -> None:
        """The lease goes on; it never becomes shorter."""
        self._lease = max(self._lease, deadline)

    def runs(self) -> None:
        """The job's program is executed: what it may take counts from now."""
        self._limits = limits(self._job, self._spec.began, boottime())

    def rests(self) -> None:
        """The program has ended and is to be started again: only what the whole attempt may take counts."""
        self._limits = limits(self._job, self._spec.began, math.inf)

    def asked_to_end(self) -> None:
        """It is killed when its time for that is over."""
        self._kill_at = boottime() + self._job.kill_timeout(self._spec.kill_timeout)

    def killed(self) -> None:
        """There is nothing to wait for any more."""
        self._kill_at = math.inf

    def next(self, *, ends: bool) -> float:
        """
        When to look again; `ends`: the job is being ended already, and whatever else falls due does not count.
        """
        if ends:
            return min(self._look_at, self._kill_at)
        return min(self._look_at, self._kill_at, self._lease, *(at for at, _ in self._limits))

    def is_kill_due(self) -> bool:
        """Whether the job has had its time to end; true once."""
        due = boottime() >= self._kill_at
        if due:
            self._kill_at = math.inf
        return due

    def over(self) -> Iterator[tuple[Ending, bool]]:
        """Why the job has to end now, and whether at once."""
        now = boottime()
        if now >= self._lease:
            yield lost_lease(), True
        for at, ending in self._limits:
            if now >= at:
                yield ending, False

    def is_look_due(self) -> bool:
        """Whether it is time to look at what the job uses."""
        return boottime() >= self._look_at

    def looked(self) -> None:
        """It was looked at."""
        self._look_at = boottime() + self._spec.monitor_interval

    def is_measurement_due(self) -> bool:
        """Whether it is time to report the usage; true once."""
        due = boottime() >= self._measure_at
        if due:
            self._measure_at = boottime() + self._spec.measure_interval
        return due
