"""
What is recorded and not yet committed: whether the queue takes more, and when those who are sent away should come again.
"""

import time
from typing import Final

from kettle.bus.ports import RefusedError
from kettle.eventsourcing.shard import Shard
from kettle_services.schedd.domain.queue.backpressure import CommitRate, retry_after_ms
from kettle_wire.codes import RefusalCode
from kettle_wire.frames import Frame

BACKLOG_BYTES: Final = 64 * 1024 * 1024
"""What may wait for its commit, however few events it is."""


class Backlog:
    """The one rule by which users' commands are refused because there is too much to record."""

    def __init__(self, shard: Shard, *, limit: int) -> None:
        self._shard = shard
        self._limit = limit
        self._rate = CommitRate()
        shard.on_commit(self._committed)

    def require_room(self) -> None:
        """Refuse with `busy` if more waits than may."""
        shard, limit = self._shard, self._limit
        backlog = max(shard.backlog, limit * shard.backlog_bytes // BACKLOG_BYTES)
        if backlog <= limit:
            return
        wait_ms = retry_after_ms(backlog, limit, self._rate.per_second(time.monotonic()))
        raise RefusedError(
            RefusalCode.BUSY,
            f"the queue has more to record than it can; try again in {wait_ms / 1000:.1f} s",
            retry_after_ms=wait_ms,
        )

    def _committed(self, frame: Frame) -> None:
        self._rate.note(len(frame.entries), time.monotonic())
