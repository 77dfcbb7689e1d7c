"""How many jobs of a queue are in which status."""

from collections import Counter, defaultdict
from typing import Final

from kettle_services.schedd.domain.queue.alike import JobsAlike

_WAITING: Final = frozenset({"idle", "held"})
"""The statuses that a factory's `max_idle` counts."""


class StatusTally:
    """By who is charged for the jobs, by whose they are, and of each cluster those that wait."""

    def __init__(self) -> None:
        self.by_submitter: Final[dict[str, dict[str, int]]] = {}
        """Submitter -> status -> number of jobs."""
        self.owners: Final[dict[str, str]] = {}
        """Submitter -> whose jobs are charged to it."""
        self._by_owner: Final = defaultdict[str, Counter[str]](Counter)

    def enter(self, alike: JobsAlike) -> None:
        """Count jobs in."""
        self._count(alike, 1)

    def leave(self, alike: JobsAlike) -> None:
        """Inverse of `enter`."""
        self._count(alike, -1)

    def _count(self, alike: JobsAlike, sign: int) -> None:
        status, cluster, number = alike.entry.job.status, alike.cluster, sign * len(alike.jobs)
        owner = cluster.submitted.owner
        self._by_owner[owner][status] += number
        if status in _WAITING:
            cluster.waiting += number
        for submitter, theirs in alike.submitters:
            self.owners[submitter] = owner
            counts = self.by_submitter.setdefault(submitter, {})
            counts[status] = counts.get(status, 0) + sign * len(theirs)

    def of(self, submitter: str, status: str) -> int:
        """How many jobs in a status are charged to a submitter."""
        return self.by_submitter.get(submitter, {}).get(status, 0)

    def of_owner(self, owner: str) -> Counter[str]:
        """Status -> how many jobs an owner has, no matter which name is charged."""
        return self._by_owner.get(owner, Counter())

    def forget(self, submitter: str) -> None:
        """Nobody asks any more about a submitter without jobs."""
        del self.by_submitter[submitter]
