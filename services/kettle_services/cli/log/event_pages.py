"""
Events of one shard that somebody asks for, read a page at a time, so that a long log takes no memory.

What can be left out by stream and type the database leaves out.  Archived pieces are read whole, and left out here.
"""

import fnmatch
from collections.abc import AsyncGenerator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

import asyncpg
import msgspec

from kettle.storage.database import Database
from kettle_services.cli.log.databases import ShardLocation
from kettle_wire.event_expansion import each, stands_for_many, stream_of_many
from kettle_wire.events import UnknownEventError
from kettle_wire.frames import Entry

PAGE_ROWS: Final = 1_000
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_BEYOND: Final = 1 << 62
_OF_MANY: Final = ("jobs.*", "clusters.*")
"""Events that stand for others, whatever these are."""

_PAGE: Final = """
SELECT frame, pos, epoch, ver, at, stream, type, data, meta FROM log.event
 WHERE shard = (SELECT id FROM log.shard WHERE name = $1) AND (frame, pos) > ($2, $3) AND frame <= $4
   AND type LIKE ANY ($5)
 ORDER BY frame, pos LIMIT $6
"""
_OF_STREAMS: Final = """
SELECT frame, pos, epoch, ver, at, stream, type, data, meta FROM log.event
 WHERE shard = (SELECT id FROM log.shard WHERE name = $1) AND (frame, pos) > ($2, $3) AND frame <= $4
   AND type LIKE ANY ($5) AND stream = ANY ($7)
 ORDER BY frame, pos LIMIT $6
"""
_ARCHIVED: Final = """
SELECT coalesce(max(a.last_frame), 0) FROM log.archive a JOIN log.shard s ON s.id = a.shard WHERE s.name = $1
"""


class EventRow(msgspec.Struct, frozen=True):
    """One event, with where it stands."""

    shard: str
    frame: int
    position: int
    epoch: int
    at: int
    """Microseconds since the epoch."""
    entry: Entry


class EventFilter(msgspec.Struct, frozen=True):
    """
    Which events of a shard: those after a frame and up to one, of some types and streams; empty: of any.
    """

    after: int
    until: int
    types: Sequence[str] = ()
    """Patterns with `*` and `?`."""
    streams: frozenset[str] = frozenset()

    def takes(self, entry: Entry) -> bool:
        """Whether type and stream are among those wanted."""
        return (not self.streams or entry.stream in self.streams) and (
            not self.types or any(fnmatch.fnmatchcase(entry.type, pattern) for pattern in self.types)
        )


def pattern_of(text: str) -> str:
    """
    The pattern that somebody means: `job` all events of jobs, `job.held` every version of it, `job.held/1` that one.
    """
    noun, dot, verb = text.partition(".")
    if not dot:
        return noun if "*" in noun else f"{noun}.*"
    return text if "/" in verb or verb.endswith("*") else f"{text}/*"


async def read(place: ShardLocation, narrow: EventFilter) -> AsyncGenerator[EventRow, None]:
    """
    The events, in order.

    A piece may go from the database into the archive meanwhile; a page that may lack it is read again from there.
    """
    at, database = (narrow.after, _BEYOND), place.database
    if database is None:
        async for row in _from_log(place, at, narrow.until, narrow):
            yield row
        return
    while True:
        rows = await _page(database, place.shard, at, narrow)
        archived = min(await _archived(database, place.shard), narrow.until)
        if archived > at[0] or (archived == at[0] and at[1] != _BEYOND):
            async for row in _from_log(place, at, archived, narrow):
                yield row
            at = (archived, _BEYOND)
            continue
        for row in rows:
            for single in _singles(row, narrow):
                yield single
        if len(rows) < PAGE_ROWS:
            return
        at = (rows[-1].frame, rows[-1].position)


async def _page(database: Database, shard: str, at: tuple[int, int], narrow: EventFilter) -> list[EventRow]:
    likes = [_like(pattern) for pattern in (*narrow.types, *_OF_MANY)] if narrow.types else ["%"]
    streams = narrow.streams | {other for one in narrow.streams if (other := stream_of_many(one)) is not None}
    arguments = (shard, *at, narrow.until, likes, PAGE_ROWS)
    if narrow.streams:
        found = await database.run(lambda c: c.fetch(_OF_STREAMS, *arguments, sorted(streams)))
    else:
        found = await database.run(lambda c: c.fetch(_PAGE, *arguments))
    return [_row(shard, row) for row in found]


async def _archived(database: Database, shard: str) -> int:
    return int(await database.run(lambda c: c.fetchval(_ARCHIVED, shard)))


async def _from_log(
    place: ShardLocation, at: tuple[int, int], until: int, narrow: EventFilter
) -> AsyncGenerator[EventRow, None]:
    after = at[0] if at[1] == _BEYOND else at[0] - 1
    async for frame in place.log.read(place.shard, after=after, until=until):
        for position, entry in enumerate(frame.entries, frame.position):
            if (frame.number, position) > at:
                for row in _singles(
                    EventRow(place.shard, frame.number, position, frame.epoch, frame.at, entry), narrow
                ):
                    yield row


def _singles(row: EventRow, narrow: EventFilter) -> list[EventRow]:
    """The selected single events of a row; an event that cannot be decoded is shown as it is."""
    if not stands_for_many(row.entry):
        return [row] if narrow.takes(row.entry) else []
    if row.entry.stream in narrow.streams:
        narrow = msgspec.structs.replace(narrow, streams=frozenset())
    try:
        return [msgspec.structs.replace(row, entry=one) for one in each(row.entry) if narrow.takes(one)]
    except UnknownEventError:
        return [row]


def _like(pattern: str) -> str:
    escaped = pattern.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return escaped.replace("*", "%").replace("?", "_")


def _row(shard: str, row: asyncpg.Record) -> EventRow:
    at = (row["at"] - _EPOCH) // _MICROSECOND
    entry = Entry(row["stream"], row["ver"], row["type"], row["data"], row["meta"])
    return EventRow(shard, row["frame"], row["pos"], row["epoch"], at, entry)
