"""Jobs that are alike, which the fold of an event works out together."""

from collections.abc import Callable, Iterable, Iterator

from kettle_services.schedd.domain.queue.entry import FRESH, QueuedJob
from kettle_wire.ads import Ad
from kettle_wire.jobs import JobId


def runs_alike(
    jobs: Iterable[tuple[JobId, QueuedJob, int]], base_of: Callable[[JobId], Ad]
) -> Iterator[tuple[QueuedJob, list[JobId], list[int]]]:
    """
    Jobs of one cluster, each with what it is and a number, in runs of those of which an event makes the same.

    `base_of`: what events change of a job to which nothing has happened yet.
    """
    like, first, run, numbers = FRESH, Ad(), list[JobId](), list[int]()
    for job, before, number in jobs:
        base = before.changed or base_of(job)
        if run and (before is not like or (base is not first and base != first)):
            yield like, run, numbers
            run, numbers = [], []
        if not run:
            like, first = before, base
        run.append(job)
        numbers.append(number)
    if run:
        yield like, run, numbers
