"""The events of an archive that is all there is of a log: read by its manifests, without a database."""

import datetime as dt
import urllib.parse
from collections.abc import AsyncIterator
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Final

import msgspec

from kettle.archive.errors import ArchiveError, DamagedArchiveError
from kettle.archive.manifest import NAME, read_manifest
from kettle.archive.reader import FileArchives
from kettle.storage.archived_pieces import FRAME
from kettle_wire.frames import Entry, Frame

_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MICROSECOND: Final = dt.timedelta(microseconds=1)
_BEYOND: Final = 1 << 62


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


async def archived_frames(directory: Path, shard: str) -> AsyncIterator[Frame]:
    """
    All frames of a shard, in order; each file is compared with its hash first.

    Raises:
        DamagedArchiveError: a file is not what the manifest says, or the shard's first events are not in the archive.
    """
    archives, unfinished, position = FileArchives(directory), None, 0
    for piece in read_manifest(directory, shard).pieces:
        if piece.first_position != position + 1:
            raise DamagedArchiveError(
                f"{directory}: {piece} does not follow position {position}: it is not the whole log of {shard}."
            )
        position = piece.last_position
        async for rows in archives.events(piece, after=(0, 0), until=_BEYOND):
            for number, group in groupby(rows, key=itemgetter(FRAME)):
                some = _frame(shard, [tuple(row) for row in group])
                if unfinished is not None and unfinished.number == number:
                    entries = [*unfinished.entries, *some.entries]
                    unfinished = msgspec.structs.replace(unfinished, entries=entries)
                    continue
                if unfinished is not None:
                    yield unfinished
                unfinished = some
    if unfinished is not None:
        yield unfinished


def _frame(shard: str, rows: list[tuple[object, ...]]) -> Frame:
    number, position, epoch, _, at, *_ = rows[0]
    assert isinstance(at, dt.datetime)
    assert isinstance(number, int)
    assert isinstance(position, int)
    assert isinstance(epoch, int)
    entries = [msgspec.convert((row[5], row[3], *row[6:]), Entry) for row in rows]
    return Frame(shard, epoch, number, position, (at - _EPOCH) // _MICROSECOND, entries)
