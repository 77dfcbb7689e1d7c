"""
A log that never was in a database, written as the archive of one: of a simulated pool, for example.

    with LogFiles(directory, "schedd.simulated") as files:
        files.append(at, [(stream, event)])

The same events give the same bytes: nothing in the files says when or by whom they were written.
"""

import datetime as dt
from collections import Counter
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from kettle.archive.errors import ArchiveError
from kettle.archive.manifest import add_to_manifest, make_directory, new_file, put_in_place, settle
from kettle.archive.parquet import GROUP, EventsWriter, RowsHash
from kettle.archive.piece_writer import described
from kettle.storage.archived_pieces import FRAME, POSITION, EventRow, Piece
from kettle_wire.events import Event, encode, tag_of

PIECE: Final = 1 << 24
"""Positions in a piece, as in a new shard of a database."""
_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_AT: Final = 4


class LogFiles:
    """
    The files of one new shard below an archive directory, as a context; they are there when it ends without an error.

    Errors: ArchiveError: the directory has events of that shard already, or cannot be written, or pyarrow is missing.
    """

    def __init__(self, directory: Path, shard: str, *, piece_events: int = PIECE) -> None:
        self._directory, self._shard, self._piece_events = directory, shard, piece_events
        self._versions: Counter[str] = Counter()
        self._frame = self._position = 0
        self._rows: list[EventRow] = []
        self._piece: _PieceFiles | None = None

    def __enter__(self) -> Self:
        home = make_directory(self._directory, self._shard)
        if any(home.iterdir()):
            raise ArchiveError(f"{home} holds events already; name a directory of which nothing is there.")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self._write()
            self._close()
        elif self._piece is not None and error is not None:
            self._piece.drop(error)

    def append(self, at: int, events: Iterable[tuple[str, Event]]) -> None:
        """
        A frame: events by their streams, that were decided at one moment (microseconds since the epoch).
        """
        self._frame += 1
        when = _EPOCH + dt.timedelta(microseconds=at)
        for stream, event in events:
            if self._position and (self._position + 1) % self._piece_events == 0:
                self._write()
                self._close()
            self._position += 1
            self._versions[stream] += 1
            version = self._versions[stream]
            kind, data = tag_of(event), encode(event)
            self._rows.append((self._frame, self._position, 1, version, when, stream, kind, data, b""))
            if len(self._rows) == GROUP:
                self._write()

    def _write(self) -> None:
        if not self._rows:
            return
        if self._piece is None:
            number = int(self._rows[0][POSITION]) // self._piece_events
            self._piece = _PieceFiles(self._directory, self._shard, number)
        self._piece.add(self._rows)
        self._rows = []

    def _close(self) -> None:
        if self._piece is not None:
            self._piece.close()
            self._piece = None


class _PieceFiles:
    """The two files of a piece that is being written."""

    def __init__(self, directory: Path, shard: str, number: int) -> None:
        self._directory, self._shard, self._number = directory, shard, number
        self._files = ExitStack()
        home = make_directory(directory, shard)
        self._events, self._events_path = self._files.enter_context(new_file(home))
        self._streams, self._streams_path = self._files.enter_context(new_file(home))
        self._writing = ExitStack()
        self._writer = self._writing.enter_context(EventsWriter(shard, self._events))
        self._hash = RowsHash()
        self._first: EventRow = ()
        self._last: EventRow = ()

    def add(self, rows: list[EventRow]) -> None:
        """The next rows, of which the last is the latest."""
        self._writer.add(rows)
        self._hash.add(rows)
        self._first, self._last = self._first or rows[0], rows[-1]

    def drop(self, error: BaseException) -> None:
        """It is not wanted, because of an error."""
        self._writing.__exit__(type(error), error, None)
        self._files.close()

    def close(self) -> None:
        """Put it in place."""
        with self._files:
            self._writing.close()
            self._writer.write_streams(self._streams)
            settle(self._events)
            settle(self._streams)
            paths = {"events": self._events_path, "streams": self._streams_path}
            files = {kind: described(self._shard, self._number, kind, path) for kind, path in paths.items()}
            piece = Piece(
                shard=self._shard,
                piece=self._number,
                first_position=self._first[POSITION],
                last_position=self._last[POSITION],
                first_frame=self._first[FRAME],
                last_frame=self._last[FRAME],
                first_at=self._first[_AT],
                last_at=self._last[_AT],
                rows_sha256=self._hash.hex(),
                events=files["events"],
                streams=files["streams"],
            )
            for kind, path in paths.items():
                put_in_place(path, self._directory / files[kind].path)
            add_to_manifest(self._directory, piece)
