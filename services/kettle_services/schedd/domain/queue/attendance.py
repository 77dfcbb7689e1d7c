"""How many jobs of a queue run without a match: on the machine of the schedd, or in batch systems."""

from collections import Counter
from typing import Final

from kettle_services.schedd.domain.jobs.universes import UNMATCHED
from kettle_services.schedd.domain.queue.alike import JobsAlike, universe_of


class Attendance:
    """Of jobs whose attempts may live."""

    def __init__(self) -> None:
        self.jobs: Final[Counter[tuple[str, int]]] = Counter()
        """(submitter, universe) -> how many."""

    def enter(self, alike: JobsAlike) -> None:
        """Count jobs in."""
        self._count(alike, 1)

    def leave(self, alike: JobsAlike) -> None:
        """Inverse of `enter`."""
        self._count(alike, -1)

    def _count(self, alike: JobsAlike, sign: int) -> None:
        if not alike.entry.job.claim:
            return
        for submitter, theirs in alike.submitters:
            for job in theirs:
                universe = universe_of(alike.cluster, alike.entry, job.proc)
                if universe in UNMATCHED:
                    self.jobs[submitter, universe] += sign

    def of(self, submitter: str) -> int:
        """How many of a submitter's jobs there are."""
        return sum(self.jobs[submitter, universe] for universe in UNMATCHED)
