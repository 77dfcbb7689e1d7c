"""What the tests of a gateway record, and a schedd that knows whose it is."""

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from typing import Any, Final

from kettle.bus.ports import Message, RefusedError, Served
from kettle.eventsourcing.replay import ROLE, served_frames
from kettle.testing.services import Backend, Owner, owned
from kettle_services.gateway.settings import GatewaySettings
from kettle_wire import cloud_events
from kettle_wire.attempts import ExitRecord
from kettle_wire.cloud_events import CloudEvent
from kettle_wire.commands.schedd import (
    QUERY_EVENTS,
    QUERY_JOBS,
    JobAds,
    JobEvents,
    QueryEvents,
    QueryJobs,
    RecordedEvent,
)
from kettle_wire.events import ClusterSubmitted, Event, JobCompleted, JobStarted
from kettle_wire.identity import Identity

AT: Final = 1_700_000_000_000_000
SHARD: Final = "schedd.ap1"

Change = tuple[str, Event]


def submitted(cluster: int, jobs: int = 1, owner: str = "alice", **ad: float | str) -> Change:
    event = ClusterSubmitted(
        cluster=cluster, owner=owner, ad={"Cmd": "/bin/true", **ad}, columns=[], rows=[[]] * jobs
    )
    return f"cluster/{cluster}", event


def run(cluster: int, proc: int = 0) -> list[Change]:
    stream = f"job/{cluster}.{proc}"
    return [
        (stream, JobStarted(attempt=1, pid=7)),
        (stream, JobCompleted(attempt=1, exit=ExitRecord(code=0))),
    ]


class FakeSchedd:
    """A shard and who answers for it. `asked` are the clusters that somebody wanted to know the owner of."""

    def __init__(self, backend: Backend, owner: Owner) -> None:
        self._backend = backend
        self._owner = owner
        self.asked: list[int] = []

    async def record(self, *changes: Change) -> int:
        return await self._owner.record(*changes, at_us=AT)

    async def query_jobs(self, request: QueryJobs, _caller: Identity) -> JobAds:
        self.asked += request.select.clusters
        return JobAds(jobs=[], total=0)

    async def query_events(self, request: QueryEvents, _caller: Identity) -> JobEvents:
        stream = f"cluster/{request.job.cluster}"
        found = await self._backend.log.stream(SHARD, stream)
        if not found:
            raise RefusedError("not_found", "never heard of it")
        events = [
            RecordedEvent(
                stream=stream,
                version=frame.entries[0].version,
                frame=frame.number,
                at=frame.at,
                data=frame.entries[0].data,
            )
            for frame, _ in found
        ]
        return JobEvents(events=events, shard=SHARD)


@asynccontextmanager
async def schedd(backend: Backend, *, answers: bool = True) -> AsyncGenerator[FakeSchedd]:
    async with AsyncExitStack() as stack:
        fake = FakeSchedd(backend, await stack.enter_async_context(owned(backend, SHARD)))
        bus = await stack.enter_async_context(backend.bus())
        if answers:
            served: list[Served[Any, Any]] = [
                Served(QUERY_JOBS, fake.query_jobs),
                Served(QUERY_EVENTS, fake.query_events),
            ]
            await bus.serve("schedd", "ap1", served, version="1.0.0")
        await bus.serve(ROLE, SHARD, [served_frames(backend.log, SHARD)], version="1.0.0")
        yield fake


def settings(backend: Backend, **own: object) -> GatewaySettings:
    return backend.settings(GatewaySettings, discovery_interval=0.05, **own)


async def stored(backend: Backend, count: int, *, subject: str = ">") -> list[Message]:
    """The first messages of the stream MONITOR."""
    got: list[Message] = []
    async with backend.bus() as bus:
        reading = bus.consume(backend.subjects.monitor_stream, "", subject=subject, ephemeral=True)
        async with aclosing(reading) as batches:
            while len(got) < count:
                got += (await anext(batches)).messages
    return got


async def told(backend: Backend, count: int, *, subject: str = ">") -> list[CloudEvent]:
    return [cloud_events.decode(message.data) for message in await stored(backend, count, subject=subject)]
