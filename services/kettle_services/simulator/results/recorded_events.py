"""What happened in a simulated pool, as the archive of a log."""

from pathlib import Path
from types import TracebackType
from typing import Final, Self

from kettle.archive import LogFiles
from kettle_wire.events import Event

_TOGETHER: Final = 10_000
"""So many events of one moment are one frame."""


class RecordedEvents:
    """
    Called with each event of one simulated schedd, in order, as a context in which the simulation runs.

    Errors: ArchiveError: the files cannot be written.
    """

    def __init__(self, directory: Path, shard: str) -> None:
        self._files = LogFiles(directory, shard)
        self._shard = shard
        self._at = 0
        self._events: list[tuple[str, Event]] = []

    def __enter__(self) -> Self:
        self._files.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self._write()
        self._files.__exit__(kind, error, trace)

    def __call__(self, at: int, shard: str, stream: str, event: Event) -> None:
        """One event, at a moment in microseconds."""
        assert shard == self._shard, "one schedd is simulated"
        if at != self._at or len(self._events) >= _TOGETHER:
            self._write()
            self._at = at
        self._events.append((stream, event))

    def _write(self) -> None:
        if self._events:
            self._files.append(self._at, self._events)
            self._events = []
