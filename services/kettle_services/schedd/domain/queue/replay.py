"""
A queue from its history, many times faster than event by event: of a job that left, only that it left is of interest.
"""

from collections.abc import Iterable, Iterator
from copy import deepcopy
from functools import cache
from typing import Final, Literal, cast

from kettle.jobs import apply, fold_base
from kettle_services.schedd.domain.jobs import factory
from kettle_services.schedd.domain.jobs.factory import Factory
from kettle_services.schedd.domain.jobs.job import Job, evolve
from kettle_services.schedd.domain.queue.entry import FRESH, QueuedJob, after
from kettle_services.schedd.domain.queue.fold import JOB_EVENTS, Queue, Unfit, job_of_stream
from kettle_services.schedd.domain.submission.departed import DepartedJobs
from kettle_wire import events, frames
from kettle_wire.event_expansion import expanded
from kettle_wire.events import ClaimEnded, ClaimGranted, ClusterSubmitted, FactoryEvent, JobEvent
from kettle_wire.frames import Frame
from kettle_wire.jobs import JobId

_Kind = Literal["completed", "removed", "vacated", "kept", "left", "goes on", "none of a job"]
_ENDINGS: Final[dict[str, _Kind]] = {
    "job.completed": "completed",
    "job.removed": "removed",
    "job.vacated": "vacated",
    "job.left": "left",
    "job.kept": "kept",
}
"""The events after which a job may be over, and that which keeps it in the queue then."""

_Story = list[tuple[bytes, int]]
"""What was recorded of a job, and when: read only when it has to be."""


class Replay:
    """
    Fed all frames of a schedd's shard from its first one on, it makes the queue as of then.

    Equal to a `Queue` to which the same events were applied (tests/properties/test_queue.py).
    """

    def __init__(self, schedd: str, *, significant: Iterable[str] = ()) -> None:
        self._schedd = schedd
        self._significant = tuple(significant)
        self._clusters: dict[int, tuple[ClusterSubmitted, int]] = {}
        self._left: dict[int, DepartedJobs] = {}
        self._factories: dict[int, Factory] = {}
        self._claims: dict[str, tuple[ClaimGranted, int]] = {}
        self._live: dict[str, _Story] = {}
        self._removed: set[str] = set()
        """Those that have ended, but may have an attempt that lives, or are kept."""
        self._kept: set[str] = set()
        self._newest = 0

    def feed(self, frame: Frame) -> None:
        """
        Fold the events of the next frame.

        Raises:
            Unfit: they do not belong into the shard of a schedd, or do not follow what was fed.
            UnknownEventError: one cannot be read.
        """
        at, live = frame.at, self._live
        for entry in expanded(frame).entries:
            kind = _kind(entry.type)
            if kind == "completed" and entry.stream not in self._kept:
                # It is over, whatever came before (`evolve`).
                live.pop(entry.stream, None)
                self._leave(entry.stream)
            elif kind == "none of a job":
                self._feed_other(entry, at)
            else:
                story = live.get(entry.stream)
                if story is None:
                    story = live[entry.stream] = []
                story.append((entry.data, at))
                if kind != "goes on":
                    self._may_leave(entry.stream, kind)

    def _may_leave(self, stream: str, kind: _Kind) -> None:
        if kind in {"completed", "removed"}:
            self._removed.add(stream)
        if kind == "kept":
            self._kept.add(stream)
            return
        if kind == "left":
            self._kept.discard(stream)
        if stream in self._removed and _read(self._live[stream])[0].over:
            self._removed.discard(stream)
            del self._live[stream]
            self._leave(stream)

    def _feed_other(self, entry: frames.Entry, at: int) -> None:
        event = events.decode(entry.data)
        if isinstance(event, ClaimGranted):
            self._claims[event.claim] = (event, at)
        elif isinstance(event, ClaimEnded):
            self._claims.pop(event.claim, None)
        elif isinstance(event, ClusterSubmitted):
            self._clusters[event.cluster] = (event, at)
            self._left[event.cluster] = DepartedJobs()
            self._newest = max(self._newest, event.cluster)
            if event.late:
                self._factories[event.cluster] = factory.begun(event)
        elif isinstance(event, FactoryEvent):
            if event.cluster not in self._factories:
                raise Unfit(
                    f"{type(event).__name__} of cluster {event.cluster}, which has no factory in the queue"
                )
            self._factories[event.cluster] = factory.evolve(self._factories[event.cluster], event)
            self._forget_empty(event.cluster)
        else:
            raise Unfit(f"an event {type(event).__name__} does not belong into the shard of a schedd")

    def _leave(self, stream: str) -> None:
        job = job_of_stream(stream)
        left = self._left.get(job.cluster)
        if left is None:
            raise Unfit(f"job {job} left a cluster that is not in the queue")
        left.add(job.proc)
        self._forget_empty(job.cluster)

    def _forget_empty(self, cluster: int) -> None:
        made = self._factories.get(cluster)
        size = len(self._clusters[cluster][0].rows) if made is None else made.size
        if len(self._left[cluster]) == size:
            del self._clusters[cluster], self._left[cluster]
            self._factories.pop(cluster, None)

    def queue(self) -> Queue:
        """The queue as of the last event; a new one each time."""
        queue = Queue(self._schedd, significant=self._significant, saved=False)
        queue.newest_cluster = self._newest
        for granted, at in self._claims.values():
            queue.apply(f"claim/{granted.claim}", granted, at)
        known = dict(self._entries())
        for number, (submitted, at) in self._clusters.items():
            gone, made = deepcopy(self._left[number]), self._factories.get(number)
            queue.admit(submitted, at, gone=gone, known=known, factory=made)
        return queue

    def _entries(self) -> Iterator[tuple[JobId, QueuedJob]]:
        """The jobs that something has happened to since they were submitted."""
        bases = {number: fold_base(submitted) for number, (submitted, _) in self._clusters.items()}
        for stream, story in self._live.items():
            job = job_of_stream(stream)
            if job.cluster not in bases or job.proc >= len(self._clusters[job.cluster][0].rows):
                raise Unfit(f"something happened to job {job}, which is not in the queue")
            changed = bases[job.cluster](job.proc)
            state, happened = _read(story)
            entry = FRESH
            for event, at in happened:
                apply(changed, event, at)
                entry = after(entry, state, changed, event)
            yield job, entry


@cache
def _kind(tag: str) -> _Kind:
    """What an event means, of whatever version."""
    return _ENDINGS.get(tag.partition("/")[0], "goes on" if tag.startswith("job.") else "none of a job")


def _read(story: _Story) -> tuple[Job, list[tuple[JobEvent, int]]]:
    job = FRESH.job
    happened: list[tuple[JobEvent, int]] = []
    for data, at in story:
        event = events.decode(data)
        if type(event) not in JOB_EVENTS:
            raise Unfit(f"an event {type(event).__name__} does not belong into the stream of a job")
        of_job = cast("JobEvent", event)
        job = evolve(job, of_job)
        happened.append((of_job, at))
    return job, happened
