"""
How the hub's proxy gets to servers: each has a port of the loopback interface, and who connects there is connected with the service
that the job has published at the gateway, in the name of the person whose job it is.

No machine of the pool has to be reached from the hub's.
"""

import asyncio
import logging
from typing import Final

from kettle.client.published import passed
from kettle.jupyterhub.errors import HubError
from kettle.jupyterhub.gateway_access import PoolGateway
from kettle.jupyterhub.person_tokens import TokenSource
from kettle.jupyterhub.server_orders import SERVICE

_PIECE: Final = 64 << 10

_log: Final = logging.getLogger(__name__)


class ForwardedConnections:
    """Implements `Connections` for the server of one person."""

    def __init__(self, gateway: PoolGateway, token: TokenSource, *, host: str = "127.0.0.1") -> None:
        """`host`: the address of this machine at which the hub's proxy reaches this process."""
        self._gateway: Final = gateway
        self._token: Final = token
        self._host = host
        self._id = ""
        self._listener: asyncio.Server | None = None
        self._connected: set[asyncio.Task[None]] = set()

    async def open(self, id_: str) -> str:
        """See `Connections`."""
        if self._listener is None or self._id != id_:
            await self.close(self._id)
            self._id = id_
            self._listener = await asyncio.start_server(self._come, self._host, 0, limit=_PIECE)
        port = self._listener.sockets[0].getsockname()[1]
        return f"http://{self._host}:{port}"

    async def close(self, id_: str) -> None:
        """See `Connections`."""
        listener, self._listener = self._listener, None
        if listener is not None:
            listener.close()
        for task in self._connected:
            task.cancel()

    def _come(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._connect(reader, writer))
        self._connected.add(task)
        task.add_done_callback(self._connected.discard)

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            there = await self._gateway.connect(self._id, SERVICE, await self._token.token())
        except HubError as error:
            _log.info("nobody is connected with the server %s: %s", self._id, error)
            writer.transport.abort()
            return
        try:
            await passed(reader, writer, *there)
        finally:
            writer.close()
