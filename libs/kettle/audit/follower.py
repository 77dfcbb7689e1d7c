"""
What goes along on the walk over one shard: folds of its events, compared at the end with what is stored of them.
"""

from collections.abc import Sequence
from typing import Protocol

from kettle_wire.events import Event
from kettle_wire.frames import Frame


class Follower(Protocol):
    """One thing that is folded and compared."""

    @property
    def names(self) -> Sequence[str]:
        """The checks that it makes."""
        ...

    @property
    def one_by_one(self) -> bool:
        """Whether it is fed the single events of jobs, in frames that are expanded."""
        ...

    async def feed(self, frame: Frame, events: Sequence[Event]) -> None:
        """Fold the next frame."""
        ...

    async def finish(self) -> None:
        """Compare."""
        ...
