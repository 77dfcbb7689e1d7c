"""
Results of submitters in a period: the same sums over recorded and over simulated events.

Times are in microseconds.  A job has waited from when it came into the queue until its first attempt was given a claim.
A submitter's use is what its claims hold, whether a job runs on them or not, because the accountant charges that.
"""

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from math import ceil

import msgspec

from kettle_services.schedd.domain.jobs import universes
from kettle_services.schedd.domain.queue.fold import Queue, job_of_stream
from kettle_services.simulator.domain.clock import US
from kettle_wire.ads import Ad
from kettle_wire.events import (
    ClaimEnded,
    ClaimGranted,
    ClusterSubmitted,
    Event,
    FactoryMaterialized,
    JobAssigned,
    JobCompleted,
    JobVacated,
)
from kettle_wire.jobs import JobId


class Arrivals:
    """When the jobs of one schedd came into its queue."""

    def __init__(self) -> None:
        self._made: dict[int, tuple[list[int], list[int]]] = {}

    def note(self, event: Event, at: int) -> None:
        """A submission, or some of its jobs, came."""
        match event:
            case ClusterSubmitted(cluster=cluster):
                self._made[cluster] = ([0], [at])
            case FactoryMaterialized(cluster=cluster, first=first):
                firsts, times = self._made.setdefault(cluster, ([0], [at]))
                firsts.append(first)
                times.append(at)
            case _:
                pass

    def of(self, job: JobId) -> int:
        """When a job came; 0 if that is unknown."""
        if job.cluster not in self._made:
            return 0
        firsts, times = self._made[job.cluster]
        return times[bisect_right(firsts, job.proc) - 1]


class Sums(msgspec.Struct, frozen=True, kw_only=True):
    """Of one submitter or group; waiting times in seconds, None if nobody has waited."""

    begun: int = 0
    """Jobs whose first attempt was given a claim."""
    ended: int = 0
    """Jobs that ran to their end."""
    waiting: int = 0
    """Jobs that have waited all the time to the end of the period for their first attempt."""
    preempted: int = 0
    """Attempts that ended without finishing their jobs."""
    wait_median: float | None = None
    wait_p90: float | None = None
    wait_mean: float | None = None
    """Of those that have begun."""
    core_hours: float = 0.0
    weighted_hours: float = 0.0
    """In slot weights."""
    share: float = 0.0
    """Its part of what all have used, weighted."""


class _Account:
    """What is known of one submitter."""

    def __init__(self) -> None:
        self.ended = self.preempted = self.waiting = 0
        self.waits: list[int] = []
        self.cores = 0
        self.weighted = 0.0
        self.steps: list[tuple[int, float]] = []


class Tally:
    """The sums of a period; `note` receives each event before the queue does."""

    def __init__(self, since: int, until: int) -> None:
        self.since, self.until = since, until
        self.starts: dict[tuple[str, JobId], int] = {}
        """When each job began that had not before."""
        self._accounts: dict[str, _Account] = {}
        self._claims: dict[str, tuple[str, int, float, int]] = {}

    @property
    def submitters(self) -> list[str]:
        """All who had a job or a claim."""
        return sorted(self._accounts)

    def _of(self, submitter: str) -> _Account:
        return self._accounts.setdefault(submitter, _Account())

    def held(self, granted: ClaimGranted, at: int) -> None:
        """A claim that there is from then on."""
        if granted.slot_ad.get("SlotType") == "Local":
            return
        cores, weight = _worth(granted.slot_ad)
        self._claims[granted.claim] = granted.submitter, cores, weight, max(at, self.since)
        self._of(granted.submitter).steps.append((max(at, self.since), weight))

    def _freed(self, claim: str, at: int) -> None:
        if claim not in self._claims:
            return
        submitter, cores, weight, since = self._claims.pop(claim)
        account, lasted = self._of(submitter), min(at, self.until) - since
        account.cores += cores * lasted
        account.weighted += weight * lasted
        account.steps.append((at, -weight))

    def note(self, queue: Queue, arrivals: Arrivals, stream: str, event: Event, at: int) -> None:
        """One event of a schedd."""
        match event:
            case ClaimGranted():
                self.held(event, at)
            case ClaimEnded(claim=claim):
                self._freed(claim, at)
            case JobAssigned(attempt=1):
                job = job_of_stream(stream)
                if not universes.unmatched(queue.universe(job)):
                    self.starts[queue.schedd, job] = at
                    self._of(queue.submitter(job)).waits.append(at - arrivals.of(job))
            case JobCompleted() | JobVacated():
                job = job_of_stream(stream)
                if not universes.unmatched(queue.universe(job)):
                    account = self._of(queue.submitter(job))
                    account.ended += isinstance(event, JobCompleted)
                    account.preempted += isinstance(event, JobVacated)
            case _:
                pass

    def close(self, queues: Iterable[Queue]) -> None:
        """The period is over; these are the queues at its end."""
        for claim in list(self._claims):
            self._freed(claim, self.until)
        for queue in queues:
            for job, entry in queue.jobs.items():
                waits = entry.job.attempt.number == 0 and entry.job.status == "idle"
                if waits and not universes.unmatched(queue.universe(job)):
                    self._of(queue.submitter(job)).waiting += 1

    # -- what it comes to --------------------------------------------------------------------------------------------

    def sums(self, groups: Mapping[str, Sequence[str]]) -> dict[str, Sums]:
        """By name, those of some submitters together."""
        whole = sum(account.weighted for account in self._accounts.values())
        return {
            name: _summed([self._accounts[one] for one in members if one in self._accounts], whole)
            for name, members in groups.items()
        }

    @property
    def weighted_hours(self) -> float:
        """Of all together."""
        return sum(account.weighted for account in self._accounts.values()) / US / 3600

    @property
    def core_hours(self) -> float:
        """Of all together."""
        return sum(account.cores for account in self._accounts.values()) / US / 3600

    def usage(self, submitter: str, moments: Sequence[int]) -> list[float]:
        """What a submitter had at each of some moments, which rise, in slot weights."""
        steps = sorted(self._accounts[submitter].steps) if submitter in self._accounts else []
        had, place, found = 0.0, 0, list[float]()
        for moment in moments:
            while place < len(steps) and steps[place][0] <= moment:
                had += steps[place][1]
                place += 1
            found.append(max(0.0, had))
        return found


def _worth(slot: Ad) -> tuple[int, float]:
    """Cores and weight of a slot."""
    cores, weight = slot.get("Cpus", 1), slot.get("SlotWeight")
    cores = int(cores) if isinstance(cores, int | float) else 1
    return cores, float(weight) if isinstance(weight, int | float) else float(cores)


def _summed(accounts: Sequence[_Account], whole: float) -> Sums:
    waits = sorted(wait for account in accounts for wait in account.waits)
    weighted = sum(account.weighted for account in accounts)
    return Sums(
        begun=len(waits),
        ended=sum(account.ended for account in accounts),
        waiting=sum(account.waiting for account in accounts),
        preempted=sum(account.preempted for account in accounts),
        wait_median=quantile(waits, 0.5),
        wait_p90=quantile(waits, 0.9),
        wait_mean=sum(waits) / len(waits) / US if waits else None,
        core_hours=sum(account.cores for account in accounts) / US / 3600,
        weighted_hours=weighted / US / 3600,
        share=weighted / whole if whole else 0.0,
    )


def quantile(ordered: Sequence[int], part: float) -> float | None:
    """
    The smallest that so large a part of them does not exceed, in seconds: the 2nd of 4 for the half, the 9th of 10 for 0.9.
    """
    return ordered[max(0, ceil(part * len(ordered)) - 1)] / US if ordered else None
