"""What an archiver did, or would do, and why it did not do more."""

import datetime as dt
from typing import Literal

import msgspec

Why = Literal["newest", "young", "needed", "read"]
"""
The piece holds the shard's head; has an event that is not old enough; is ahead of a cursor; is being read for too long.
"""


class SlowestCursor(msgspec.Struct, frozen=True, kw_only=True):
    """The projection that is furthest behind in a shard. What it has not seen stays in the database."""

    projection: str
    version: int
    frame: int
    behind: int
    """Frames of the shard after it."""
    error: str | None = None
    """Why it stopped, if it did."""

    def __str__(self) -> str:
        stopped = f", stopped: {self.error}" if self.error else ""
        return f"{self.projection}/{self.version} at frame {self.frame}, {self.behind} behind{stopped}"


class ArchivedPiece(msgspec.Struct, frozen=True, kw_only=True):
    """A piece that went to the archive, or would."""

    piece: int
    first_position: int
    last_position: int
    last_frame: int
    last_at: dt.datetime
    bytes: int = 0
    """Of its files; 0 in a dry run."""


class ShardReport(msgspec.Struct, kw_only=True):
    """The result for one shard."""

    shard: str
    archived: list[ArchivedPiece] = []
    kept: Why
    """Why the oldest piece that is still in the database stays there."""
    because: str
    """The reason as a sentence."""
    slowest: SlowestCursor | None = None
    """None: no projection follows the shard."""


class Report(msgspec.Struct, kw_only=True):
    """What an archiver did to all shards."""

    dry_run: bool
    older_than: dt.datetime
    shards: list[ShardReport] = []

    @property
    def events(self) -> int:
        """How many events went to the archive, or would."""
        return sum(p.last_position - p.first_position + 1 for s in self.shards for p in s.archived)


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """How far the piece is that is being written."""

    shard: str
    piece: int
    events: int
    total: int


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """Something that is wrong with the archive of a shard."""

    shard: str
    file: str
    sentence: str


class Verification(msgspec.Struct, kw_only=True):
    """What the archive was found to be."""

    pieces: int = 0
    files: int = 0
    bytes: int = 0
    problems: list[Problem] = []

    @property
    def sound(self) -> bool:
        """Whether every archived event can be read."""
        return not self.problems
