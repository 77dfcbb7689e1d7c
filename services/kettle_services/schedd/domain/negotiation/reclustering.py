"""
Attributes become significant while jobs wait: the machines of a pool look at them, as its negotiator has found out.

Only clusters whose jobs have such an attribute are looked at: the jobs of others are numbered as before.
"""

from collections.abc import Collection, Iterable, Iterator
from itertools import groupby

from kettle_services.schedd.domain.negotiation.autoclusters import Autoclusters
from kettle_services.schedd.domain.queue.alike import alike
from kettle_services.schedd.domain.queue.entry import QueuedJob
from kettle_services.schedd.domain.queue.fold import Queue
from kettle_services.schedd.domain.submission.cluster import Cluster
from kettle_wire.jobs import JobId


def mark_significant(queue: Queue, names: Iterable[str]) -> list[str]:
    """Have these attributes decide the autoclusters too; those that did not before, in lower case."""
    known = {name.lower() for name in queue.significant}
    new = sorted({name.lower() for name in names} - known)
    if new:
        queue.significant = (*queue.significant, *new)
        for cluster in queue.clusters.values():
            if _has(queue, cluster, frozenset(new)):
                _renumber(queue, cluster)
    return new


def _has(queue: Queue, cluster: Cluster, names: Collection[str]) -> bool:
    """
    Whether one of a cluster's jobs has one of these attributes, or may be given it by an edit that was made.
    """
    submitted = cluster.submitted
    if any(name.lower() in names for name in (*submitted.ad, *submitted.columns)):
        return True
    return any(name.lower() in names for entry, _ in _alike(queue, cluster) for name in entry.by_hand)


def _renumber(queue: Queue, cluster: Cluster) -> None:
    offered = [
        alike(cluster, entry, waiting)
        for entry, jobs in _alike(queue, cluster)
        if entry.job.runnable and (waiting := [job for job in jobs if queue.demand.offers(job)])
    ]
    for jobs in offered:
        queue.demand.withdraw(jobs)
    submitted = cluster.submitted
    cluster.autoclusters = Autoclusters(submitted.ad, submitted.columns, queue.significant)
    for jobs in offered:
        queue.demand.offer(jobs)


def _alike(queue: Queue, cluster: Cluster) -> Iterator[tuple[QueuedJob, list[JobId]]]:
    """The jobs of a cluster that are in the queue, in runs of those that share their state."""
    for _, run in groupby(cluster.jobs(), key=lambda job: id(queue.jobs[job])):
        jobs = list(run)
        yield queue.jobs[jobs[0]], jobs
