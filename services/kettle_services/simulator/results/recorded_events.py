"""What happened in a simulated pool, as the archive of a log."""

from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from kettle.archive import LogFiles
from kettle_services.simulator.results.run_description import FILE, RunDescription, written
from kettle_wire.events import Event

_TOGETHER: Final = 10_000
"""So many events of one moment are one frame."""


class RecordedEvents:
    """
    Called with each event of a simulated pool, those of each shard in order, as a context in which the simulation runs.

    Errors: ArchiveError: the files cannot be written. OSError: nor can the description of the run.
    """

    def __init__(self, directory: Path, description: RunDescription) -> None:
        self._directory, self._description = directory, description
        self._files = ExitStack()
        self._shards: dict[str, _ShardFiles] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            for shard in self._shards.values():
                shard.write()
        self._files.__exit__(kind, error, trace)
        if kind is None and self._directory.is_dir():
            (self._directory / FILE).write_bytes(written(self._description))

    def __call__(self, at: int, shard: str, stream: str, event: Event) -> None:
        """One event, at a moment in microseconds."""
        there = self._shards.get(shard)
        if there is None:
            files = self._files.enter_context(LogFiles(self._directory, shard))
            there = self._shards[shard] = _ShardFiles(files)
        there.add(at, stream, event)


class _ShardFiles:
    """The files of one shard, and the events of its next frame."""

    def __init__(self, files: LogFiles) -> None:
        self._files = files
        self._at = 0
        self._events: list[tuple[str, Event]] = []

    def add(self, at: int, stream: str, event: Event) -> None:
        """One event."""
        if at != self._at or len(self._events) >= _TOGETHER:
            self.write()
            self._at = at
        self._events.append((stream, event))

    def write(self) -> None:
        """The frame of those that were added since the last one."""
        if self._events:
            self._files.append(self._at, self._events)
            self._events = []
