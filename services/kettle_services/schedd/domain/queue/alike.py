"""Jobs of one cluster that are in the same state: the indexes of a queue count them together."""

from collections import defaultdict
from collections.abc import Iterator
from typing import Protocol

import msgspec

from kettle_services.schedd.domain.queue.entry import QueuedJob
from kettle_services.schedd.domain.submission.cluster import Cluster
from kettle_wire.jobs import JobId


class JobsAlike(msgspec.Struct, frozen=True, gc=False):
    """They have been through the same, so they were edited alike, and share their entry."""

    cluster: Cluster
    entry: QueuedJob
    jobs: list[JobId]
    """One at least, in their order."""
    submitters: list[tuple[str, list[JobId]]]
    """Who is charged, and for which of them."""

    def after(self, entry: QueuedJob) -> "JobsAlike":
        """These jobs in another state."""
        return JobsAlike(self.cluster, entry, self.jobs, self.submitters)

    def some(self, jobs: list[JobId]) -> "JobsAlike":
        """A part of them."""
        return self if len(jobs) == len(self.jobs) else alike(self.cluster, self.entry, jobs)

    def requests(self) -> Iterator[tuple[int, str, int, list[JobId]]]:
        """Their universe, who is charged and their autocluster, with the jobs that have these in common."""
        cluster = self.cluster
        # They are in the same state, so they were edited alike.
        same = cluster.autoclusters.edited(self.entry.edited).same
        for submitter, theirs in self.submitters:
            if cluster.universe is not None and same is not None:
                yield universe_of(cluster, self.entry, theirs[0].proc), submitter, same, theirs
            else:
                for job in theirs:
                    autocluster = cluster.autocluster(job.proc, self.entry.edited)
                    yield universe_of(cluster, self.entry, job.proc), submitter, autocluster, [job]

    def priorities(self, jobs: list[JobId]) -> Iterator[tuple[list[JobId], int]]:
        """Some of them, with the priority that they have."""
        cluster, edited = self.cluster, self.entry.edited
        if "JobPrio" in cluster.submitted.columns:
            yield from (([job], cluster.priority(job.proc, edited)) for job in jobs)
        else:
            yield jobs, cluster.priority(jobs[0].proc, edited)


class QueueIndex(Protocol):
    """What is counted along of the jobs of a queue: the same from whatever order of jobs that come and go."""

    def enter(self, alike: JobsAlike) -> None:
        """Jobs are what they are from now on."""
        ...

    def leave(self, alike: JobsAlike) -> None:
        """They are that no longer."""
        ...


def alike(cluster: Cluster, entry: QueuedJob, jobs: list[JobId]) -> JobsAlike:
    """Jobs of one cluster, one at least, that are in one state."""
    charged = cluster.charged
    if isinstance(charged, str):
        return JobsAlike(cluster, entry, jobs, [(charged, jobs)])
    groups = defaultdict[str, list[JobId]](list)
    for job in jobs:
        groups[submitter_of(cluster, job.proc)].append(job)
    return JobsAlike(cluster, entry, jobs, list(groups.items()))


def submitter_of(cluster: Cluster, proc: int) -> str:
    """Who is charged for a job: its owner, or the owner within an accounting group."""
    charged = cluster.charged
    return charged if isinstance(charged, str) else charged(cluster.submitted.rows[proc])


def universe_of(cluster: Cluster, entry: QueuedJob, proc: int) -> int:
    """JobUniverse of a job: the one that its route has set, or its own."""
    if cluster.routed and isinstance(routed := entry.changed.get("JobUniverse"), int):
        return routed
    return cluster.universe_of(proc)
