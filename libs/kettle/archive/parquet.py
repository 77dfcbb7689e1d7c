"""
The two Parquet files of a piece: its events in the order of the log, and which group of rows holds which stream.

    events    columns as in log.event, with the shard's name; groups of GROUP rows
    streams   stream, group: sorted, one row for each stream of each group

The events have to be read in the order of the log, so they cannot be sorted by stream; the second file is what an index
is to a table. Pages carry checksums. pyarrow is imported when a file is touched, not before: it is large, and a service
that never reads the archive does without.
"""

import datetime as dt
import functools
import hashlib
import importlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Final, Self

import msgspec

from kettle.archive.errors import ArchiveError, DamagedArchiveError
from kettle.storage.archived_pieces import FRAME, POSITION, EventRow

GROUP: Final = 16_384
"""Rows of a group: what a look-up of one stream reads at least."""

_COLUMNS: Final = ("frame", "pos", "epoch", "ver", "at", "stream", "type", "data", "meta")
_AT: Final = _COLUMNS.index("at")
_STREAM: Final = _COLUMNS.index("stream")
_STREAM_GROUP: Final = 65_536
_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MICROSECOND: Final = dt.timedelta(microseconds=1)
_OPTIONS: Final = {"compression": "zstd", "write_page_checksum": True, "write_page_index": True}

_encode: Final = msgspec.msgpack.Encoder().encode


@functools.cache
def arrow(module: str = "pyarrow") -> Any:
    """
    A module of pyarrow, which has no types of its own.

    Raises:
        ArchiveError: it is not installed.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise ArchiveError(
            "Archived events are Parquet files, and pyarrow is not installed here: install kettle[archive]."
        ) from error


def _schema() -> Any:
    pa = arrow()
    types = {
        "shard": pa.string(),
        "frame": pa.int64(),
        "pos": pa.int64(),
        "epoch": pa.int32(),
        "ver": pa.int32(),
        "at": pa.timestamp("us", tz="UTC"),
        "stream": pa.string(),
        "type": pa.string(),
        "data": pa.binary(),
        "meta": pa.binary(),
    }
    return pa.schema([pa.field(name, kind, nullable=False) for name, kind in types.items()])


class RowsHash:
    """SHA-256 over the msgpack of every row, in order."""

    def __init__(self) -> None:
        self._hash = hashlib.sha256()
        self.rows = 0

    def add(self, rows: Sequence[EventRow]) -> None:
        """Take the next rows in."""
        self._hash.update(b"".join([_encode(tuple(row)) for row in rows]))
        self.rows += len(rows)

    def hex(self) -> str:
        """Of all rows so far."""
        return self._hash.hexdigest()


class EventsWriter:
    """Writes the events of a piece into an open file, and remembers which streams are in which group."""

    def __init__(self, shard: str, file: IO[bytes]) -> None:
        self._shard = shard
        self._writer = arrow("pyarrow.parquet").ParquetWriter(
            file, _schema(), use_dictionary=["shard", "epoch", "at", "stream", "type", "meta"], **_OPTIONS
        )
        self._streams: list[Any] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self._writer.close()
        else:
            self._writer.is_open = False  # no footer: the file is thrown away

    def add(self, rows: Sequence[EventRow]) -> None:
        """Write one group."""
        pa = arrow()
        columns = list(zip(*rows, strict=True))
        table = pa.Table.from_arrays(
            [
                pa.array(values, type=field.type)
                for values, field in zip(([self._shard] * len(rows), *columns), _schema(), strict=True)
            ],
            schema=_schema(),
        )
        self._writer.write_table(table, row_group_size=len(rows))
        streams = table.column("stream").combine_chunks().unique()
        groups = pa.array([len(self._streams)] * len(streams), type=pa.int32())
        self._streams.append(pa.table({"stream": streams, "group": groups}))

    def write_streams(self, file: IO[bytes]) -> None:
        """Write what was remembered."""
        pa = arrow()
        table = pa.concat_tables(self._streams).sort_by([("stream", "ascending"), ("group", "ascending")])
        arrow("pyarrow.parquet").write_table(
            table, file, use_dictionary=False, row_group_size=_STREAM_GROUP, **_OPTIONS
        )


def _refuse(path: Path, error: Exception) -> DamagedArchiveError:
    return DamagedArchiveError(f"{path} is damaged: {error}. Bring it back from a copy.")


def read_events(
    path: Path, *, after: tuple[int, int] = (0, 0), until: int | None = None
) -> Iterator[list[EventRow]]:
    """
    The events with `after < (frame, pos)` and `frame <= until`, in order, a group at a time.

    Raises:
        DamagedArchiveError: a page is not what its checksum says, or this is no Parquet file.
    """
    pq = arrow("pyarrow.parquet")
    try:
        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            for group in range(file.metadata.num_row_groups):
                first, last = _range(file.metadata.row_group(group))
                if last <= after:
                    continue
                if until is not None and first[0] > until:
                    return
                rows = _rows(file.read_row_group(group))
                if first <= after or (until is not None and last[0] > until):
                    rows = [
                        r
                        for r in rows
                        if (r[FRAME], r[POSITION]) > after and (until is None or r[FRAME] <= until)
                    ]
                if rows:
                    yield rows
    except (arrow().ArrowException, OSError) as error:
        raise _refuse(path, error) from error


def _range(group: Any) -> tuple[tuple[int, int], tuple[int, int]]:
    """Frame and position of the first and of the last row: both rise through the file."""
    frames, positions = (group.column(1 + index).statistics for index in (FRAME, POSITION))
    return (frames.min, positions.min), (frames.max, positions.max)


def read_stream(events: Path, streams: Path, stream: str) -> list[EventRow]:
    """
    The events of one stream, in order.

    Raises:
        DamagedArchiveError: as `read_events`.
    """
    pq, compute = arrow("pyarrow.parquet"), arrow("pyarrow.compute")
    path = streams
    try:
        found = pq.read_table(
            streams, columns=["group"], filters=[("stream", "==", stream)], page_checksum_verification=True
        )
        groups = found.column("group").to_pylist()
        if not groups:
            return []
        path = events
        with pq.ParquetFile(events, page_checksum_verification=True) as file:
            table = file.read_row_groups(groups)
    except (arrow().ArrowException, OSError) as error:
        raise _refuse(path, error) from error
    return _rows(table.filter(compute.equal(table.column("stream"), stream)))


def _rows(table: Any) -> list[EventRow]:
    columns = {name: table.column(name) for name in _COLUMNS}
    columns["at"] = columns["at"].cast(arrow().int64())
    lists = [column.to_pylist() for column in columns.values()]
    lists[_AT] = [_EPOCH + us * _MICROSECOND for us in lists[_AT]]
    return list(zip(*lists, strict=True))
