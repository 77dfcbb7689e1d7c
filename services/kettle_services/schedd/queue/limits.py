"""How many jobs the site lets into a queue, and how many of them run at a time."""

from collections.abc import Mapping
from typing import Final

from kettle_services.schedd.domain.jobs.universes import unmatched
from kettle_services.schedd.domain.negotiation.concurrency_limits import MOST_NAMES, LimitsInUse
from kettle_services.schedd.domain.queue.fold import Queue
from kettle_services.schedd.settings import ScheddSettings
from kettle_wire.jobs import JobId

_UNBOUNDED: Final = 1 << 62
_HEAD_ROOM: Final = 10
"""
One in so many places in the queue is not for jobs with late materialization, which would otherwise take all of them
permanently.
"""


class QueueLimits:
    """The limits of one queue, in its present state."""

    def __init__(self, queue: Queue, settings: ScheddSettings) -> None:
        self._queue = queue
        self._settings = settings
        self._same: dict[str, set[str]] = {}
        """Owner -> all who are charged for jobs of it."""
        self._grouped = 0

    def refusal(self, owner: str, jobs: int) -> str:
        """Why so many jobs more of an owner may not be submitted, and what to do; empty: they may."""
        mine = self._queue.tally.of_owner(owner).total()
        if mine + jobs > (most := self._settings.max_jobs_per_owner):
            return (
                f"{owner} has {mine} jobs in the queue; {jobs} more would exceed {most} (max_jobs_per_owner): "
                "wait until some have ended, or submit with max_idle, which lets them in as there is room"
            )
        all_ = len(self._queue.jobs)
        if (most := self._settings.max_jobs_submitted) and all_ + jobs > most:
            return (
                f"there are {all_} jobs in the queue; {jobs} more would exceed {most} (max_jobs_submitted): "
                "try again when some have ended, or submit with max_idle, which lets them in as there is room"
            )
        return ""

    def refusal_of_factory(self, owner: str, jobs: int) -> str:
        """Why a submission with late materialization is refused."""
        theirs = [
            cluster.factory.unmade
            for cluster in map(self._queue.clusters.__getitem__, self._queue.unmade)
            if cluster.factory is not None and cluster.submitted.owner == owner
        ]
        if len(theirs) >= (most := self._settings.max_factories_per_owner):
            return (
                f"{owner} has {len(theirs)} submissions of which jobs are still to be made, and may have {most} "
                "(max_factories_per_owner): try again when all jobs of one are made"
            )
        if sum(theirs) + jobs > (most := self._settings.max_unmade_jobs_per_owner):
            return (
                f"{sum(theirs)} jobs of {owner} are still to be made; {jobs} more would exceed {most} "
                "(max_unmade_jobs_per_owner): try again when more of them are made"
            )
        return ""

    def room_in_queue(self, owner: str) -> int:
        """How many jobs of an owner may come into the queue now that come little by little."""
        most = self._settings.max_jobs_submitted
        kept = min(most - 1, max(1, most // _HEAD_ROOM))
        free = most - kept - len(self._queue.jobs) if most else _UNBOUNDED
        return max(
            min(self._settings.max_jobs_per_owner - self._queue.tally.of_owner(owner).total(), free), 0
        )

    def room_to_run(self, submitter: str, asked: Mapping[tuple[str, int], int]) -> int:
        """
        How many more jobs of a submitter may run on machines; `asked`: claims that are being asked for, by submitter and
        autocluster.
        """
        rooms = [_UNBOUNDED]
        if most := self._settings.max_jobs_running:
            rooms.append(
                most - len(self._queue.claims) + self._queue.attendance.jobs.total() - sum(asked.values())
            )
        if most := self._settings.max_running_jobs_per_owner:
            same = self._same_owner(submitter)
            running = sum(map(self._running, same))
            rooms.append(most - running - sum(n for (who, _), n in asked.items() if who in same))
        return max(min(rooms), 0)

    def room_for(self, job: JobId | None, asked: Mapping[tuple[str, int], int]) -> int:
        """How many jobs like this one may run; those that run without a match are limited elsewhere."""
        if job is None or unmatched(self._queue.universe(job)):
            return _UNBOUNDED
        return self.room_to_run(self._queue.submitter(job), asked)

    def _same_owner(self, submitter: str) -> set[str]:
        """All who are charged for jobs of the owner for whose jobs this one is."""
        owners = self._queue.tally.owners
        if len(owners) != self._grouped:  # there is a new submitter: rare, and then all are looked at
            self._grouped = len(owners)
            self._same.clear()
            for one, owner in owners.items():
                self._same.setdefault(owner, set()).add(one)
        return self._same.get(owners.get(submitter, ""), {submitter})

    def _running(self, submitter: str) -> int:
        return self._queue.tally.of(submitter, "running") - self._queue.attendance.of(submitter)

    def crowded(self, submitter: str, asked: LimitsInUse) -> bool:
        """Whether its claims use so many concurrency limits that no more are `asked` for until some end."""
        return len({*self._queue.claim_use.limits.names(submitter), *asked.names(submitter)}) >= MOST_NAMES

    def limit_in_force(self, submitter: str) -> str:
        """Which limit keeps a submitter's jobs from running; empty: none does."""
        if self.room_to_run(submitter, {}):
            return ""
        total = self._settings.max_jobs_running
        if total and len(self._queue.claims) >= total:
            return f"as many jobs run as this access point looks after: {total} (max_jobs_running)"
        owner = self._queue.tally.owners.get(submitter, submitter)
        most = self._settings.max_running_jobs_per_owner
        return f"as many jobs of {owner} run as may: {most} (max_running_jobs_per_owner)"
