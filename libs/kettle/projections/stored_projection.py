"""
A projection whose tables are in PostgreSQL: a directory with their definition, and the code that fills them.

`schema.sql` and the statements name their tables without a schema: the search path decides whether the live tables
are meant, those of a rebuild beside them, or temporary ones for an audit.
"""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final, Protocol

from kettle.eventsourcing.projection import Decoded, Projection

SCHEMA: Final = "schema.sql"
INDEXES: Final = "indexes.sql"

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)


class StoredProjection(Projection, Protocol):
    """
    What frames of some kinds of shards imply, as tables.

    Every table has a column `shard`, and its rows follow from the frames of that shard alone: no clock, no serial.
    """

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of shards that it follows: their names up to the first dot."""
        ...

    @property
    def directory(self) -> Path:
        """Where `schema.sql` (the tables) and `indexes.sql` (what only readers need) are."""
        ...


def follows(projection: StoredProjection, shard: str) -> bool:
    """Whether the projection is about this shard."""
    return shard.partition(".")[0] in projection.kinds


def statements(projection: StoredProjection, file: str) -> str:
    """What makes the tables (`SCHEMA`), or the indexes that only readers need (`INDEXES`)."""
    return (projection.directory / file).read_text()


def instant(at: int) -> datetime:
    """Microseconds since the epoch as the database takes them."""
    return _EPOCH + timedelta(microseconds=at)


def microseconds(at: datetime) -> int:
    """Inverse of `instant`."""
    return (at - _EPOCH) // _MICROSECOND


def storable(text: str) -> str:
    """Text as the database takes it, which has no zero character."""
    return text.replace("\0", "\ufffd")


class Sweeper:
    """
    Detects the beginning of a day, for projections that delete old rows.

    Whole days, by the time of the frames, so that it does not matter how these are grouped.
    """

    def __init__(self, kept: timedelta) -> None:
        self._kept = kept
        self._swept: dict[str, tuple[int, int]] = {}

    def due(self, frames: Sequence[Decoded]) -> datetime | None:
        """
        The day before which everything has to be deleted after these frames; None if that was already done.
        """
        first, last = frames[0][0], frames[-1][0]
        day = instant(last.at).replace(hour=0, minute=0, second=0, microsecond=0)
        swept_day, swept_frame = self._swept.get(last.shard, (0, 0))
        if swept_day == day.toordinal() and swept_frame < first.number:  # otherwise that was rolled back
            return None
        self._swept[last.shard] = (day.toordinal(), last.number)
        return day - self._kept
