"""
A queue from its history, many times faster than event by event: of a job that left, only that it left is of interest.
"""

from collections.abc import Iterable, Iterator

from kettle.jobs import apply, fold_base
from kettle.schedd.domain.job import evolve
from kettle.schedd.domain.queue import FRESH, JOB_EVENTS, Entry, Queue, Unfit, job_of_stream
from kettle.wire.events import ClaimEnded, ClaimGranted, ClusterSubmitted, Event, JobEvent
from kettle.wire.jobs import JobId


class _Live:
    """A job in the queue, and everything that was recorded of it."""

    __slots__ = ("events", "job")

    def __init__(self) -> None:
        self.job = FRESH.job
        self.events: list[tuple[JobEvent, int]] = []


class Replay:
    """
    Fed all events of a schedd's shard from its first one on, it makes the queue as of then.

    Equal to a `Queue` to which the same events were applied (tests/properties/test_queue.py).
    """

    def __init__(self, schedd: str, *, significant: Iterable[str] = ()) -> None:
        self._schedd = schedd
        self._significant = tuple(significant)
        self._clusters: dict[int, tuple[ClusterSubmitted, int]] = {}
        self._left: dict[int, int] = {}
        self._claims: dict[str, tuple[ClaimGranted, int]] = {}
        self._live: dict[str, _Live] = {}
        self._newest = 0

    def feed(self, stream: str, event: Event, at: int) -> None:
        """Fold one event, recorded at `at` microseconds."""
        if isinstance(event, JOB_EVENTS):
            live = self._live.get(stream)
            if live is None:
                live = self._live[stream] = _Live()
            live.job = evolve(live.job, event)
            if live.job.over:
                del self._live[stream]
                self._leave(stream)
            else:
                live.events.append((event, at))
        elif isinstance(event, ClaimGranted):
            self._claims[event.claim] = (event, at)
        elif isinstance(event, ClaimEnded):
            self._claims.pop(event.claim, None)
        elif isinstance(event, ClusterSubmitted):
            self._clusters[event.cluster] = (event, at)
            self._left[event.cluster] = 0
            self._newest = max(self._newest, event.cluster)
        else:
            raise Unfit(f"an event {type(event).__name__} does not belong into the shard of a schedd")

    def _leave(self, stream: str) -> None:
        job = job_of_stream(stream)
        if job.cluster not in self._clusters:
            raise Unfit(f"job {job} left a cluster that is not in the queue")
        left = self._left[job.cluster] | 1 << job.proc
        self._left[job.cluster] = left
        if left.bit_count() == len(self._clusters[job.cluster][0].rows):
            del self._clusters[job.cluster], self._left[job.cluster]

    def queue(self) -> Queue:
        """The queue as of the last event."""
        queue = Queue(self._schedd, significant=self._significant)
        queue.newest_cluster = self._newest
        for granted, at in self._claims.values():
            queue.apply(f"claim/{granted.claim}", granted, at)
        known = dict(self._entries())
        for number, (submitted, at) in self._clusters.items():
            queue.admit(submitted, at, self._left[number], known)
        return queue

    def _entries(self) -> Iterator[tuple[JobId, Entry]]:
        """The jobs that something has happened to since they were submitted."""
        bases = {number: fold_base(submitted) for number, (submitted, _) in self._clusters.items()}
        for stream, live in self._live.items():
            job = job_of_stream(stream)
            if job.cluster not in bases or job.proc >= len(self._clusters[job.cluster][0].rows):
                raise Unfit(f"something happened to job {job}, which is not in the queue")
            changed = bases[job.cluster](job.proc)
            for event, at in live.events:
                apply(changed, event, at)
            yield job, Entry(live.job, changed)
