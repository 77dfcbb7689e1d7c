"""The jobs of a queue that may run now."""

from typing import Final

from kettle_services.schedd.domain.jobs import universes
from kettle_services.schedd.domain.queue.alike import JobsAlike
from kettle_services.schedd.domain.queue.routing import Routing, route_of
from kettle_services.schedd.domain.queue.runnable import Order, Runnable
from kettle_services.schedd.domain.queue.waiting import DelayedJobs
from kettle_wire.jobs import JobId

Requests = dict[str, dict[int, Runnable]]
"""Submitter -> autocluster -> jobs; nothing without a job."""


class JobDemand:
    """
    What is asked for, by where the jobs would run.

    A job that is runnable is in one of four places: it cools down, it awaits its route, it waits for its own time, or it is here.
    """

    def __init__(self, waiting: DelayedJobs, routing: Routing) -> None:
        self._waiting = waiting
        self._routing = routing
        self.on_machines: Final[Requests] = {}
        """On machines that are matched."""
        self.at_home: Final[Requests] = {}
        """On the machine of the schedd."""
        self.in_batch: Final[Requests] = {}
        """In a batch system."""
        self._unmatched = {**dict.fromkeys(universes.AT_HOME, self.at_home), universes.GRID: self.in_batch}

    # -- questions ---------------------------------------------------------------------------------------------------

    def requests(self, submitter: str) -> list[tuple[Order, JobId, int, int]]:
        """(order, first job, autocluster, count) of each autocluster with jobs for machines, in order."""
        found = [
            (best[0], best[1], autocluster, len(jobs))
            for autocluster, jobs in self.on_machines.get(submitter, {}).items()
            if (best := jobs.best()) is not None
        ]
        return sorted(found)

    def next_job(self, submitter: str, autocluster: int) -> JobId | None:
        """The job of the autocluster that should run first."""
        best = self._jobs(submitter, autocluster).best()
        return best[1] if best is not None else None

    def count(self, submitter: str, autocluster: int) -> int:
        """How many jobs of the autocluster may run now."""
        return len(self._jobs(submitter, autocluster))

    def _jobs(self, submitter: str, autocluster: int) -> Runnable:
        for requests in (self.on_machines, self.at_home, self.in_batch):
            if (found := requests.get(submitter, {}).get(autocluster)) is not None:
                return found
        return Runnable()

    def waits(self, job: JobId) -> bool:
        """Whether a job that is runnable has to wait, or starts at a time of its own."""
        waiting = self._waiting
        return job in waiting.cooling or job in waiting.deferred or job in self._routing.awaiting

    def offers(self, job: JobId) -> bool:
        """Whether a job that is runnable is here."""
        return not self.waits(job) or self._waiting.deferred.get(job, False)

    # -- changes -----------------------------------------------------------------------------------------------------

    def enter(self, alike: JobsAlike) -> None:
        """Have jobs wait, or offer them, if they are runnable."""
        state = alike.entry.job
        if state.runnable and state.cooling:
            self._waiting.cooling.update(alike.jobs)
        elif state.runnable:
            self._ready(alike)

    def leave(self, alike: JobsAlike) -> None:
        """Inverse of `enter`, whatever time has made of them meanwhile."""
        if not alike.entry.job.runnable:
            return
        waiting, awaiting = self._waiting, self._routing.awaiting
        if waiting.cooling or waiting.deferred or awaiting:
            offered = [job for job in alike.jobs if not (waiting.leave(job) or self._routing.release(job))]
            if offered:
                self.withdraw(alike.some(offered))
        else:
            self.withdraw(alike)

    def cooled(self, alike: JobsAlike) -> None:
        """Some jobs have waited long enough after their failures."""
        if jobs := [job for job in alike.jobs if self._waiting.cool(job)]:
            self._ready(alike.some(jobs))

    def due(self, alike: JobsAlike) -> None:
        """The time of some jobs that waited for it has come."""
        if jobs := [job for job in alike.jobs if self._waiting.due(job)]:
            self.offer(alike.some(jobs))

    def _ready(self, alike: JobsAlike) -> None:
        jobs = alike.jobs
        if alike.cluster.routed and not route_of(alike.entry):
            jobs = self._routing.hold(alike)
        if alike.cluster.timed:
            self._waiting.defer(jobs)
        elif jobs:
            self.offer(alike.some(jobs))

    def offer(self, alike: JobsAlike) -> None:
        """Jobs may run from now on."""
        for universe, submitter, autocluster, jobs in alike.requests():
            requests = self._unmatched.get(universe, self.on_machines)
            runnable = requests.setdefault(submitter, {}).setdefault(autocluster, Runnable())
            for some, priority in alike.priorities(jobs):
                runnable.add(some, priority)

    def withdraw(self, alike: JobsAlike) -> None:
        """Inverse of `offer`."""
        for universe, submitter, autocluster, jobs in alike.requests():
            requests = self._unmatched.get(universe, self.on_machines)
            runnable = requests[submitter][autocluster]
            for some, priority in alike.priorities(jobs):
                runnable.discard(some, priority)
            if not runnable:
                del requests[submitter][autocluster]
                if not requests[submitter]:
                    del requests[submitter]
