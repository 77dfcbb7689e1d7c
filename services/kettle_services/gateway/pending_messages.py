"""What waits to be stored: bounded, so that a slow bus slows the reading of frames and nothing else."""

import asyncio
from collections import deque
from typing import Final

from kettle_services.gateway.domain.batch import Batch, Piece

BYTES: Final = 8 << 20


class PendingMessages:
    """Pieces of all shards, in the order in which they were put."""

    def __init__(self) -> None:
        self._waiting: deque[Piece] = deque()
        self._bytes = 0
        self._filled = asyncio.Event()
        self._room = asyncio.Event()

    async def put(self, piece: Piece) -> None:
        """Add; waits while there is too much."""
        while self._bytes >= BYTES:
            self._room.clear()
            await self._room.wait()
        self._waiting.append(piece)
        self._bytes += piece.size
        self._filled.set()

    async def take(self) -> Batch:
        """As much as is there and fits into a batch; waits until there is something."""
        await self._filled.wait()
        batch = Batch()
        while self._waiting and batch.has_room(self._waiting[0]):
            piece = self._waiting.popleft()
            batch.add(piece)
            self._bytes -= piece.size
        if not self._waiting:
            self._filled.clear()
        self._room.set()
        return batch
