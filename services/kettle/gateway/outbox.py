"""
What waits to be stored: bounded, so that a slow bus slows the reading of frames and nothing else.
"""

import asyncio
from collections import deque
from typing import Final

from kettle.gateway.domain.batch import Batch, Piece
from kettle.gateway.follower import Done

BYTES: Final = 8 << 20


class Load:
    """
    A batch, and who is to be told when it is stored, with everything before it.
    """

    def __init__(self) -> None:
        self.batch = Batch()
        self.dones: list[Done] = []


class Outbox:
    """
    Pieces and acknowledgements of all shards, in the order in which they were put.
    """

    def __init__(self) -> None:
        self._waiting: deque[Piece | Done] = deque()
        self._bytes = 0
        self._filled = asyncio.Event()
        self._room = asyncio.Event()

    async def put(self, one: Piece | Done) -> None:
        """
        Add; waits while there is too much.
        """
        while self._bytes >= BYTES:
            self._room.clear()
            await self._room.wait()
        self._waiting.append(one)
        self._bytes += _size(one)
        self._filled.set()

    async def take(self) -> Load:
        """
        As much as is there and fits into a batch; waits until there is something.
        """
        await self._filled.wait()
        load = Load()
        while self._waiting:
            one = self._waiting[0]
            if isinstance(one, Piece):
                if not load.batch.has_room(one):
                    break
                load.batch.add(one)
            else:
                load.dones.append(one)
            self._waiting.popleft()
            self._bytes -= _size(one)
        if not self._waiting:
            self._filled.clear()
        self._room.set()
        return load


def _size(one: Piece | Done) -> int:
    return sum(len(post.data) for post in one.posts) if isinstance(one, Piece) else 0
