"""Which jobs of a queue somebody means."""

import time
from collections.abc import Callable, Iterable, Iterator
from heapq import merge
from typing import Final

from kettle.classad import ClassAd
from kettle_services.schedd.domain import evaluation
from kettle_services.schedd.domain.queue.fold import Queue
from kettle_services.schedd.queue.constraint import Constraint, parsed
from kettle_services.schedd.queue.time_slice import TimeSlice
from kettle_wire.ads import Ad
from kettle_wire.commands.schedd import Select
from kettle_wire.jobs import JobId

LOOK: Final = 32
"""Jobs after which one looks whether it is somebody else's turn."""


async def selected_jobs(queue: Queue, select: Select) -> list[JobId]:
    """Jobs of a selection, in their order; for very many jobs, other tasks run in between."""
    expression = parsed(select.constraint)
    jobs = list(listed(queue, jobs=select.jobs, clusters=select.clusters, owners=select.owners))
    if expression is None:
        return jobs
    found: list[JobId] = []
    constraint, turn = Constraint(queue, expression, time.time()), TimeSlice()
    for at, job in enumerate(jobs):
        if job in queue.jobs and constraint.holds(job):
            found.append(job)
        if not at % LOOK:
            await turn.yield_if_over()
    return found


def listed(
    queue: Queue,
    *,
    jobs: Iterable[JobId] = (),
    clusters: Iterable[int] = (),
    owners: Iterable[str] = (),
    after: JobId | None = None,
) -> Iterator[JobId]:
    """
    Jobs in the queue that are listed, or in a listed cluster, or of a listed owner; with no list, all. In order.

    `after`: only those that come after this one. The queue may change while one goes through them.
    """
    single, in_clusters, of_owners = set(jobs), set(clusters), set(owners)
    everything = not (single or in_clusters or of_owners)
    whole = {
        number
        for number, cluster in queue.clusters.items()
        if everything or number in in_clusters or cluster.submitted.owner in of_owners
    }
    if not single:
        yield from _of_clusters(queue, whole, after)
        return
    apart = (job for job in single if job.cluster not in whole and job in queue.jobs)
    yield from merge(
        _of_clusters(queue, whole, after), sorted(job for job in apart if after is None or job > after)
    )


def _of_clusters(queue: Queue, clusters: Iterable[int], after: JobId | None) -> Iterator[JobId]:
    for number in sorted(clusters):
        cluster = queue.clusters.get(number)
        if cluster is None or (after is not None and number < after.cluster):
            continue
        since = after.proc + 1 if after is not None and number == after.cluster else 0
        yield from cluster.jobs(since)


def condition(text: str) -> Callable[[Ad], bool] | None:
    """What an ad has to meet; None: nothing. Raises RefusedError for what cannot be read."""
    expression = parsed(text)
    if expression is None:
        return None
    context = evaluation.at(time.time())
    return lambda ad: evaluation.holds(expression, ClassAd.from_wire(ad), context)
