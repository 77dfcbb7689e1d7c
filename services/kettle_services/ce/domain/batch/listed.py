"""A job in an answer of a batch system's commands."""

import msgspec

from kettle_wire.batch import BatchEnd, BatchState


class BrokenAnswerError(ValueError):
    """An answer is not what it should be, or does not go to its end."""


class ListedJob(msgspec.Struct, frozen=True, kw_only=True):
    """One of the jobs that a batch system lists, and what it says of it."""

    id: str
    """Its number there."""
    name: str
    state: BatchState | None
    """None: a word that is not known; what was known stays."""
    words: str = ""
    host: str = ""
    end: BatchEnd | None = None
    """Of one that has ended."""
