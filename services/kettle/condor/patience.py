"""
Asking in the ordinary way: with an event loop, and again and again.  Loaded only when the short way did not do.
"""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import TypeVar

import msgspec

from kettle.bus.ports import Asks
from kettle.client import connecting
from kettle.client.asking import ask
from kettle.client.pool_file import PoolFile
from kettle.wire.endpoint import Endpoint

Req = TypeVar("Req", bound=msgspec.Struct)
Rep = TypeVar("Rep", bound=msgspec.Struct)


class Ask:
    """
    Asks services over one connection.
    """

    def __init__(self, asks: Asks, patience: float) -> None:
        self._asks = asks
        self._patience = patience

    async def __call__(self, endpoint: Endpoint[Req, Rep], name: str, request: Req) -> Rep:
        """
        See `kettle.client.asking.ask`.
        """
        return await ask(self._asks, endpoint, name, request, patience=self._patience)


@asynccontextmanager
async def connected(pool: PoolFile, patience: float) -> AsyncGenerator[Ask]:
    """
    Ask over one connection, which is waited for as long as for an answer.

    Raises PoolUnreachableError: there is none.
    """
    async with connecting.connected(pool, patience) as (asks, _):
        yield Ask(asks, patience)
