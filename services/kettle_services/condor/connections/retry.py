"""
Requests with an event loop, repeated until there is an answer.  Loaded only when the blocking socket was not enough.
"""

import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, TypeVar

import msgspec

from kettle.bus.ports import Asks
from kettle.client.connections import pool_connection
from kettle.client.connections.pool_file import PoolFile
from kettle.client.connections.retry import ask_with_retry
from kettle_wire.endpoint import Endpoint

if TYPE_CHECKING:
    from kettle.client import Client

Req = TypeVar("Req", bound=msgspec.Struct)
Rep = TypeVar("Rep", bound=msgspec.Struct)


class RequestSender:
    """Asks services over one connection."""

    def __init__(self, asks: Asks, patience: float) -> None:
        self._asks = asks
        self._patience = patience

    async def __call__(self, endpoint: Endpoint[Req, Rep], name: str, request: Req) -> Rep:
        """See `kettle.client.connections.retry.ask`."""
        return await ask_with_retry(self._asks, endpoint, name, request, patience=self._patience)


@asynccontextmanager
async def connected(pool: PoolFile, patience: float) -> AsyncGenerator[RequestSender]:
    """
    Ask over one connection, which is waited for as long as for an answer.

    Raises PoolUnreachableError: there is none.
    """
    _be_silent()
    async with pool_connection.connect_pool(pool, patience) as (asks, _):
        yield RequestSender(asks, patience)


@asynccontextmanager
async def client(pool: PoolFile, patience: float) -> AsyncGenerator["Client"]:
    """
    The whole client, for what is more than a question.

    Raises PoolUnreachableError: there is no connection.
    """
    from kettle.client import Client

    _be_silent()
    async with Client.connect(pool=pool, patience=patience) as connected_client:
        yield connected_client


def _be_silent() -> None:
    """
    Programs take any line of standard error for the command's own, and that says in one sentence what went wrong.
    """
    for package in ("kettle", "kettle_services"):
        logging.getLogger(package).addHandler(logging.NullHandler())
