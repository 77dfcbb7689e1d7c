"""Connections to the bus that the REST interface has in the names of persons."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, cast

import pytest

from kettle.auth.mapping.policy import Mapped
from kettle.auth.mapping.principals import local
from kettle.client import Client
from kettle.client.connections.pool_file import PoolFile
from kettle.testing.patience import PATIENCE_S
from kettle_services.gateway.rest.connections import OwnConnections, Shown
from kettle_services.gateway.rest.persons import Person
from kettle_services.gateway.rest.refusals import RequestRefused


def person(name: str) -> Person:
    return Person(local(name), Mapped(owner=name, domain="pool"))


class Bus:
    """Who is connected; one is connected only when it is let in."""

    def __init__(self) -> None:
        self.connected: list[str] = []
        self.slow = asyncio.Event()

    @asynccontextmanager
    async def connect(self, pool: PoolFile, _shown: Shown | None) -> AsyncGenerator[Client]:
        if pool.user == "slow":
            await self.slow.wait()
        self.connected.append(pool.user)
        try:
            yield cast("Client", cast("Any", pool.user))
        finally:
            self.connected.remove(pool.user)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    PoolFile(nats_url="nats://127.0.0.1:1", user="own").save(tmp_path)
    (tmp_path / "credentials").mkdir()
    for name in ("ada", "bob", "cyd", "slow"):
        (tmp_path / "credentials" / f"account-{name}.creds").touch()
    return tmp_path


async def test_a_connection_in_use_is_not_closed_for_another(home: Path) -> None:
    """
    The idle one goes that was used longest ago; if all are in use the next person is asked to come again.
    """
    bus = Bus()
    async with (
        OwnConnections.ready(home, pool_domain="pool", connect=bus.connect, most=2) as people,
        people.of(person("ada")),
    ):
        async with people.of(person("bob")):
            with pytest.raises(RequestRefused) as caught:
                async with people.of(person("cyd")):
                    pass
            assert (503, ["ada", "bob"]) == (caught.value.status, bus.connected)
        async with people.of(person("cyd")), people.of(person("ada")):
            assert ["ada", "cyd"] == bus.connected
    assert not bus.connected


async def test_terminals_leave_connections_for_who_orders_something(home: Path) -> None:
    """Half of all are not for what has no end of its own; somebody who has one for long has it for more."""
    bus = Bus()
    async with (
        OwnConnections.ready(home, pool_domain="pool", connect=bus.connect, most=2) as people,
        people.for_long(person("ada")),
        people.for_long(person("ada")),
    ):
        with pytest.raises(RequestRefused, match="have a terminal"):
            async with people.for_long(person("bob")):
                pass
        async with people.of(person("cyd")):
            assert ["ada", "cyd"] == bus.connected


async def test_nobody_waits_for_the_connection_of_somebody_else(home: Path) -> None:
    """While one is being made others are used; who wants the same one waits for it, and gets it."""
    bus = Bus()
    async with (
        OwnConnections.ready(home, pool_domain="pool", connect=bus.connect) as people,
        AsyncExitStack() as stack,
    ):
        slow = [asyncio.create_task(stack.enter_async_context(people.of(person("slow")))) for _ in range(2)]
        async with asyncio.timeout(PATIENCE_S), people.of(person("ada")):
            assert ["ada"] == bus.connected
        bus.slow.set()
        await asyncio.gather(*slow)
        assert ["ada", "slow"] == bus.connected
