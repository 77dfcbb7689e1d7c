"""
The single events of jobs that one recorded event represents: this is the only place where they are expanded.

Numbers (positions, versions, frames), the bus and the archive refer to recorded events. Code that asks what has
happened to a job reads a frame `expanded`.
"""

from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from kettle_wire.events import Event, JobsChanged, UnknownEventError, decode
from kettle_wire.frames import Entry, Frame
from kettle_wire.jobs import JobId

STREAM: Final = "jobs/"
"""How the streams of such events begin; the cluster's number follows."""
_TYPE: Final = "jobs."
_JOB: Final = "job/"


class Expanded(Frame, frozen=True, array_like=True):
    """A frame with the single events instead of those that stand for many; it is never written anywhere."""

    places: list[int]
    """By entry, the place of what was recorded in the frame as it was recorded."""

    def position_of(self, index: int) -> int:
        """See `Frame.position_of`: that of the event that stands for it."""
        return self.position + self.places[index]

    @property
    def head(self) -> int:
        """See `Frame.head`."""
        return self.position_of(-1)


def stands_for_many(entry: Entry) -> bool:
    """Whether an entry is one event of many jobs."""
    return entry.type.startswith(_TYPE)


def stream_of_cluster(cluster: int) -> str:
    """The stream of what is recorded of many jobs of a cluster."""
    return f"{STREAM}{cluster}"


def stream_of_many(stream: str) -> str | None:
    """Where else events of a stream may be recorded, for it and others; None: nowhere else."""
    if not stream.startswith(_JOB):
        return None
    return f"{STREAM}{stream.removeprefix(_JOB).partition('.')[0]}"


def each(entry: Entry) -> Iterator[Entry]:
    """What an entry stands for: itself, or one entry for each of its jobs. Raises UnknownEventError."""
    if not stands_for_many(entry):
        yield entry
        return
    event = many(entry)
    data = bytes(event.data)
    for procs in event.jobs:
        for proc in range(procs.first, procs.first + procs.count):
            yield Entry(f"{_JOB}{event.cluster}.{proc}", procs.version, event.type, data)


def of_job(entry: Entry, stream: str) -> Entry | None:
    """What an entry says of the job of a stream; None: nothing. Raises UnknownEventError."""
    if not stands_for_many(entry):
        return entry if entry.stream == stream else None
    event = many(entry)
    job = JobId.parse(stream.removeprefix(_JOB))
    if job.cluster != event.cluster:
        return None
    for procs in event.jobs:
        if procs.first <= job.proc < procs.first + procs.count:
            return Entry(stream, procs.version, event.type, bytes(event.data))
    return None


def expanded(frame: Frame) -> Frame:
    """A frame with the single events of its jobs: itself, mostly. Raises UnknownEventError."""
    if isinstance(frame, Expanded) or not any(map(stands_for_many, frame.entries)):
        return frame
    entries: list[Entry] = []
    places: list[int] = []
    for place, entry in enumerate(frame.entries):
        entries += each(entry)
        places += [place] * (len(entries) - len(places))
    return Expanded(frame.shard, frame.epoch, frame.number, frame.position, frame.at, entries, places)


def with_those_of_many(
    own: Sequence[tuple[Frame, int]], together: Sequence[tuple[Frame, int]], stream: str
) -> list[tuple[Frame, int]]:
    """
    All events of a job's stream in order, from its own and from those of many jobs of its cluster: each a frame that holds
    just the entry, and its position. Raises UnknownEventError.
    """
    found = list(own)
    for frame, position in together:
        if (entry := of_job(frame.entries[0], stream)) is not None:
            found.append((msgspec.structs.replace(frame, entries=[entry]), position))
    return sorted(found, key=lambda one: one[0].entries[0].version)


def events_of(frame: Frame) -> list[Event]:
    """The events of a frame that is expanded; of many jobs it is one object. Raises UnknownEventError."""
    events: list[Event] = []
    read = b""
    for entry in frame.entries:
        if entry.data is read:
            events.append(events[-1])
        else:
            events.append(decode(entry.data))
            read = entry.data
    return events


def size(frame: Frame) -> int:
    """How many single events it comes to. Raises UnknownEventError."""
    return sum(
        sum(procs.count for procs in many(entry).jobs) if stands_for_many(entry) else 1
        for entry in frame.entries
    )


def many(entry: Entry) -> JobsChanged:
    """An event of many jobs. Raises UnknownEventError."""
    event = decode(entry.data)
    if not isinstance(event, JobsChanged):
        raise UnknownEventError(f"an event {entry.type} is none of many jobs")
    return event
