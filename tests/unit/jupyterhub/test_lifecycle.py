"""A server of a person as a hub sees it: what it hears, what it does not hear, and what it never guesses."""

import asyncio
from collections.abc import AsyncGenerator, Sequence

import pytest

from kettle.jupyterhub.errors import (
    GatewayRefusedError,
    GatewayUnreachableError,
    HubError,
    NoTokenError,
    ServerFailedError,
)
from kettle.jupyterhub.lifecycle import ServerOfPerson
from kettle.jupyterhub.server_orders import OfferedProfile, ServerOrder, ServerSeen, ServerSize
from kettle.retry.backoff import Backoff
from kettle.testing.patience import PATIENCE_S

ORDER = ServerOrder(mark="hub/ada/", profile="notebook", size=ServerSize(), key="1")
QUEUED = ServerSeen(state="queued", reason="all cores are in use", job="1.0")
STARTING = ServerSeen(state="starting", reason="the job runs on n1", job="1.0")
READY = ServerSeen(state="ready", job="1.0")
HELD = ServerSeen(state="degraded", reason="job 1.0 is on hold: no such image", is_stuck=True)
ENDED = ServerSeen(state="ended", reason="the server has exited with code 3", exit_code=3)
AWAY = GatewayUnreachableError("the gateway does not answer")


class Pool:
    """A pool that says what a test wants; an error in `said` is raised in its place."""

    def __init__(self, *said: ServerSeen | HubError) -> None:
        self.said = list(said)
        self.seen: ServerSeen | HubError = READY
        self.running: set[str] = set()
        self.begun, self.go_on = asyncio.Event(), asyncio.Event()
        self.go_on.set()
        self.words = ""

    async def profiles(self, token: str) -> Sequence[OfferedProfile]:
        return [OfferedProfile(name="notebook")]

    async def start(self, order: ServerOrder, token: str) -> str:
        self.begun.set()
        await self.go_on.wait()
        self.running.add("1.0@schedd")
        return "1.0@schedd"

    async def news(self, id_: str, token: str) -> AsyncGenerator[ServerSeen]:
        while self.said:
            match self.said.pop(0):
                case HubError() as error:
                    raise error
                case seen:
                    yield seen

    async def look(self, id_: str, token: str) -> ServerSeen:
        if isinstance(self.seen, HubError):
            raise self.seen
        return self.seen

    async def last_words(self, id_: str, token: str) -> str:
        return self.words

    async def stop(self, id_: str, token: str) -> None:
        self.running.discard(id_)


class Token:
    def __init__(self) -> None:
        self.error: HubError | None = None

    async def token(self) -> str:
        if self.error:
            raise self.error
        return "ada's"


class Ways:
    """Which servers have an address."""

    def __init__(self) -> None:
        self.opened: set[str] = set()

    async def open(self, id_: str) -> str:
        self.opened.add(id_)
        return f"http://127.0.0.1:1/{id_}"

    async def close(self, id_: str) -> None:
        self.opened.discard(id_)


class World:
    def __init__(self, *said: ServerSeen | HubError, id_: str = "") -> None:
        self.pool, self.token, self.ways = Pool(*said), Token(), Ways()
        again = Backoff(first=0.001, longest=0.001)
        self.server = ServerOfPerson(self.pool, self.token, self.ways, id_=id_, backoff=again)
        self.remembered: list[str] = []

    async def start(self) -> str:
        async with asyncio.timeout(PATIENCE_S):
            return await self.server.start(ORDER, self.remembered.append)

    async def page(self) -> list[str]:
        return [line["message"] async for line in self.server.board.lines()]


async def test_a_server_is_there_when_the_pool_says_so() -> None:
    """Its id is remembered, its page has each wait with its reason, and a repeated line only once."""
    world = World(QUEUED, QUEUED, STARTING, READY)
    assert "http://127.0.0.1:1/1.0@schedd" == await world.start()
    assert ["1.0@schedd"] == world.remembered
    assert [
        "The pool is asked for a server",
        "The server waits for a machine: all cores are in use",
        "The server starts: the job runs on n1",
        "The server runs, and is connected",
    ] == await world.page()


async def test_a_gateway_that_is_away_is_asked_again() -> None:
    """The start goes on where it was, and the page says why nothing is known."""
    world = World(QUEUED, AWAY, AWAY, READY)
    await world.start()
    assert "The pool will be asked again: the gateway does not answer" in await world.page()


@pytest.mark.parametrize("last", [HELD, ENDED])
async def test_a_server_that_never_comes_up_says_why(last: ServerSeen) -> None:
    """In one sentence, with the end of what it has written."""
    world = World(STARTING, last)
    world.pool.words = "ImportError:\n no module jupyterhub\n"
    with pytest.raises(ServerFailedError) as failed:
        await world.start()
    expected = f"{last.reason}; its last words: ImportError: no module jupyterhub"
    assert f"Your server has not come up: {expected}" == failed.value.jupyterhub_message


async def test_a_start_that_is_given_up_leaves_no_server() -> None:
    """Also in the moment in which the pool is asked, and nobody knows its id."""
    world = World()
    world.pool.go_on.clear()
    start = asyncio.create_task(world.start())
    await world.pool.begun.wait()
    start.cancel()
    await asyncio.sleep(0)
    world.pool.go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await start
    assert set() == world.pool.running


@pytest.mark.parametrize(
    "error", [AWAY, GatewayRefusedError(401, "token.expired", "over"), NoTokenError("sign in again")]
)
async def test_what_is_not_heard_is_not_gone(error: HubError) -> None:
    """
    A gateway that is away, a token that it does not take, and a login that is over say nothing of a server.
    """
    world = World(id_="1.0@schedd")
    world.pool.seen = error
    assert await world.server.poll() is None
    world.token.error = NoTokenError("sign in again")
    assert await world.server.poll() is None


async def test_a_server_is_found_again_by_its_id() -> None:
    """A hub that starts again has nothing but that."""
    world = World(id_="1.0@schedd")
    assert await world.server.poll() is None
    assert "http://127.0.0.1:1/1.0@schedd" == await world.server.address()
    world.pool.seen = QUEUED  # its machine was lost: it starts again elsewhere
    assert await world.server.poll() is None
    world.pool.seen = ENDED
    assert 3 == await world.server.poll()
    assert set() == world.ways.opened


async def test_a_server_on_hold_is_ended() -> None:
    """Nobody would end its job later, and the hub would not know if it ran again."""
    world = World(id_="1.0@schedd")
    world.pool.running, world.pool.seen = {"1.0@schedd"}, HELD
    assert 1 == await world.server.poll()
    assert set() == world.pool.running


async def test_a_server_that_has_ended_can_be_stopped() -> None:
    """And one that was never there, too; one that may still run is told of."""
    await World().server.stop()
    world = World(id_="1.0@schedd")
    world.token.error = NoTokenError("sign in again")
    with pytest.raises(NoTokenError):
        await world.server.stop()
