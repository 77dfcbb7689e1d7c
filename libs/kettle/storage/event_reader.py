"""
Reads a shard's events wherever they are: old pieces from the archive, the rest from the table.

A piece may be dropped from the table between two pages. A reader knows which position or frame comes next, so it
notices, and looks for the piece in the archive: the transaction that dropped it has put it there.
"""

from collections.abc import AsyncIterator, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Final

import msgspec

from kettle.eventsourcing.log import LogError
from kettle.storage.archived_pieces import (
    FRAME,
    POSITION,
    VERSION,
    Archives,
    EventRow,
    Piece,
    Stretch,
    piece_of,
)
from kettle.storage.database import Database
from kettle.storage.queries import QUERIES
from kettle_wire.frames import Entry

PAGE_ROWS: Final = 4_000
PAGE_BYTES: Final = 8 * 1024 * 1024
"""
About so much of the events themselves is read at once, and at least one event: submissions may be large.
"""

_BEYOND: Final = 1 << 62
"""Greater than every position."""


class ShardKey(msgspec.Struct, frozen=True):
    """What never changes about a shard."""

    id: int
    name: str
    piece_events: int


async def pieces(database: Database, shard: ShardKey, *, position: int = 0, frame: int = 0) -> list[Piece]:
    """The archived pieces that hold a position or frame from these on, oldest first."""
    rows = await database.run(lambda c: c.fetch(QUERIES["archived"], shard.id, position, frame))
    return [piece_of(row) for row in rows]


async def events(
    database: Database, archives: Archives, shard: ShardKey, *, after: int, until: int
) -> AsyncIterator[Sequence[Stretch]]:
    """
    All events of the frames with `after < number <= until`, in order, some at a time.

    Raises:
        LogError: events are neither in the table nor in the archive, or the archive cannot be read.
    """
    place = _Place(shard, after)
    while place.frame < until or place.may_go_on:
        at = (place.frame, place.position or _BEYOND)
        page = await _page(database, shard, at, until)
        if not place.is_followed_by(page, until):
            gone = await _next(database, place)
            if gone is not None and gone.first_frame <= until:
                was = place.position
                async for rows in archives.events(gone, after=at, until=until):
                    page = _stretches(shard, rows)
                    place.move(page)
                    yield page
                if place.position == was:
                    raise LogError(f"{gone} has nothing after {place}: the archive is not what it was")
                continue
            if not place.is_complete(page, until):
                raise LogError(
                    f"{shard.name}: what follows {place} is neither in the database nor in its archive; "
                    f"`kettle log check` tells how much is missing"
                )
        if not page:
            return
        place.move(page)
        yield page


async def _page(database: Database, shard: ShardKey, at: tuple[int, int], until: int) -> list[Stretch]:
    rows = await database.run(lambda c: c.fetch(QUERIES["read"], shard.id, *at, until, PAGE_ROWS, PAGE_BYTES))
    page: list[Stretch] = []
    for frame, epoch, when, first, last, *columns in rows:
        page.append(_whole(shard, Stretch(frame, epoch, when, first, list(map(Entry, *columns))), last))
    return page


def _stretches(shard: ShardKey, rows: Sequence[EventRow]) -> list[Stretch]:
    """Rows of an archived piece by their frames."""
    page: list[Stretch] = []
    for _, group in groupby(rows, key=itemgetter(FRAME)):
        of_frame = list(group)
        frame, position, epoch, _, at, *_ = of_frame[0]
        entries = [Entry(stream, ver, kind, data, meta) for *_, ver, _, stream, kind, data, meta in of_frame]
        stretch = Stretch(frame, epoch, at, position, entries)
        page.append(_whole(shard, stretch, of_frame[-1][POSITION]))
    return page


def _whole(shard: ShardKey, stretch: Stretch, last: int) -> Stretch:
    if stretch.end != last + 1:
        raise LogError(
            f"{shard.name}: {len(stretch.entries)} events of frame {stretch.frame}, at positions {stretch.position} to "
            f"{last}, are not without a gap; `kettle log check` tells more"
        )
    return stretch


async def _next(database: Database, place: "_Place") -> Piece | None:
    """The archived piece in which the next event must be, if it is in one."""
    if place.position is None:
        found = await pieces(database, place.shard, frame=place.frame + 1)
    else:
        found = await pieces(database, place.shard, position=place.position + 1)
    return found[0] if found else None


class _Place:
    """How far a reader has come: its last frame, and the position of its last event if it has read one."""

    def __init__(self, shard: ShardKey, frame: int) -> None:
        self.shard = shard
        self.frame = frame
        self.position: int | None = None

    def __str__(self) -> str:
        return f"frame {self.frame}" + (f" (position {self.position})" if self.position else "")

    @property
    def may_go_on(self) -> bool:
        """Whether there may be more events of the same frame."""
        return self.position is not None

    def move(self, page: Sequence[Stretch]) -> None:
        """Go behind a page, which must be what comes next."""
        for stretch in page:
            if not self._continues(stretch):
                raise LogError(
                    f"{self.shard.name}: {len(stretch.entries)} events at positions {stretch.position} to "
                    f"{stretch.end - 1} do not follow {self} without a gap; `kettle log check` tells more"
                )
            self.frame, self.position = stretch.frame, stretch.end - 1

    def is_followed_by(self, page: Sequence[Stretch], until: int) -> bool:
        """
        Whether a page of the table is certainly what comes next, so that no piece was dropped in between.
        """
        size = self.shard.piece_events
        if not page:
            return self.frame >= until and (self.position is None or (self.position + 1) % size != 0)
        if self.position is None and page[0].position % size == 0:
            return False  # the frame may have begun in a piece that was dropped
        return self._continues(page[0])

    def is_complete(self, page: Sequence[Stretch], until: int) -> bool:
        """Whether the frame is complete, when it is known that no archived piece holds the next event."""
        return self._continues(page[0]) if page else self.frame >= until

    def _continues(self, stretch: Stretch) -> bool:
        if self.position is None:
            return stretch.frame == self.frame + 1
        return stretch.position == self.position + 1


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
