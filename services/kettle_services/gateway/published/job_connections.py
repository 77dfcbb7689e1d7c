"""
Connections of HTTP to the services of one job, through its tunnel.

Those of requests without a body are used again.  A request with a body gets a connection of its own, because what was sent of it could
not be sent a second time if the job has just closed an old one.
"""

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Final

import aiohttp
from aiohttp.client_proto import ResponseHandler
from yarl import URL

from kettle.published.tunnel import Tunnel

if TYPE_CHECKING:
    from aiohttp.client_reqrep import ClientRequest
    from aiohttp.tracing import Trace

HEAD_LINE: Final = 64 * 1024
"""Bytes of one line of the head of a job's answer."""
_KEPT_S: Final = 15.0
_PIECE: Final = 256 * 1024
_OURS: Final = ("Accept", "Accept-Encoding", "Content-Type", "User-Agent")
"""What the client would add by itself."""


class TunnelConnector(aiohttp.BaseConnector):
    """Has its connections from a tunnel: the host of an address is the name of a service."""

    def __init__(self, tunnel: Tunnel, *, reuses: bool) -> None:
        if reuses:
            super().__init__(limit=0, keepalive_timeout=_KEPT_S)
        else:
            super().__init__(limit=0, force_close=True)
        self._tunnel = tunnel
        self._factory = partial(ResponseHandler, loop=asyncio.get_running_loop())

    async def _create_connection(
        self, req: "ClientRequest", traces: "list[Trace]", timeout: aiohttp.ClientTimeout
    ) -> ResponseHandler:
        del traces, timeout
        service = req.url.raw_host
        assert service is not None, "the addresses are made here"
        _, protocol = await self._tunnel.create_connection(self._factory, service)
        return protocol


class JobConnections:
    """Of one tunnel."""

    def __init__(self, tunnel: Tunnel) -> None:
        self._again: Final = _session(TunnelConnector(tunnel, reuses=True))
        self._once: Final = _session(TunnelConnector(tunnel, reuses=False))

    def session(self, *, again: bool) -> aiohttp.ClientSession:
        """What sends a request; `again`: over a connection that is used again."""
        return self._again if again else self._once

    async def close(self) -> None:
        """End all of them."""
        await self._again.close()
        await self._once.close()


def address_in_job(service: str, target: str) -> URL:
    """The address of a path, with its query, at a service of the job, as it stands."""
    path, _, query = target.partition("?")
    return URL.build(scheme="http", host=service, path=path, query_string=query, encoded=True)


def _session(connector: TunnelConnector) -> aiohttp.ClientSession:
    return aiohttp.ClientSession(
        connector=connector,
        cookie_jar=aiohttp.DummyCookieJar(),
        auto_decompress=False,
        skip_auto_headers=_OURS,
        timeout=aiohttp.ClientTimeout(total=None),
        max_line_size=HEAD_LINE,
        max_field_size=HEAD_LINE,
        read_bufsize=_PIECE,
        trust_env=False,
    )
