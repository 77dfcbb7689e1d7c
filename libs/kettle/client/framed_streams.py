"""
Connections to services of jobs in the frames of a tunnel, of which each has one stream: over TLS, whose end of one direction is the end
of both, a frame says that one side sends no more.
"""

import asyncio
from collections.abc import Awaitable, Callable

from kettle.client.errors import PoolUnreachableError
from kettle.published.errors import TunnelError
from kettle.published.tunnel import Tunnel


class _TunnelOfOne(Tunnel):
    """It is over when its stream is."""

    def forget(self, number: int) -> None:
        """The stream is over on our side."""
        super().forget(number)
        self.close("the connection to the service is over")


async def open_framed(
    service: str, upgrade: Callable[[Tunnel], Awaitable[object]], *, limit: int
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """
    A connection to a service by a tunnel that `upgrade` connects with a gateway; `limit`: bytes that are read ahead.

    Raises PoolUnreachableError, and what `upgrade` raises.
    """
    tunnel = _TunnelOfOne(opens=True)
    await upgrade(tunnel)
    reader = asyncio.StreamReader(limit=limit)
    try:
        stream, protocol = await tunnel.create_connection(
            lambda: asyncio.StreamReaderProtocol(reader), service
        )
    except (TunnelError, OSError, TimeoutError) as error:
        tunnel.close("the service was not connected")
        raise PoolUnreachableError(f"the gateway has not connected the service {service}: {error}") from error
    return reader, asyncio.StreamWriter(stream, protocol, reader, asyncio.get_running_loop())
