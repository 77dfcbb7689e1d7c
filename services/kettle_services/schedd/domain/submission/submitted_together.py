"""
Clusters of one job each that were submitted with one event: what the working set keeps of them, and for how long.

A row has the event, and others which of its clusters have left; they go with the last of these. The stream of the event has a
row, too, as long as it may have more events: the next one needs its version.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from kettle_services.schedd.domain.queue.rows import LEFT, Change
from kettle_services.schedd.domain.submission.departed import DepartedJobs
from kettle_wire.ads import Ad, Scalar
from kettle_wire.event_expansion import SPAN, stream_of_span
from kettle_wire.events import ClustersSubmitted

_encode: Final = msgspec.msgpack.Encoder().encode
_NOTHING: Final = _encode(None)
_FIRST: Final = "#"
"""What is before the number of the first cluster in the names of rows."""


def recorded_as(
    first: int, owner: str, ad: Ad, columns: list[str], rows: list[list[Scalar]]
) -> Iterator[ClustersSubmitted]:
    """The events of clusters from the number `first` on, one of each row: each is of one stream."""
    start = 0
    while start < len(rows):
        number = first + start
        end = start + SPAN - number % SPAN
        yield ClustersSubmitted(first=number, owner=owner, ad=ad, columns=columns, rows=rows[start:end])
        start = end


class Together(msgspec.Struct):
    """Clusters that were submitted with one event."""

    first: int
    count: int
    gone: DepartedJobs
    """Which of them have left, the first one being number 0."""

    @property
    def stream(self) -> str:
        """Of their event."""
        return stream_of_span(self.first)

    @property
    def row(self) -> str:
        """The name of the row that has their event."""
        return f"{self.stream}{_FIRST}{self.first}"


class SubmittedTogether:
    """All such clusters of a queue, by the streams of their events."""

    def __init__(self) -> None:
        self._streams: Counter[str] = Counter()
        """How many events of each have clusters in the queue. Those that may have more events are here with none."""

    def submitted(self, event: ClustersSubmitted, at: int) -> tuple[Together, list[Change]]:
        """Clusters come into the queue."""
        group = Together(event.first, len(event.rows), DepartedJobs())
        past = [stream for stream, count in self._streams.items() if not count and stream != group.stream]
        for stream in past:
            del self._streams[stream]
        self._streams[group.stream] += 1
        rows = [Change(group.stream, _NOTHING), Change(group.row, _encode((event, at)))]
        return group, [*rows, *(Change(stream, None) for stream in past)]

    def left(self, group: Together, cluster: int, newest: int) -> list[Change]:
        """One of them has left; `newest`: the number that was given last."""
        place = cluster - group.first
        group.gone.add(place)
        if len(group.gone) < group.count:
            end, row = group.gone.row(place)
            return [Change(f"{group.row}{LEFT}{end}", row)]
        rows = [
            Change(group.row, None),
            *(Change(f"{group.row}{LEFT}{end}", None) for end in group.gone.rows),
        ]
        self._streams[group.stream] -= 1
        if not self._streams[group.stream] and stream_of_span(newest + 1) != group.stream:
            del self._streams[group.stream]
            rows.append(Change(group.stream, None))
        return rows

    def restore(
        self, rows: Iterable[tuple[str, bytes]], gone: dict[str, DepartedJobs]
    ) -> Iterator[tuple[DepartedJobs, bytes]]:
        """
        Take over what the working set says of them: by event which have left, and the event as it is stored. `gone`: by row.
        """
        for name, state in rows:
            stream, _, first = name.partition(_FIRST)
            self._streams[stream] += bool(first)
            if first:
                yield gone.get(name, DepartedJobs()), state
