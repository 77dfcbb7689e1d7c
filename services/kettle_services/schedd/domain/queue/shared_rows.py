"""
What was recorded of many jobs of one cluster at once, as the working set has it: a row is of many jobs, and those that are alike and
follow each other are one line of it.

A job of which something is recorded alone afterwards has a row of its own, which counts instead.  When something is recorded of many again,
it is here again, and its own row goes.
"""

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Final

import msgspec

from kettle_services.schedd.domain.queue.entry import QueuedJob
from kettle_services.schedd.domain.queue.saved_jobs import entry_of, row_of
from kettle_wire.event_expansion import stream_of_cluster

PAGE: Final = 1024
"""Jobs of one row."""
ROW: Final = "#"
"""Before the number of a row, in its name."""
_encode: Final = msgspec.msgpack.Encoder().encode


class _Line(msgspec.Struct, frozen=True, array_like=True):
    """Jobs that are alike, from number `first` on."""

    first: int
    count: int
    version: int
    """Of the stream of each."""
    state: msgspec.Raw


_decode: Final = msgspec.msgpack.Decoder(list[_Line]).decode


class SharedState(msgspec.Struct, frozen=True, gc=False):
    """What was recorded last of many jobs, and the version that their streams have with it."""

    entry: QueuedJob
    version: int


class SharedRows:
    """Of one cluster."""

    def __init__(self, cluster: int) -> None:
        self._stream: Final = stream_of_cluster(cluster)
        self._states: list[SharedState | None] = []
        """By number of the job."""
        self._rows: set[str] = set()
        self._newest: SharedState | None = None

    def version(self, proc: int, entry: QueuedJob) -> int:
        """
        The version of the stream of a job, whose entry this is; 0: nothing was recorded of it, or something alone.
        """
        state = self._states[proc] if proc < len(self._states) else None
        return state.version if state is not None and state.entry is entry else 0

    def entry(self, proc: int) -> QueuedJob | None:
        """What a job is according to these rows."""
        state = self._states[proc] if proc < len(self._states) else None
        return None if state is None else state.entry

    def newest(self, version: int) -> QueuedJob | None:
        """
        What was recorded last, if it has this version: if the next is equal to it, it is taken for it, so that they are one line.
        """
        newest = self._newest
        return newest.entry if newest is not None and newest.version == version else None

    def change(self, ranges: Sequence[tuple[int, int]], entry: QueuedJob, version: int) -> None:
        """Something was recorded of jobs: of so many from each of these numbers on."""
        newest = self._newest
        if newest is None or newest.entry is not entry:
            newest = self._newest = SharedState(entry, version)
        for first, count in ranges:
            self._put(first, count, newest)

    def _put(self, first: int, count: int, state: SharedState) -> None:
        if len(self._states) < first:
            self._states.extend([None] * (first - len(self._states)))
        self._states[first : first + count] = [state] * count

    # -- rows --------------------------------------------------------------------------------------------------------

    def row(self, page: int) -> tuple[str, bytes]:
        """The name of a row, and what it has."""
        self._rows.add(name := f"{self._stream}{ROW}{page}")
        return name, _encode(list(self._lines(page)))

    def _lines(self, page: int) -> Iterator[_Line]:
        first = page * PAGE
        for _, run in groupby(self._states[first : first + PAGE], key=id):
            states = list(run)
            if (state := states[0]) is not None:
                yield _Line(first, len(states), state.version, msgspec.Raw(row_of(state.entry)))
            first += len(states)

    @property
    def rows(self) -> list[str]:
        """The names of all rows that there are, that of the stream included."""
        return [self._stream, *sorted(self._rows)]

    def read(self, name: str, row: bytes, known: dict[tuple[int, bytes], SharedState]) -> None:
        """Take over what was saved; `known`: what was read before."""
        self._rows.add(name)
        for line in _decode(row):
            key = line.version, bytes(line.state)
            if key not in known:
                known[key] = SharedState(entry_of(key[1]), line.version)
            self._put(line.first, line.count, known[key])
