"""
Recording the same of many jobs as one event: a hundred thousand of them cost the log what a few hundred do.
"""

from collections.abc import Callable, Iterator, Sequence
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


def group_events(
    changes: Sequence[Happened], version: Callable[[JobId], int], *, fewest: int = FEWEST
) -> list[tuple[str, Event]]:
    """
    Events with their streams, as they are recorded; `version` is the next one of a job's stream.

    `changes` are in the order of their jobs, and no job has two.
    """
    found: list[tuple[str, Event]] = []
    for (cluster, _), group in groupby(changes, key=lambda one: (one[0].cluster, one[1])):
        same = list(group)
        if len(same) < fewest:
            found += ((job_stream(job), event) for job, event in same)
        else:
            found += ((stream_of_cluster(cluster), event) for event in _together(cluster, same, version))
    return found


def _together(cluster: int, same: list[Happened], version: Callable[[JobId], int]) -> Iterator[JobsChanged]:
    event = same[0][1]
    tag, data = tag_of(event), msgspec.Raw(encode(event))
    step = max(1, min(MOST, MOST_BYTES // len(bytes(data))))
    for start in range(0, len(same), step):
        jobs = [job for job, _ in same[start : start + step]]
        yield JobsChanged(cluster=cluster, type=tag, data=data, jobs=_ranges(jobs, version))


def _ranges(jobs: list[JobId], version: Callable[[JobId], int]) -> list[Procs]:
    ranges: list[Procs] = []
    for job in jobs:
        number = version(job)
        last = ranges[-1] if ranges else None
        if last is not None and last.version == number and last.first + last.count == job.proc:
            ranges[-1] = Procs(last.first, last.count + 1, number)
        else:
            ranges.append(Procs(job.proc, 1, number))
    return ranges
