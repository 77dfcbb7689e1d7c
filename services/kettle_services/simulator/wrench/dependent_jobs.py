"""Jobs that are submitted while a simulation runs: when the ends of those that they wait for have been reported."""

from array import array
from collections.abc import Callable
from heapq import heapify, heappop, heappush
from typing import Final

from kettle_services.simulator.workloads.dependencies import Dependencies
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
        self._open = waits.counts.tolist()
        self._bounds, self._children = (column.tolist() for column in waits.children())
        self._ready = [(at, job) for job, at in enumerate(self._earliest) if not self._open[job]]
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
        done = self.jobs[job]
        for child in self._children[self._bounds[done] : self._bounds[done + 1]]:
            self._open[child] -= 1
            if not self._open[child]:
                heappush(self._ready, (max(now, self._earliest[child]), child))
