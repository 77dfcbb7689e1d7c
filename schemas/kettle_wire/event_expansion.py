"""
The single events of jobs and clusters that one recorded event represents: this is the only place where they are expanded.

Numbers (positions, versions, frames), the bus and the archive refer to recorded events. Code that asks what has
happened to a job or a cluster reads a frame `expanded`.
"""

from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from kettle_wire.events import (
    ClustersSubmitted,
    ClusterSubmitted,
    Event,
    JobsChanged,
    UnknownEventError,
    decode,
    encode,
    tag_of,
)
from kettle_wire.frames import Entry, Frame
from kettle_wire.jobs import JobId

STREAM: Final = "jobs/"
"""How the streams of events of many jobs begin; the cluster's number follows."""
CLUSTERS: Final = "clusters/"
"""How those of many submissions begin; the first number of a span of clusters follows, all of which are in it."""
SPAN: Final = 500
"""
Clusters of which submissions are in one stream, if they were recorded together: an event is of one span. Never changed.
"""
_TYPES: Final = ("jobs.", "clusters.")
_JOB: Final = "job/"
_CLUSTER: Final = "cluster/"


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
    """Whether an entry is one event of many jobs, or of many clusters."""
    return entry.type.startswith(_TYPES)


def stream_of_cluster(cluster: int) -> str:
    """The stream of what is recorded of many jobs of a cluster."""
    return f"{STREAM}{cluster}"


def stream_of_span(cluster: int) -> str:
    """The stream of submissions that are recorded together with that of this cluster."""
    return f"{CLUSTERS}{cluster - cluster % SPAN}"


def stream_of_many(stream: str) -> str | None:
    """Where else events of a stream may be recorded, for it and others; None: nowhere else."""
    if stream.startswith(_JOB):
        return f"{STREAM}{stream.removeprefix(_JOB).partition('.')[0]}"
    if stream.startswith(_CLUSTER) and (number := stream.removeprefix(_CLUSTER)).isdecimal():
        return stream_of_span(int(number))
    return None


def each(entry: Entry) -> Iterator[Entry]:
    """
    What an entry stands for: itself, or one entry for each of its jobs or clusters. Raises UnknownEventError.
    """
    if not stands_for_many(entry):
        yield entry
        return
    event = many(entry)
    if isinstance(event, ClustersSubmitted):
        yield from map(_submission, event.each())
        return
    data = bytes(event.data)
    for procs in event.jobs:
        for proc in range(procs.first, procs.first + procs.count):
            yield Entry(f"{_JOB}{event.cluster}.{proc}", procs.version, event.type, data)


def _submission(event: ClusterSubmitted) -> Entry:
    """The first and only event of the stream of a cluster."""
    return Entry(f"{_CLUSTER}{event.cluster}", 1, tag_of(event), encode(event))


def of_stream(entry: Entry, stream: str) -> Entry | None:
    """What an entry says of the job or cluster of a stream; None: nothing. Raises UnknownEventError."""
    if not stands_for_many(entry):
        return entry if entry.stream == stream else None
    event = many(entry)
    if isinstance(event, ClustersSubmitted):
        number = stream.removeprefix(_CLUSTER)
        if not number.isdecimal() or not 0 <= int(number) - event.first < len(event.rows):
            return None
        return _submission(event.one(int(number)))
    if not stream.startswith(_JOB):
        return None
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
    All events of a stream in order, from its own and from those of many jobs or clusters: each a frame that holds just the
    entry, and its position. Raises UnknownEventError.
    """
    found = list(own)
    for frame, position in together:
        if (entry := of_stream(frame.entries[0], stream)) is not None:
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
    return sum(singles_of(many(entry)) if stands_for_many(entry) else 1 for entry in frame.entries)


def singles_of(event: Event) -> int:
    """How many single events an event stands for."""
    match event:
        case JobsChanged():
            return sum(procs.count for procs in event.jobs)
        case ClustersSubmitted():
            return len(event.rows)
        case _:
            return 1


def many(entry: Entry) -> JobsChanged | ClustersSubmitted:
    """An event of many jobs or clusters. Raises UnknownEventError."""
    event = decode(entry.data)
    if not isinstance(event, JobsChanged | ClustersSubmitted):
        raise UnknownEventError(f"an event {entry.type} is none of many jobs or clusters")
    return event
