"""
Jobs that are submitted while a simulation runs: when the ends of those that they wait for have been reported.
"""

from array import array
from collections.abc import Callable
from heapq import heapify, heappop, heappush
from typing import Final

from kettle_services.simulator.workloads.dependencies import Dependencies, OpenParents
from kettle_services.simulator.workloads.workload import Workload

NEVER: Final = 1 << 62
"""Later than anything."""

Submit = Callable[[int, int], object]
"""Of a job of the workload, at a time."""


class DependentJobs:
    """
    Who submits a workload, some of whose jobs wait for others.

    At one moment, jobs are submitted in the order of the workload; the pool has its own numbers for them, in the order of submission.
    """

    def __init__(self, workload: Workload, waits: Dependencies, submit: Submit) -> None:
        self._submit = submit
        self._earliest = workload.submitted.tolist()
        self._parents = OpenParents(waits)
        self._ready = [(self._earliest[job], job) for job in self._parents.ready]
        heapify(self._ready)
        self.jobs = array("q")
        """For each number of the pool, the place of the job in the workload."""

    @property
    def due(self) -> int:
        """When the next job is submitted, as far as that is known."""
        return self._ready[0][0] if self._ready else NEVER

    def submit_next(self) -> None:
        """It is time."""
        at, job = heappop(self._ready)
        self.jobs.append(job)
        self._submit(at, job)

    def reported(self, job: int, now: int) -> None:
        """The submitter hears of the end of a job, by its number in the pool."""
        for child in self._parents.ended(self.jobs[job]):
            heappush(self._ready, (max(now + self._parents.lag(child), self._earliest[child]), child))
