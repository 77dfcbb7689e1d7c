"""The adapters of the bus behind one face: how to connect, let time pass, and take something away."""

import asyncio
import time
import uuid
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Protocol

from kettle.bus.memory import MemoryBus
from kettle.bus.memory_server import MemoryServer
from kettle.bus.nats import NatsBus
from kettle.bus.ports import Bus
from kettle.testing.patience import PATIENCE_S
from kettle.testing.servers.locations import Place, everywhere, forget
from kettle_wire.identity import Identity, daemon
from kettle_wire.subjects import Subjects


class World(Protocol):
    """One pool of its own."""

    subjects: Subjects

    async def connect(self, identity: Identity = ...) -> Bus:
        """A connection of somebody."""
        ...

    async def leave(self, bus: Bus) -> None:
        """The holder of a connection dies."""
        ...

    def now(self) -> float:
        """The time on the clock of the bus, seconds."""
        ...

    async def passes(self, seconds: float) -> None:
        """Time passes for what lives on the bus."""
        ...

    async def everywhere(self, stream: str) -> None:
        """
        Wait until what was stored in a stream, that of a bucket for example, is on every server that keeps it.
        """
        ...

    async def lose(self, stream: str) -> None:
        """The server loses a stream."""
        ...

    async def lose_bucket(self, bucket: str) -> None:
        """The server loses a bucket."""
        ...


class MemoryWorld:
    """A server in memory with a clock that moves when it is told."""

    def __init__(self) -> None:
        self.subjects = Subjects(f"t{uuid.uuid4().hex[:8]}")
        self._now = 0.0
        self._server = MemoryServer(lambda: self._now)

    async def connect(self, identity: Identity = daemon("gateway")) -> Bus:  # noqa: B008 - frozen
        """See `World.connect`."""
        return MemoryBus(self._server, subjects=self.subjects, identity=identity)

    async def leave(self, bus: Bus) -> None:
        """See `World.leave`."""
        assert isinstance(bus, MemoryBus)
        bus.close()

    def now(self) -> float:
        """See `World.now`."""
        return self._now

    async def passes(self, seconds: float) -> None:
        """See `World.passes`."""
        self._now += seconds
        self._server.expire()

    async def everywhere(self, stream: str) -> None:
        """See `World.everywhere`."""

    async def lose(self, stream: str) -> None:
        """See `World.lose`."""
        self._server.lose(stream)

    async def lose_bucket(self, bucket: str) -> None:
        """See `World.lose_bucket`."""
        self._server.lose(bucket)


class NatsWorld:
    """A pool of its own on a real server."""

    def __init__(self, place: Place, stack: AsyncExitStack) -> None:
        self.subjects = Subjects(f"t{uuid.uuid4().hex[:8]}")
        self._addresses = place.addresses
        self._stack = stack
        self._exits: dict[Bus, AsyncExitStack] = {}

    async def connect(self, identity: Identity = daemon("gateway")) -> Bus:  # noqa: B008 - frozen
        """See `World.connect`."""
        own = await self._stack.enter_async_context(AsyncExitStack())
        bus = await own.enter_async_context(
            NatsBus.connect(
                self._addresses.nats_url,
                subjects=self.subjects,
                identity=identity,
                credentials=self._addresses.nats_credentials,
                replicas=self._addresses.nats_replicas,
                patience=PATIENCE_S,
                deadline=PATIENCE_S,
            )
        )
        self._exits[bus] = own
        return bus

    async def leave(self, bus: Bus) -> None:
        """See `World.leave`."""
        await self._exits[bus].aclose()

    def now(self) -> float:
        """See `World.now`."""
        return time.time()

    async def passes(self, seconds: float) -> None:
        """See `World.passes`."""
        await asyncio.sleep(seconds)

    async def everywhere(self, stream: str) -> None:
        """See `World.everywhere`."""
        await everywhere(self._addresses, stream)

    async def lose(self, stream: str) -> None:
        """See `World.lose`."""
        bus = await self.connect()
        assert isinstance(bus, NatsBus)
        await bus.delete_stream(stream)

    async def lose_bucket(self, bucket: str) -> None:
        """See `World.lose_bucket`."""
        await self.lose(f"KV_{bucket}")


@asynccontextmanager
async def world(kind: str, place: Place) -> AsyncGenerator[World, None]:
    """A world of one kind, cleaned up at the end."""
    if kind == "memory":
        yield MemoryWorld()
        return
    async with AsyncExitStack() as stack:
        opened = NatsWorld(place, stack)
        yield opened
    await forget(place.addresses, opened.subjects.pool)
