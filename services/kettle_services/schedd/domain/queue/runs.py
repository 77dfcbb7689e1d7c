"""Jobs that are alike, which the fold of an event of many works out together."""

from collections.abc import Iterator, Sequence
from itertools import groupby

import msgspec

from kettle_services.schedd.domain.queue.entry import QueuedJob
from kettle_services.schedd.domain.queue.queued_jobs import EntryRun, QueuedJobs
from kettle_services.schedd.domain.submission.cluster import Cluster
from kettle_wire.events import Procs
from kettle_wire.jobs import JobId


class AlikeRun(msgspec.Struct, frozen=True, gc=False):
    """Jobs of one cluster of which an event makes the same."""

    before: QueuedJob | None
    """What they were; None: they are not in the queue."""
    version: int
    """Of the event in the stream of each."""
    ranges: list[tuple[int, int]]
    """The first of those that follow each other, and how many these are."""

    def jobs(self, cluster: int) -> list[JobId]:
        """Each of them, in order."""
        return [JobId(cluster, proc) for first, count in self.ranges for proc in range(first, first + count)]


def runs_alike(queued: QueuedJobs, cluster: Cluster, jobs: Sequence[Procs]) -> Iterator[AlikeRun]:
    """The jobs of an event, in their order, in runs of those that are alike."""
    differ = any(name.lower() == "requestcpus" for name in cluster.submitted.columns)
    like: tuple[QueuedJob | None, object, int] | None = None
    ranges: list[tuple[int, int]] = []
    for procs in jobs:
        for run in queued.runs(cluster.submitted.cluster, procs.first, procs.count):
            fresh = differ and run.entry is not None and not run.entry.changed
            for base, first, count in _by_base(cluster, run) if fresh else ((None, run.first, run.count),):
                this = run.entry, base, procs.version
                if like is not None and (this[0] is not like[0] or this[1:] != like[1:]):
                    yield AlikeRun(like[0], like[2], ranges)
                    ranges = []
                like = this
                ranges.append((first, count))
    if like is not None:
        yield AlikeRun(like[0], like[2], ranges)


def _by_base(cluster: Cluster, run: EntryRun) -> Iterator[tuple[object, int, int]]:
    """In runs of those of which events change the same from the beginning."""
    for base, procs in groupby(range(run.first, run.first + run.count), key=cluster.base):
        same = list(procs)
        yield base, same[0], len(same)
