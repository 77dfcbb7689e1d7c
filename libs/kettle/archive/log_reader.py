"""The events of an archive that is all there is of a log: read by its manifests, without a database."""

import datetime as dt
import urllib.parse
from collections.abc import AsyncIterator, Callable, Sequence
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, Final

import msgspec

from kettle.archive.errors import ArchiveError, DamagedArchiveError
from kettle.archive.manifest import NAME, read_manifest
from kettle.archive.reader import FileArchives
from kettle.eventsourcing.log import IMPORTED, Tenure
from kettle.storage.archived_pieces import FRAME, POSITION, EventRow
from kettle_wire.event_expansion import stream_of_many, with_those_of_many
from kettle_wire.frames import Entry, Frame

_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MICROSECOND: Final = dt.timedelta(microseconds=1)
_BEYOND: Final = 1 << 62
_columns_of_entry: Final[Callable[[Any], tuple[str, int, str, bytes, bytes]]] = itemgetter(5, 3, 6, 7, 8)


def archived_shards(directory: Path) -> list[str]:
    """
    The names of the shards that an archive directory has, in order.

    Raises:
        ArchiveError: there is none.
    """
    found = sorted(urllib.parse.unquote(path.parent.name) for path in directory.glob(f"*/{NAME}"))
    if not found:
        raise ArchiveError(f"{directory} is no archive of events: no directory in it has a {NAME}.")
    return found


async def archived_frames(
    directory: Path, shard: str, *, after: int = 0, until: int | None = None
) -> AsyncIterator[Frame]:
    """
    All frames of a shard, or those with `after < number <= until`, in order; each file is compared with its hash first.

    Raises:
        DamagedArchiveError: a file is not what the manifest says, or the shard's first events are not in the archive.
    """
    archives, unfinished, position = FileArchives(directory), None, 0
    last = _BEYOND if until is None else until
    for piece in read_manifest(directory, shard).pieces:
        if piece.first_position != position + 1:
            raise DamagedArchiveError(
                f"{directory}: {piece} does not follow position {position}: it is not the whole log of {shard}."
            )
        position = piece.last_position
        if piece.last_frame <= after or piece.first_frame > last:
            continue
        async for rows in archives.events(piece, after=(after, _BEYOND), until=last):
            for number, group in groupby(rows, key=itemgetter(FRAME)):
                some = _frame(shard, list(group))
                if unfinished is not None and unfinished.number == number:
                    entries = [*unfinished.entries, *some.entries]
                    unfinished = msgspec.structs.replace(unfinished, entries=entries)
                    continue
                if unfinished is not None:
                    yield unfinished
                unfinished = some
    if unfinished is not None:
        yield unfinished


class ArchivedLog:
    """
    The log of an archive that is all there is of it, for those who read: see `ReadableLog`, and `Log.stream`.

    Errors: ArchiveError: there is no archive; DamagedArchiveError: as `archived_frames` says.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._archives = FileArchives(directory)

    async def shards(self) -> list[Tenure]:
        """All shards, by name."""
        return [self._tenure(shard) for shard in archived_shards(self._directory)]

    async def tenure(self, shard: str) -> Tenure | None:
        """Where a shard ends; None if there is no such shard."""
        return self._tenure(shard) if shard in archived_shards(self._directory) else None

    def _tenure(self, shard: str) -> Tenure:
        pieces = read_manifest(self._directory, shard).pieces
        if not pieces:
            raise DamagedArchiveError(f"{self._directory}: the manifest of {shard} names no piece.")
        last = pieces[-1]
        return Tenure(shard=shard, epoch=1, owner=IMPORTED, head=last.last_position, frame=last.last_frame)

    def read(self, shard: str, *, after: int = 0, until: int | None = None) -> AsyncIterator[Frame]:
        """See `ReadableLog.read`."""
        return archived_frames(self._directory, shard, after=after, until=until)

    async def stream(self, shard: str, stream: str) -> list[tuple[Frame, int]]:
        """See `Log.stream`."""
        other = stream_of_many(stream)
        own, together = await self._events(shard, stream), await self._events(shard, other) if other else []
        return with_those_of_many(own, together, stream)

    async def _events(self, shard: str, stream: str) -> list[tuple[Frame, int]]:
        return [
            (_frame(shard, [row]), int(row[POSITION]))
            for piece in read_manifest(self._directory, shard).pieces
            for row in await self._archives.stream(piece, stream)
        ]


def _frame(shard: str, rows: Sequence[EventRow]) -> Frame:
    number, position, epoch, _, at = rows[0][:5]
    assert isinstance(at, dt.datetime)
    assert isinstance(number, int)
    assert isinstance(position, int)
    assert isinstance(epoch, int)
    entries = [Entry(*_columns_of_entry(row)) for row in rows]  # the file says of each column what it is
    return Frame(shard, epoch, number, position, (at - _EPOCH) // _MICROSECOND, entries)
