"""
Asking in the ordinary way: with an event loop, and again and again.  Loaded only when the short way did not do.
"""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import TypeVar

import msgspec

from kettle.bus.nats import NatsBus
from kettle.bus.ports import Bus, BusUnavailableError
from kettle.client.asking import ask
from kettle.client.errors import PoolUnreachableError
from kettle.client.pool_file import PoolFile
from kettle.wire.endpoint import Endpoint
from kettle.wire.identity import user
from kettle.wire.subjects import Subjects

Req = TypeVar("Req", bound=msgspec.Struct)
Rep = TypeVar("Rep", bound=msgspec.Struct)


class Ask:
    """
    Asks services over one connection.
    """

    def __init__(self, bus: Bus, patience: float) -> None:
        self._bus = bus
        self._patience = patience

    async def __call__(self, endpoint: Endpoint[Req, Rep], name: str, request: Req) -> Rep:
        """
        See `kettle.client.asking.ask`.
        """
        return await ask(self._bus, endpoint, name, request, patience=self._patience)


@asynccontextmanager
async def connected(pool: PoolFile, patience: float) -> AsyncGenerator[Ask]:
    """
    Ask over one connection, which is waited for as long as for an answer.

    Raises PoolUnreachableError: there is none.
    """
    context = NatsBus.connect(
        pool.nats_url,
        subjects=Subjects(pool.pool),
        identity=user(pool.user),
        credentials=pool.credentials,
        name="client",
        patience=patience,
    )
    try:
        bus = await context.__aenter__()
    except (BusUnavailableError, OSError) as error:
        raise PoolUnreachableError(f"the pool's bus cannot be reached: {error}") from error
    try:
        yield Ask(bus, patience)
    finally:
        await context.__aexit__(None, None, None)
