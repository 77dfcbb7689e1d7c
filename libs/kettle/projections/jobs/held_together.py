"""
Very many jobs that were held or released at once: what that changes in their rows is the same for all, and is written without a look at each.
"""

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Final

import msgspec

from kettle.eventsourcing.projection import Decoded
from kettle.jobs.history import QueueDepth
from kettle_wire.codes import JobStatus
from kettle_wire.event_expansion import Expanded
from kettle_wire.events import Event, JobHeld, JobReleased
from kettle_wire.frames import Entry, Frame
from kettle_wire.jobs import JobId

FEWEST: Final = 100
"""Jobs from which it is worth statements of its own."""
_FIELDS: Final = {
    JobStatus.IDLE: "idle",
    JobStatus.RUNNING: "running",
    JobStatus.SUSPENDED: "running",
    JobStatus.REMOVED: "removed",
    JobStatus.HELD: "held",
}


class HeldTogether(msgspec.Struct, frozen=True):
    """One event of each of these jobs, which says the same of all."""

    frame: Frame
    event: JobHeld | JobReleased
    data: bytes
    """As it was recorded."""
    jobs: list[JobId]

    @property
    def status(self) -> JobStatus:
        """What they are with it."""
        return JobStatus.HELD if isinstance(self.event, JobHeld) else JobStatus.IDLE

    @property
    def reason(self) -> str | None:
        """Why they are held."""
        return self.event.reason if isinstance(self.event, JobHeld) else None

    def ranges(self) -> Iterator[tuple[int, int, int]]:
        """Cluster, first and last number of jobs that follow each other."""
        first, last = self.jobs[0], self.jobs[0]
        for job in self.jobs[1:]:
            if job.cluster != last.cluster or job.proc != last.proc + 1:
                yield first.cluster, first.proc, last.proc
                first = job
            last = job
        yield first.cluster, first.proc, last.proc


def moved(counts: Sequence[tuple[int, int]], status: JobStatus) -> QueueDepth:
    """By how many an owner's jobs change if so many of each status become this."""
    depth = QueueDepth()
    for was, count in counts:
        for field, number in ((_FIELDS[JobStatus(was)], -count), (_FIELDS[status], count)):
            setattr(depth, field, getattr(depth, field) + number)
    return depth


def in_parts(frames: Sequence[Decoded]) -> Iterator[list[Decoded] | HeldTogether]:
    """Frames in their order, without what is `HeldTogether`, and that between them."""
    plain: list[Decoded] = []
    for frame, events in frames:
        if not isinstance(frame, Expanded) or len(events) < FEWEST:
            plain.append((frame, events))
            continue
        for part in _parts(frame, events):
            if isinstance(part, HeldTogether):
                if plain:
                    yield plain
                    plain = []
                yield part
            else:
                plain.append(part)
    if plain:
        yield plain


def _parts(frame: Expanded, events: Sequence[Event]) -> Iterator[Decoded | HeldTogether]:
    rest: list[tuple[Entry, Event]] = []
    # An event of many jobs is one object for all of them, and as many of these follow each other as it took to record them.
    for _, run in groupby(zip(frame.entries, events, strict=True), key=lambda one: one[0].data):
        some = list(run)
        entry, event = some[0]
        if len(some) >= FEWEST and isinstance(event, JobHeld | JobReleased):
            if rest:
                yield _without_others(frame, rest)
                rest = []
            jobs = [JobId.parse(each.stream.removeprefix("job/")) for each, _ in some]
            yield HeldTogether(frame, event, entry.data, jobs)
        else:
            rest += some
    if rest:
        yield _without_others(frame, rest)


def _without_others(frame: Frame, rest: Sequence[tuple[Entry, Event]]) -> Decoded:
    entries = [entry for entry, _ in rest]
    return Frame(frame.shard, frame.epoch, frame.number, frame.position, frame.at, entries), [
        event for _, event in rest
    ]
