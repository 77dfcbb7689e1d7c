"""Which jobs of a queue somebody means."""

import time
from collections.abc import Callable, Iterable, Iterator
from heapq import merge
from typing import Final

from kettle.bus.ports import RefusedError
from kettle.classad import ClassAd, ClassAdError, parse
from kettle_services.schedd.domain import evaluation
from kettle_services.schedd.domain.queue.fold import Queue
from kettle_services.schedd.domain.queue.job_ads import QueuedJobAds
from kettle_services.schedd.queue.time_slice import TimeSlice
from kettle_wire.ads import Ad
from kettle_wire.codes import RefusalCode
from kettle_wire.commands.schedd import Select
from kettle_wire.jobs import JobId

LOOK: Final = 32
"""Jobs after which one looks whether it is somebody else's turn."""


async def selected_jobs(queue: Queue, select: Select) -> list[JobId]:
    """Jobs of a selection, in their order; for very many jobs, other tasks run in between."""
    meets = condition(select.constraint)
    jobs = list(listed(queue, jobs=select.jobs, clusters=select.clusters, owners=select.owners))
    if meets is None:
        return jobs
    found: list[JobId] = []
    view, turn = QueuedJobAds(queue), TimeSlice()
    for at, job in enumerate(jobs):
        if job in queue.jobs and meets(view.ad(job)):
            found.append(job)
        if not at % LOOK:
            await turn.yield_if_over()
    return found


def listed(
    queue: Queue, *, jobs: Iterable[JobId] = (), clusters: Iterable[int] = (), owners: Iterable[str] = ()
) -> Iterator[JobId]:
    """
    Jobs in the queue that are listed, or in a listed cluster, or of a listed owner; with no list, all. In order.
    """
    single, in_clusters, of_owners = set(jobs), set(clusters), set(owners)
    if not (single or in_clusters or of_owners):
        yield from sorted(queue.jobs)
        return
    whole = {
        number
        for number, cluster in queue.clusters.items()
        if number in in_clusters or cluster.submitted.owner in of_owners
    }
    in_whole = (job for number in sorted(whole) for job in queue.clusters[number].jobs())
    apart = (job for job in single if job.cluster not in whole and job in queue.jobs)
    yield from merge(in_whole, sorted(apart))


def condition(text: str) -> Callable[[Ad], bool] | None:
    """What a job's ad has to meet; None: nothing. Raises RefusedError for what cannot be read."""
    if text.strip().lower() in {"", "true"}:  # clients that want all jobs often send this
        return None
    try:
        expression = parse(text)
    except ClassAdError as error:
        raise RefusedError(
            RefusalCode.MALFORMED, f"the constraint '{text}' cannot be read: {error}"
        ) from error
    context = evaluation.at(time.time())
    return lambda ad: evaluation.holds(expression, ClassAd.from_wire(ad), context)
