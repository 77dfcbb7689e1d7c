"""
The port to the event log: shards with one writer each, appended to in frames.

Errors:

    LogError
    ├── FencedError        somebody else owns the shard now, or wrote to it: stop, never retry
    └── LogUnavailableError   the log cannot be reached within the deadline given; nothing is known to be lost
"""

from collections.abc import AsyncIterator, Sequence
from typing import Final, Protocol

import msgspec

from kettle_wire.frames import Frame

IMPORTED: Final = "kettle log import"
"""The owner of a shard that was brought from files: no service writes it, and the bus has no stream of it."""


class LogError(Exception):
    """Base of what can go wrong with the log."""


def not_taken(shard: str, owner: str) -> LogError:
    """Why nobody becomes the owner of a shard: what was imported stays apart from what happened."""
    if owner == IMPORTED:
        return LogError(f"the shard {shard} is that of a service: import into another pool")
    return LogError(
        f"the shard {shard} was brought by {IMPORTED}, and says nothing of this pool: nobody goes on with it; "
        f"give the service another name, or use another database"
    )


class FencedError(LogError):
    """The owner is not the owner any more. It has written nothing, and must stop."""


class LogUnavailableError(LogError):
    """The log did not answer."""


class Tenure(msgspec.Struct, frozen=True, kw_only=True):
    """One period of ownership of one shard, and where the shard stood when it began (or was last seen)."""

    shard: str
    epoch: int
    owner: str
    head: int
    """Position of the last event, 0 if there is none."""
    frame: int
    """Number of the last frame, 0 if there is none."""


class Answered(msgspec.Struct, frozen=True, kw_only=True):
    """A command that was carried out, by its id, and the first answer to it."""

    id: str
    frame: int
    reply: bytes


class ReadableLog(Protocol):
    """What those need of a log who follow it: projections, rebuilds."""

    async def tenure(self, shard: str) -> Tenure | None:
        """The present owner and head of a shard; None if there is no such shard."""
        ...

    async def shards(self) -> list[Tenure]:
        """All shards, by name."""
        ...

    def read(self, shard: str, *, after: int = 0, until: int | None = None) -> AsyncIterator[Frame]:
        """Frames with `after < number <= until`, in order; `until=None` means up to the present head."""
        ...


class Log(ReadableLog, Protocol):
    """The event log. Every adapter passes `tests/contract/test_log.py`."""

    async def take(self, shard: str, *, owner: str) -> Tenure:
        """
        Become the owner of a shard, which is made if it is new: raises its epoch.

        Raises LogError: it was imported, and the owner is a service, or the other way round.
        """
        ...

    async def append(self, frame: Frame, answers: Sequence[Answered] = ()) -> None:
        """
        Write a frame and the answers decided with it, all or nothing.

        Succeeds only if the shard's epoch is the frame's, its frame number the one before and its head the position
        before; otherwise raises FencedError and writes nothing. A lost answer of the database is resolved by looking.
        Waits while the database is away: the caller bounds the wait if it wants one.
        A frame without entries is not recorded and takes no number: only the answers are stored, under the same guard.
        An id that was answered before keeps its first answer.
        """
        ...

    async def stream(self, shard: str, stream: str) -> list[tuple[Frame, int]]:
        """All events of one stream, in order: a frame that holds just the entry, and its position."""
        ...

    async def forget_answers(self, shard: str, *, keep: int) -> None:
        """Drop answers that are older than the newest `keep`."""
        ...

    async def answers(self, shard: str, *, newest: int) -> list[Answered]:
        """The most recently answered commands, oldest first, so that an owner can keep them in memory."""
        ...


class StoredEvent(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One line of a shard's working set: a live stream, its version and its state."""

    stream: str
    version: int
    state: bytes


class WorkingSet(Protocol):
    """
    The live state of a shard as a projection: committed with its cursor, read at start-up instead of history.
    """

    async def load(self, shard: str) -> tuple[int, list[StoredEvent]]:
        """The frame up to which it is folded, and all rows."""
        ...

    async def save(
        self, shard: str, *, epoch: int, was: int, now: int, put: Sequence[StoredEvent], drop: Sequence[str]
    ) -> None:
        """
        Move the cursor from frame `was` to `now` together with the rows; FencedError if the guard fails.
        """
        ...
