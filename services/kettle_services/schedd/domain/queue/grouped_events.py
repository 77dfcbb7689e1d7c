"""
Recording the same of many jobs as one event: a hundred thousand of them cost the log what a few hundred do.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from typing import Final

import msgspec

from kettle_services.schedd.domain.queue.fold import job_stream
from kettle_wire.event_expansion import stream_of_cluster
from kettle_wire.events import Event, JobEvent, JobsChanged, Procs, encode, tag_of
from kettle_wire.jobs import JobId

FEWEST: Final = 8
"""The number of jobs from which it is worth it; fewer have an event each, in their own streams."""
MOST: Final = 500
"""Jobs of one event: who reads single events gets as many at once."""
MOST_BYTES: Final = 1 << 20
"""What the single events of one event may come to: a reason may be long."""

Happened = tuple[JobId, JobEvent]
HappenedToAll = tuple[Sequence[JobId], JobEvent]
"""To jobs of one cluster, one at least, that share their entry."""


def group_events(
    changes: Sequence[Happened], version: Callable[[JobId], int], *, fewest: int = FEWEST
) -> list[tuple[str, Event]]:
    """
    Events with their streams, as they are recorded; `version` is the next one of a job's stream.

    `changes` are in the order of their jobs, and no job has two.
    """
    alone: list[HappenedToAll] = [([job], event) for job, event in changes]
    return group_runs(alone, lambda jobs: (Procs(job.proc, 1, version(job)) for job in jobs), fewest=fewest)


def group_runs(
    changes: Sequence[HappenedToAll],
    versions: Callable[[Sequence[JobId]], Iterable[Procs]],
    *,
    fewest: int = FEWEST,
) -> list[tuple[str, Event]]:
    """
    As `group_events`, of jobs of which many have the same in common; `versions` are the next ones of their streams.
    """
    found: list[tuple[str, Event]] = []
    for (cluster, event), group in groupby(changes, key=lambda one: (one[0][0].cluster, one[1])):
        same = [jobs for jobs, _ in group]
        if sum(map(len, same)) < fewest:
            found += ((job_stream(job), event) for jobs in same for job in jobs)
        else:
            ranges = _joined(procs for jobs in same for procs in versions(jobs))
            found += ((stream_of_cluster(cluster), each) for each in _together(cluster, event, ranges))
    return found


def _together(cluster: int, event: JobEvent, ranges: Iterable[Procs]) -> Iterator[JobsChanged]:
    tag, data = tag_of(event), msgspec.Raw(encode(event))
    step = max(1, min(MOST, MOST_BYTES // len(bytes(data))))
    for jobs in _pieces(ranges, step):
        yield JobsChanged(cluster=cluster, type=tag, data=data, jobs=jobs)


def _joined(ranges: Iterable[Procs]) -> Iterator[Procs]:
    """Without breaks between those that go on in the same way."""
    last: Procs | None = None
    for procs in ranges:
        if last is None:
            last = procs
        elif last.version == procs.version and last.first + last.count == procs.first:
            last = Procs(last.first, last.count + procs.count, last.version)
        else:
            yield last
            last = procs
    if last is not None:
        yield last


def _pieces(ranges: Iterable[Procs], step: int) -> Iterator[list[Procs]]:
    """In pieces of so many jobs."""
    piece: list[Procs] = []
    room = step
    for procs in ranges:
        first, left = procs.first, procs.count
        while left:
            count = min(left, room)
            piece.append(Procs(first, count, procs.version))
            first, left, room = first + count, left - count, room - count
            if not room:
                yield piece
                piece, room = [], step
    if piece:
        yield piece
