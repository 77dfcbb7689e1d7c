"""
All jobs of a queue, by cluster and number: a job that shares its entry with others takes the room of one reference.
"""

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from kettle_services.schedd.domain.queue.entry import QueuedJob
from kettle_wire.jobs import JobId


class EntryRun(msgspec.Struct, frozen=True, gc=False):
    """Jobs of one cluster that follow each other and share their entry; None: they are not in the queue."""

    entry: QueuedJob | None
    first: int
    count: int


class QueuedJobs(Mapping[JobId, QueuedJob]):
    """
    What the queue keeps of each of its jobs; clusters in the order in which they came, and their jobs by number.
    """

    def __init__(self) -> None:
        self._clusters: dict[int, list[QueuedJob | None]] = {}
        """By number of the job; None: it is not in the queue."""
        self._count = 0

    # -- questions ---------------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[JobId]:
        for number, entries in self._clusters.items():
            for proc, entry in enumerate(entries):
                if entry is not None:
                    yield JobId(number, proc)

    def __getitem__(self, job: JobId) -> QueuedJob:
        if (entry := self.find(job)) is None:
            raise KeyError(job)
        return entry

    def __contains__(self, job: object) -> bool:
        return isinstance(job, JobId) and self.find(job) is not None

    def find(self, job: JobId) -> QueuedJob | None:
        """A job; None: it is not in the queue."""
        entries = self._clusters.get(job.cluster)
        return entries[job.proc] if entries is not None and job.proc < len(entries) else None

    def runs(self, cluster: int, first: int, count: int) -> Iterator[EntryRun]:
        """The jobs of a cluster from number `first` on, with those that share their entry together."""
        entries = self._clusters.get(cluster, [])[first : first + count]
        start = 0
        for place, entry in enumerate(entries):
            if entry is not entries[start]:
                yield EntryRun(entries[start], first + start, place - start)
                start = place
        if entries:
            yield EntryRun(entries[start], first + start, len(entries) - start)
        if len(entries) < count:
            yield EntryRun(None, first + len(entries), count - len(entries))

    # -- changes -----------------------------------------------------------------------------------------------------

    def put(self, job: JobId, entry: QueuedJob) -> None:
        """A job is this from now on; it may be new."""
        entries = self._clusters.setdefault(job.cluster, [])
        if job.proc >= len(entries):
            entries.extend([None] * (job.proc + 1 - len(entries)))
        self._count += entries[job.proc] is None
        entries[job.proc] = entry

    def put_all(self, jobs: Sequence[JobId], entry: QueuedJob) -> None:
        """So are several of one cluster, in their order, each once."""
        first, last = jobs[0], jobs[-1]
        self.put(last, entry)
        if last.proc - first.proc == len(jobs) - 1:
            entries = self._clusters[first.cluster]
            self._count += entries[first.proc : last.proc].count(None)
            entries[first.proc : last.proc] = [entry] * (len(jobs) - 1)
        else:
            for job in jobs:
                self.put(job, entry)

    def remove(self, jobs: Sequence[JobId]) -> None:
        """Jobs that are in the queue leave it."""
        for job in jobs:
            self._clusters[job.cluster][job.proc] = None
        self._count -= len(jobs)

    def forget(self, cluster: int) -> None:
        """No job of a cluster is in the queue, nor will be."""
        self._clusters.pop(cluster, None)
