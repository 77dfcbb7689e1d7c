"""Streams of events over real HTTP, from a bus that goes away."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest
from aiohttp import ClientTimeout, web
from aiohttp.test_utils import TestClient, TestServer

from kettle.auth.mapping.policy import Mapped
from kettle.auth.mapping.principals import local
from kettle.bus.ports import Bus
from kettle.client import Client, PoolUnreachableError
from kettle.client.events.published import Published, Wanted
from kettle_services.gateway.rest.application import Asked
from kettle_services.gateway.rest.event_feed import HEARTBEAT_S, EventFeed
from kettle_services.gateway.rest.persons import Person
from kettle_wire.rest.past import FollowEvents

ADA = Person(local("ada"), Mapped(owner="ada", domain="pool"))


class Ending:
    """A connection whose stream ends after one event."""

    def __init__(self, error: Exception | None) -> None:
        self._error = error

    async def published(self, _wanted: Wanted) -> AsyncGenerator[Published]:
        yield Published(7, cast("Any", None), b"{}")
        if self._error is not None:
            raise self._error

    @asynccontextmanager
    async def of(self, person: Person) -> AsyncGenerator[Client]:
        yield cast("Client", cast("Any", self))


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (PoolUnreachableError("the bus is away"), "the bus is away"),
        (None, "the connection to the bus was closed"),
    ],
)
async def test_who_follows_is_told_at_once_that_nothing_more_comes(
    error: Exception | None, why: str, caplog: pytest.LogCaptureFixture
) -> None:
    """What was read before is sent; then an event says why the stream ends, and so does the log."""
    feed = EventFeed(cast("Bus", None), "MONITOR", Ending(error), most=1)

    async def follow(request: web.Request) -> web.StreamResponse:
        return await feed.follow(Asked(ADA, FollowEvents(), None, request))

    application = web.Application()
    application.router.add_get("/", follow)
    async with (
        TestClient(TestServer(application)) as client,
        client.get("/", timeout=ClientTimeout(HEARTBEAT_S / 2)) as response,
    ):
        text = await response.text()
    assert text.startswith("id: 7\ndata: {}\n\nevent: cut\n")
    assert why in text
    assert why in caplog.text
