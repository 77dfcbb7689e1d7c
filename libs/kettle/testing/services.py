"""One service of the pool inside a test, with real servers below it."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TypeVar

import msgspec

from kettle.bus.nats import NatsBus
from kettle.bus.ports import BusError
from kettle.eventsourcing.relay import relay
from kettle.eventsourcing.shard import Shard
from kettle.runtime import Runtime, Settings
from kettle.runtime.service import S, Serve
from kettle.storage import PgLog
from kettle.testing.patience import PATIENCE_S
from kettle.testing.servers.embedded import Servers
from kettle.testing.servers.locations import Place
from kettle.testing.servers.selection import place as a_place
from kettle.testing.servers.selection import place_on
from kettle_wire.events import Event
from kettle_wire.identity import Identity, daemon
from kettle_wire.subjects import Subjects

T = TypeVar("T")


class Backend(msgspec.Struct, frozen=True):
    """Servers, a database with an empty log, and the log."""

    place: Place
    log: PgLog

    @property
    def dsn(self) -> str:
        """The URL of the database."""
        return self.place.addresses.database_url

    @property
    def servers(self) -> Servers:
        """The servers, to break them: for tests marked `breaks_servers`."""
        assert self.place.own is not None, "these servers are not this test's own: mark it `breaks_servers`"
        return self.place.own

    @property
    def subjects(self) -> Subjects:
        """The names of this pool on the bus."""
        return self.place.subjects

    def settings(self, kind: type[S], **own: object) -> S:
        """Settings of a service that joins these servers."""
        joined = {"pool": self.place.pool, **msgspec.structs.asdict(self.place.addresses)}
        return msgspec.convert(joined | own, kind)

    @asynccontextmanager
    async def bus(self, identity: Identity | None = None) -> AsyncGenerator[NatsBus]:
        """A connection of the test's own."""
        shared = self.settings(Settings)
        async with NatsBus.connect(
            shared.nats_url,
            subjects=self.subjects,
            identity=identity or daemon("gateway"),
            credentials=shared.nats_credentials,
            ca=shared.nats_ca,
            replicas=shared.nats_replicas,
            deadline=PATIENCE_S,
        ) as bus:
            yield bus


@asynccontextmanager
async def backend(directory: Path, *, template: Path | None = None) -> AsyncGenerator[Backend]:
    """Throw-away servers with an empty log while the context lasts."""
    async with a_place(directory, template=template) as place, _on(place) as made:
        yield made


@asynccontextmanager
async def backend_on(shared: Place) -> AsyncGenerator[Backend]:
    """An empty log, and a pool of its own, on servers that other tests use as well."""
    async with place_on(shared) as place, _on(place) as made:
        yield made


@asynccontextmanager
async def _on(place: Place) -> AsyncGenerator[Backend]:
    async with PgLog.connect(place.addresses.database_url) as log:
        yield Backend(place, log)


@asynccontextmanager
async def hosted(
    role: str, settings: S, serve: Serve[S], *, within: float = PATIENCE_S
) -> AsyncGenerator[Runtime]:
    """
    A service in the test's own event loop: ready or standing by when the context begins, drained when it ends.

    The service's failure is the test's.
    """
    rt = Runtime(role)
    ready = asyncio.Event()

    async def announced(runtime: Runtime, own: S) -> None:
        def told(announce: Callable[[], None]) -> Callable[[], None]:
            def tell() -> None:
                announce()
                ready.set()

            return tell

        runtime.ready = told(runtime.ready)  # type: ignore[method-assign]
        runtime.standby = told(runtime.standby)  # type: ignore[method-assign]
        await serve(runtime, own)

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(rt.host(settings, announced), name=role)
        async with asyncio.timeout(within):
            await ready.wait()
        try:
            yield rt
        finally:
            rt.stop()


async def eventually(look: Callable[[], Awaitable[T]], *, within: float = PATIENCE_S) -> T:
    """Look again until there is something true to see; that."""
    async with asyncio.timeout(within):
        while not (seen := await look()):
            await asyncio.sleep(0.01)
        return seen


class Owner:
    """The owner of one shard, as a service would be: what it records is committed and put on the bus."""

    def __init__(self, shard: Shard) -> None:
        self.shard = shard

    async def record(self, *changes: tuple[str, Event], at_us: int) -> int:
        """Events into one frame; its number, after the commit."""
        async with asyncio.timeout(PATIENCE_S):
            return await self.shard.record(changes, now_us=at_us)


@asynccontextmanager
async def owned(backend: Backend, name: str) -> AsyncGenerator[Owner]:
    """Own a shard while the context lasts."""
    async with backend.bus() as bus, Shard.own(backend.log, name, owner="test") as shard:
        versions: dict[str, int] = {}
        async for frame in backend.log.read(name):
            versions.update((entry.stream, entry.version) for entry in frame.entries)
        shard.adopt(versions)
        async with asyncio.TaskGroup() as tasks:
            loops = [
                tasks.create_task(shard.run()),
                tasks.create_task(relay(bus, backend.log, shard, backend.subjects)),
            ]
            yield Owner(shard)
            stream = backend.subjects.event_stream(name)
            await eventually(partial(_relayed, bus, stream, shard))  # a test that follows may look there
            for loop in loops:
                loop.cancel()


async def _relayed(bus: NatsBus, stream: str, shard: Shard) -> bool:
    try:
        return (await bus.last_sequence(stream) or 0) >= shard.frame
    except BusError:  # of several servers one has to be elected for a new stream, which may take them seconds
        return False
