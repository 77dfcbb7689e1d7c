"""
Reads a shard's events wherever they are: old pieces from the archive, the rest from the table.

A piece may be dropped from the table between two pages. A reader knows which position or frame comes next, so it
notices, and looks for the piece in the archive: the transaction that dropped it has put it there.
"""

import datetime as dt
from collections.abc import AsyncIterator, Iterable, Sequence
from itertools import repeat
from typing import Final

import msgspec

from kettle.eventsourcing.log import LogError
from kettle.storage.database import Database
from kettle.storage.pieces import FRAME, POSITION, VERSION, Archives, EventRow, Piece, piece_of
from kettle.storage.queries import QUERIES

PAGE_ROWS: Final = 1_000
PAGE_BYTES: Final = 8 * 1024 * 1024
"""About so much of the events themselves is read at once, and at least one event: submissions may be large."""

_BEYOND: Final = 1 << 62
"""Greater than every position."""


class ShardKey(msgspec.Struct, frozen=True):
    """
    What never changes about a shard.
    """

    id: int
    name: str
    piece_events: int


async def pieces(database: Database, shard: ShardKey, *, position: int = 0, frame: int = 0) -> list[Piece]:
    """
    The archived pieces that hold a position or frame from these on, oldest first.
    """
    rows = await database.run(lambda c: c.fetch(QUERIES["archived"], shard.id, position, frame))
    return [piece_of(row) for row in rows]


async def events(
    database: Database, archives: Archives, shard: ShardKey, *, after: int, until: int
) -> AsyncIterator[Sequence[EventRow]]:
    """
    All events of the frames with `after < number <= until`, in order, some at a time.

    Raises:
        LogError: events are neither in the table nor in the archive, or the archive cannot be read.
    """
    place = _Place(shard, after)
    while place.frame < until or place.may_go_on:
        at = (place.frame, place.position or _BEYOND)
        rows = await _page(database, shard, at, until)
        if not place.is_followed_by(rows, until):
            gone = await _next(database, place)
            if gone is not None and gone.first_frame <= until:
                was = place.position
                async for rows in archives.events(gone, after=at, until=until):
                    place.move(rows)
                    yield rows
                if place.position == was:
                    raise LogError(f"{gone} has nothing after {place}: the archive is not what it was")
                continue
            if not place.is_complete(rows, until):
                raise LogError(
                    f"{shard.name}: what follows {place} is neither in the database nor in its archive; "
                    f"`kettle log check` tells how much is missing"
                )
        if not rows:
            return
        place.move(rows)
        yield rows


async def _page(database: Database, shard: ShardKey, at: tuple[int, int], until: int) -> Sequence[EventRow]:
    frames = await database.run(
        lambda c: c.fetch(QUERIES["read"], shard.id, *at, until, PAGE_ROWS, PAGE_BYTES)
    )
    return [
        row
        for frame, epoch, when, positions, *rest in frames
        for row in _rows(repeat(frame), repeat(epoch), repeat(when), positions, *rest)
    ]


def _rows(
    frames: Iterable[int],
    epochs: Iterable[int],
    times: Iterable[dt.datetime],
    positions: Iterable[int],
    versions: Iterable[int],
    *rest: Iterable[str | bytes],
) -> Iterable[EventRow]:
    return zip(frames, positions, epochs, versions, times, *rest, strict=False)


async def _next(database: Database, place: "_Place") -> Piece | None:
    """
    The archived piece in which the next event must be, if it is in one.
    """
    if place.position is None:
        found = await pieces(database, place.shard, frame=place.frame + 1)
    else:
        found = await pieces(database, place.shard, position=place.position + 1)
    return found[0] if found else None


class _Place:
    """
    How far a reader has come: its last frame, and the position of its last event if it has read one.
    """

    def __init__(self, shard: ShardKey, frame: int) -> None:
        self.shard = shard
        self.frame = frame
        self.position: int | None = None

    def __str__(self) -> str:
        return f"frame {self.frame}" + (f" (position {self.position})" if self.position else "")

    @property
    def may_go_on(self) -> bool:
        """
        Whether there may be more events of the same frame.
        """
        return self.position is not None

    def move(self, rows: Sequence[EventRow]) -> None:
        """
        Go behind rows, which must be what comes next.
        """
        first, last = rows[0], rows[-1]
        if not self._continues(first) or last[POSITION] - first[POSITION] != len(rows) - 1:
            raise LogError(
                f"{self.shard.name}: {len(rows)} events at positions {first[POSITION]} to {last[POSITION]} "
                f"do not follow {self} without a gap; `kettle log check` tells more"
            )
        self.frame, self.position = last[FRAME], last[POSITION]

    def is_followed_by(self, rows: Sequence[EventRow], until: int) -> bool:
        """
        Whether a page of the table is certainly what comes next, so that no piece was dropped in between.
        """
        size = self.shard.piece_events
        if not rows:
            return self.frame >= until and (self.position is None or (self.position + 1) % size != 0)
        if self.position is None and rows[0][POSITION] % size == 0:
            return False  # the frame may have begun in a piece that is gone
        return self._continues(rows[0])

    def is_complete(self, rows: Sequence[EventRow], until: int) -> bool:
        """
        The same when it is known that no archived piece holds the next event.
        """
        return self._continues(rows[0]) if rows else self.frame >= until

    def _continues(self, row: EventRow) -> bool:
        if self.position is None:
            return bool(row[FRAME] == self.frame + 1)
        return bool(row[POSITION] == self.position + 1)


async def stream_of(database: Database, archives: Archives, shard: ShardKey, stream: str) -> list[EventRow]:
    """
    All events of one stream, in order. The archive is touched only if the table does not have the first of them.

    Raises:
        LogError: the archive cannot be read.
    """
    kept: list[EventRow] = list(await database.run(lambda c: c.fetch(QUERIES["stream"], shard.id, stream)))
    if kept and kept[0][VERSION] == 1:
        return kept
    gone = await pieces(database, shard)  # asked second: a piece that is dropped in between may be in both
    if gone:
        kept = [row for row in kept if row[POSITION] > gone[-1].last_position]
    for piece in reversed(gone):
        kept[:0] = await archives.stream(piece, stream)
        if kept and kept[0][VERSION] == 1:
            break
    return kept
