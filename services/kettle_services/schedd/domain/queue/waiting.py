"""Jobs of a queue that could run but for the time."""

from typing import Final

from kettle_wire.jobs import JobId


class DelayedJobs:
    """They are in no demand until somebody who has a clock says that their time has come."""

    def __init__(self) -> None:
        self.cooling: Final[set[JobId]] = set()
        """Their last attempts failed one after the other."""
        self.deferred: Final[dict[JobId, bool]] = {}
        """They start at a time of their own; whether it was said that it has come."""
        self.unplanned: Final[set[JobId]] = set()
        """
        Those that have just become deferred, and some that are no longer: the code that plans their times empties it.
        """

    def defer(self, jobs: list[JobId]) -> None:
        """Have jobs wait for their own time."""
        self.deferred.update(dict.fromkeys(jobs, False))
        self.unplanned.update(jobs)

    def cool(self, job: JobId) -> bool:
        """Whether a job waited after its failures; it does no more."""
        if job not in self.cooling:
            return False
        self.cooling.discard(job)
        return True

    def due(self, job: JobId) -> bool:
        """Whether a job waited for its own time; that has come."""
        if self.deferred.get(job) is not False:
            return False
        self.deferred[job] = True
        return True

    def leave(self, job: JobId) -> bool:
        """Whether a job waited; it does no more, and starts at no time of its own."""
        return self.cool(job) or self.deferred.pop(job, True) is False
