"""Jobs that come into the queue when those that they wait for have ended."""

from array import array
from functools import partial

from kettle.matchmaking import Tree
from kettle_services.simulator.domain.clock import COMES
from kettle_services.simulator.domain.period import Happening
from kettle_services.simulator.domain.simulation import PeriodSimulation
from kettle_services.simulator.invented.period_of_workload import SHARD, KnownDurations, submission
from kettle_services.simulator.workloads.dependencies import Dependencies, OpenParents
from kettle_services.simulator.workloads.workload import Workload


class WaitingJobs:
    """The jobs of one workload that wait for others; each is a cluster of its own."""

    def __init__(
        self,
        workload: Workload,
        waits: Dependencies,
        simulation: PeriodSimulation,
        durations: KnownDurations,
        groups: Tree,
    ) -> None:
        self._workload, self._parents = workload, OpenParents(waits)
        self._simulation, self._durations, self._groups = simulation, durations, groups
        self.submitted = array("q", [-1]) * len(workload)
        """When each job came into the queue, in microseconds; -1: not yet."""
        for job in self._parents.ready:
            self.submitted[job] = int(workload.submitted[job])
        self.last = 0
        """When the last of them comes, as far as that is known."""

    def ended(self, job: int, now: int) -> None:
        """One has ended; those that waited for it alone come now, or at their earliest time."""
        for child in self._parents.ended(job):
            at = max(now + self._parents.lag(child), int(self._workload.submitted[child]))
            self.last = max(self.last, at)
            self._simulation.clock.at(at, partial(self._submit, child, at), turn=COMES)

    def _submit(self, job: int, at: int) -> None:
        cluster = self._durations.submitted(job)
        event = submission(self._workload, job, job + 1, cluster, self._groups)
        self._simulation.period.arrivals[SHARD].note(event, at)
        self.submitted[job] = at
        self._simulation.happens(Happening(at, SHARD, f"cluster/{cluster}", event))
