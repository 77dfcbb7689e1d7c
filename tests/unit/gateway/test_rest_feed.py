"""Streams of events over real HTTP, from a bus that somebody publishes on."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import ExitStack, asynccontextmanager, suppress
from datetime import UTC, datetime
from typing import Any, cast

import msgspec
import pytest
from aiohttp import ClientResponse, ClientTimeout, web
from aiohttp.test_utils import TestClient, TestServer

from kettle.auth.mapping.policy import Mapped
from kettle.auth.mapping.principals import local
from kettle.bus.memory import MemoryBus
from kettle.bus.memory_server import MemoryServer
from kettle.bus.ports import Message, Post, StreamSpec
from kettle.client import Client, PoolUnreachableError
from kettle.client.events.published import Published, Wanted
from kettle.testing.patience import PATIENCE_S
from kettle_services.gateway.rest.admission import Admission
from kettle_services.gateway.rest.application import Asked
from kettle_services.gateway.rest.changes import MOST, Changes
from kettle_services.gateway.rest.event_feed import EventFeed
from kettle_services.gateway.rest.event_hub import EventHub, Happening, Recent
from kettle_services.gateway.rest.past import PastQuestions
from kettle_services.gateway.rest.persons import Person
from kettle_services.gateway.rest.refusals import RequestRefused
from kettle_services.gateway.rest.streams import Streams
from kettle_wire.cloud_events import CloudEvent
from kettle_wire.identity import daemon
from kettle_wire.rest.problem import ProblemCode
from kettle_wire.rest.streams import Changed, FollowChanges, FollowEvents
from kettle_wire.subjects import Subjects


async def still() -> None:
    """Nothing is withdrawn."""


ADMITTED = Admission(still)
ADA = Person(local("ada"), Mapped(owner="ada", domain="pool"))
SUBJECTS = Subjects("p")
SPEC = StreamSpec(name=SUBJECTS.monitor_stream, subjects=[SUBJECTS.tail_all])
WITHIN_S = PATIENCE_S
HEARTBEAT_S = 2 * PATIENCE_S
"""No heartbeat is sent before: it would do for what is awaited."""


def envelope(owner: str, cluster: int, proc: int = 0) -> bytes:
    event = CloudEvent(
        specversion="1.0",
        id=f"{cluster}.{proc}",
        source="/kettle/p/s",
        type="org.kettle.job.held.v1" if owner else "org.kettle.cycle.ended.v1",
        subject=f"{cluster}.{proc}",
        time="2026-11-25T12:00:00Z",
        dataschema="urn:kettle:event:job.held:1",
        stream=f"job/{cluster}.{proc}" if owner else f"cycle/{cluster}",
        version=1,
        epoch=1,
        frame="1",
        owner=owner,
        schedd="ap" if owner else "",
    )
    return msgspec.json.encode(event)


def happening(sequence: int, owner: str, cluster: int, proc: int = 0) -> Happening:
    return Happening.of(Message("", sequence, envelope(owner, cluster, proc)))


class People:
    """Connections on which a person reads what is older than this process."""

    def __init__(self, older: Sequence[Published] = (), error: Exception | None = None) -> None:
        self._older = older
        self._error = error

    async def published(self, _wanted: Wanted) -> AsyncGenerator[Published]:
        for event in self._older:
            yield event
        if self._error is not None:
            raise self._error

    @asynccontextmanager
    async def of(self, person: Person) -> AsyncGenerator[Client]:
        yield cast("Client", cast("Any", self))


class Nobody(People):
    """There is no connection for anybody."""

    @asynccontextmanager
    async def of(self, person: Person) -> AsyncGenerator[Client]:
        raise RequestRefused(503, ProblemCode.NO_CONNECTION, "no connection")
        yield  # it is a generator


class World:
    """A gateway that has begun to read the events of a pool, of which there were two before."""

    def __init__(
        self, bus: MemoryBus, client: TestClient[Any, Any], streams: Streams, delays: list[float]
    ) -> None:
        self._bus = bus
        self.delays = delays
        """How old the oldest was of what was sent together."""
        self.client = client
        self.streams = streams
        self._last = 2

    async def publish(self, *owners: str) -> None:
        """An event of each, of clusters that count on."""
        posts = [
            Post(SUBJECTS.tail(owner, 1, 0, "job.held"), envelope(owner, self._last + at))
            for at, owner in enumerate(owners, start=1)
        ]
        await self._bus.append_together(posts, expect_last=self._last, note="")
        self._last += len(posts)

    async def publish_nonsense(self) -> None:
        """Something that is no event."""
        post = Post(SUBJECTS.tail("ada", 1, 0, "job.held"), b'{"frame": "none"}')
        await self._bus.append_together([post], expect_last=self._last, note="")
        self._last += 1

    @asynccontextmanager
    async def following(self, path: str = "/", **headers: str) -> AsyncGenerator[ClientResponse]:
        async with self.client.get(path, headers=headers, timeout=ClientTimeout(WITHIN_S)) as response:
            yield response


@asynccontextmanager
async def world(people: People | None = None) -> AsyncGenerator[World]:
    bus = MemoryBus(MemoryServer(), subjects=SUBJECTS, identity=daemon("gateway"))
    await bus.ensure_stream(SPEC)
    before = [Post(SUBJECTS.tail("ada", 1, 0, "job.held"), envelope("ada", n)) for n in (1, 2)]
    await bus.append_together(before, expect_last=0, note="")
    hub, streams = EventHub(bus, SPEC.name), Streams(4, most_of_one=3)
    delays: list[float] = []
    feed = EventFeed(
        bus,
        SPEC.name,
        people or People(),
        cast("PastQuestions", None),
        hub,
        streams,
        heartbeat=HEARTBEAT_S,
        delay=delays.append,
    )

    def answers(
        follow: Callable[[Asked], Awaitable[web.StreamResponse]], parameters: msgspec.Struct
    ) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
        async def answer(request: web.Request) -> web.StreamResponse:
            try:
                return await follow(Asked(ADA, parameters, None, request, admission=ADMITTED))
            except RequestRefused as refusal:
                return web.Response(status=refusal.status, text=str(refusal))

        return answer

    application = web.Application()
    application.router.add_get("/", answers(feed.follow, FollowEvents()))
    application.router.add_get("/old", answers(feed.follow, FollowEvents(after=0)))
    application.router.add_get("/changes", answers(feed.follow_changes, FollowChanges(cluster=[4])))
    tasks = [asyncio.create_task(each) for each in (hub.run(), feed.run())]
    try:
        async with asyncio.timeout(WITHIN_S):
            while not hub.began:
                await asyncio.sleep(0)
        async with TestClient(TestServer(application)) as client:
            yield World(bus, client, streams, delays)
    finally:
        for task in tasks:
            task.cancel()
        for task in tasks:
            with suppress(asyncio.CancelledError):
                await task
        bus.close()


async def places(response: ClientResponse, count: int) -> list[int]:
    found: list[int] = []
    while len(found) < count:
        line = await response.content.readline()
        assert line, "the stream has ended"
        name, _, value = line.decode().partition(": ")
        if name == "id":
            found.append(int(value))
    return found


async def test_one_reading_serves_all_and_each_has_only_the_own_events() -> None:
    """
    Two readers have the events of their person, in order, and none of another; who comes back behind a place misses none.  How late events
    were sent is measured, and not of who comes back for them.
    """
    async with world() as gateway, gateway.following() as one, gateway.following() as two:
        await gateway.publish("ada", "eve", "ada")
        assert [3, 5] == await places(one, 2) == await places(two, 2)
        async with gateway.following("/", **{"Last-Event-ID": "3"}) as again:
            assert [5] == await places(again, 1)
            await gateway.publish("ada")
            assert [6] == await places(again, 1)
        async with asyncio.timeout(WITHIN_S):
            while len(gateway.delays) < 5:  # of the three and of the last one
                await asyncio.sleep(0)
        since = datetime.now(UTC) - datetime(2026, 11, 25, 12, tzinfo=UTC)
        assert all(abs(delay - since.total_seconds()) < WITHIN_S for delay in gateway.delays)


async def test_what_nobody_can_read_is_passed_over(caplog: pytest.LogCaptureFixture) -> None:
    """
    A message that is no event does not end the streams: the events behind it come, and the log says which one it was.
    """
    async with world() as gateway, gateway.following() as response:
        await gateway.publish_nonsense()
        await gateway.publish("ada")
        assert [4] == await places(response, 1)
    assert "message 3 of" in caplog.text


async def test_what_is_older_is_read_in_the_name_of_the_person_and_then_here() -> None:
    """
    A reader who begins before this process did has the older events, and then goes on without a gap or a repeat.
    """
    older = [Published(n, msgspec.json.decode(envelope("ada", n), type=CloudEvent), b"{}") for n in (1, 2)]
    async with world(People(older)) as gateway, gateway.following("/old") as response:
        assert [1, 2] == await places(response, 2)
        await gateway.publish("ada")
        assert [3] == await places(response, 1)


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (PoolUnreachableError("the bus is away"), "the bus is away"),
        (None, "the connection to the bus was closed"),
    ],
)
async def test_who_follows_is_told_at_once_that_nothing_more_comes(error: Exception | None, why: str) -> None:
    """What was read before is sent; then an event says why the stream ends."""
    older = [Published(1, msgspec.json.decode(envelope("ada", 1), type=CloudEvent), b"{}")]
    async with world(People(older, error)) as gateway, gateway.following("/old") as response:
        text = await response.text()
    assert text.startswith("id: 1\ndata: {}\n\nevent: cut\n")
    assert why in text


async def test_who_has_no_connection_is_refused_what_is_older_and_follows_what_comes() -> None:
    """
    The refusal comes before the answer begins; for what this process has read nobody needs a connection.
    """
    async with world(Nobody()) as gateway:
        async with gateway.following("/old") as refused:
            assert (503, "no connection") == (refused.status, await refused.text())
        async with gateway.following() as response:
            await gateway.publish("ada")
            assert [3] == await places(response, 1)


async def test_only_so_many_streams_are_open() -> None:
    """
    One too many is refused with the time when to come again, and a place is free when a reader has left.
    """
    async with world() as gateway:
        with ExitStack() as others:
            for person in ("eve", "eve", "bob", "cyd"):
                others.enter_context(gateway.streams.one_more(person))
            async with gateway.following() as refused:
                assert 503 == refused.status
        async with gateway.following() as response:
            assert 200 == response.status


async def test_nobody_takes_the_places_of_others() -> None:
    """Who has as many streams as one person may have is told what to do, while others get one."""
    async with world() as gateway, gateway.following(), gateway.following(), gateway.following():
        async with gateway.following() as refused:
            assert 429 == refused.status
            assert "close one" in await refused.text()
        with gateway.streams.one_more("eve"):
            pass


async def test_who_shows_what_has_changed_is_told_its_name() -> None:
    """A reader of one cluster is told of a job of it, and of no other."""
    async with world() as gateway, gateway.following("/changes") as response:
        await gateway.publish("ada", "eve")
        lines = [await response.content.readline() for _ in range(2)]
        assert [b"event: changed\n", b'data: {"jobs":["4.0@ap"]}\n'] == lines


def test_the_last_events_are_kept_and_nothing_else_is_taken_for_lost() -> None:
    """Of what had to be forgotten the place is known, owner by owner."""
    recent = Recent(most=3)
    recent.begin(10)
    for sequence, owner in enumerate(("ada", "eve", "eve", "eve"), start=11):
        recent.add(happening(sequence, owner, 1))
    assert [] == list(recent.of_owner("ada", 10))
    assert (11, 10) == (recent.forgotten_of("ada"), recent.forgotten_of("eve"))
    assert [13, 14] == [each.sequence for each in recent.of_owner("eve", 12)]
    assert [12, 13, 14] == [each.sequence for each in recent.of_owner("eve", 0)]


async def test_changes_are_told_together_and_never_in_a_crowd() -> None:
    """
    A thing that changes often is named once; when there is too much, or a reader is slow, the message says only that it is much.
    """
    changes = Changes()
    with changes.reader(FollowChanges()) as reader, changes.reader(FollowChanges(job=["7.0"])) as other:
        changes.heard([happening(1, "ada", 1), happening(2, "ada", 1), happening(3, "", 9)])
        changes.tell()
        assert Changed(jobs=["1.0@ap"], others=["cycle/9"]) == told(await reader.next())
        changes.heard([happening(n, "ada", 7, n) for n in range(MOST + 1)])
        changes.tell()
        assert Changed(many=True) == told(await reader.next())
        assert Changed(jobs=["7.0@ap"]) == told(await other.next())
        for proc in (1, 2):
            changes.heard([happening(5, "ada", 5, proc)])
            changes.tell()
        assert Changed(many=True) == told(await reader.next())


def told(event: bytes) -> Changed:
    return msgspec.json.decode(event.partition(b"data: ")[2], type=Changed)
