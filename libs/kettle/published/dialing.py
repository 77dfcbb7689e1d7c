"""
A connection to the gateway that becomes a tunnel: HTTP/1.1 with `Upgrade`, so that reverse proxies let it through.
"""

import asyncio
import ssl
from typing import Final
from urllib.parse import urlsplit

import msgspec

from kettle.http.upgrades import Upgrade
from kettle.published.errors import TunnelError
from kettle.published.frames import PATH, PROTOCOL
from kettle.published.tunnel import Tunnel

DIAL_S: Final = 30.0
"""Seconds until a gateway has answered."""
FINAL: Final = frozenset({401, 403, 404, 409, 410})
"""Answers that another try with the same ticket does not change."""


class GatewayRefusedError(TunnelError):
    """The gateway has answered that it does not take the tunnel."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status

    @property
    def is_final(self) -> bool:
        """Whether it says the same however often it is asked."""
        return self.status in FINAL


class _Problem(msgspec.Struct):
    detail: str = ""
    title: str = ""


async def dial(url: str, ca: str, ticket: str, tunnel: Tunnel) -> None:
    """
    Connect a tunnel with the gateway at `url`, whose certificate may come from `ca` (PEM) too; where HTTPS is not wanted, it is `http:`.

    Raises:
        GatewayRefusedError: it does not take it.
        OSError: it cannot be reached, or is not who it should be.
        TimeoutError: it does not answer.
    """
    parts = urlsplit(url)
    encrypted = parts.scheme == "https"
    context = None
    if encrypted:
        context = ssl.create_default_context()
        if ca:
            context.load_verify_locations(cadata=ca)
    host = parts.hostname or ""
    port = parts.port or (443 if encrypted else 80)
    request = (
        f"GET {parts.path.rstrip('/')}{PATH} HTTP/1.1\r\nHost: {parts.netloc.rpartition('@')[2]}\r\n"
        f"Connection: Upgrade\r\nUpgrade: {PROTOCOL}\r\nAuthorization: Bearer {ticket}\r\n\r\n"
    )
    loop = asyncio.get_running_loop()
    async with asyncio.timeout(DIAL_S):
        transport, upgrade = await loop.create_connection(
            lambda: Upgrade(
                request.encode("latin-1"),
                onward=lambda: tunnel,
                refused=_refusal,
                broken=ConnectionResetError,
            ),
            host,
            port,
            ssl=context,
        )
        try:
            await upgrade.done
        except BaseException:
            transport.abort()
            raise


def _refusal(status: int, _head: bytes, body: bytes) -> GatewayRefusedError:
    try:
        problem = msgspec.json.decode(body, type=_Problem)
        said = problem.detail or problem.title
    except msgspec.MsgspecError:
        said = ""
    return GatewayRefusedError(
        status, f"the gateway refuses the tunnel ({status}){f': {said}' if said else ''}"
    )
