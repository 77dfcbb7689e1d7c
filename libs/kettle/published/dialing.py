"""
A connection to the gateway that becomes a tunnel: HTTP/1.1 with `Upgrade`, so that reverse proxies let it through.
"""

import asyncio
import ssl
from typing import Final, cast
from urllib.parse import urlsplit

import msgspec

from kettle.published.errors import TunnelError
from kettle.published.frames import PATH, PROTOCOL
from kettle.published.tunnel import Tunnel

DIAL_S: Final = 30.0
"""Seconds until a gateway has answered."""
FINAL: Final = frozenset({401, 403, 404, 409, 410})
"""Answers that another try with the same ticket does not change."""
_LONGEST_HEAD: Final = 16 * 1024
_SWITCHED: Final = 101


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
            lambda: _Upgrade(request.encode("latin-1"), tunnel), host, port, ssl=context
        )
        try:
            await upgrade.done
        except BaseException:
            transport.abort()
            raise


class _Upgrade(asyncio.Protocol):
    """Sends the request, reads the head of the answer, and hands the connection over."""

    def __init__(self, request: bytes, tunnel: Tunnel) -> None:
        self._request = request
        self._tunnel = tunnel
        self._heard = bytearray()
        self._transport: asyncio.Transport | None = None
        self._refused: tuple[int, bytes] | None = None
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Ask."""
        transport = cast("asyncio.Transport", transport)  # that of uvloop is no subclass
        self._transport = transport
        transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        """The head of the answer, and what follows it."""
        self._heard += data
        head, end, rest = bytes(self._heard).partition(b"\r\n\r\n")
        if not end:
            if len(self._heard) > _LONGEST_HEAD:
                self._fail(TunnelError("the gateway's answer has a head without an end"))
            return
        words = head.split(b" ", 2)
        status = int(words[1]) if len(words) > 1 and words[1].isdigit() else 0
        if not head.startswith(b"HTTP/1.") or not status:
            self._fail(TunnelError("what answers there does not speak HTTP/1.1"))
        elif status != _SWITCHED:
            self._hear_refusal(status, head, rest)
        elif not self.done.done():
            assert self._transport is not None
            self._transport.set_protocol(self._tunnel)
            self._tunnel.connection_made(self._transport)
            if rest:
                self._tunnel.data_received(rest)
            self.done.set_result(None)

    def _hear_refusal(self, status: int, head: bytes, rest: bytes) -> None:
        """A problem document says why; what is longer than a head is not waited for."""
        length = next(
            (
                int(line.partition(b":")[2])
                for line in head.split(b"\r\n")
                if line.lower().startswith(b"content-length:") and line.partition(b":")[2].strip().isdigit()
            ),
            0,
        )
        self._refused = status, rest
        if len(rest) >= min(length, _LONGEST_HEAD):
            self._fail(_refusal(status, rest))

    def connection_lost(self, exc: Exception | None) -> None:
        """Before it was a tunnel."""
        if self._refused is not None:
            self._fail(_refusal(*self._refused))
        self._fail(ConnectionResetError(f"the gateway has closed the connection: {exc or 'it says no more'}"))

    def _fail(self, error: Exception) -> None:
        if not self.done.done():
            self.done.set_exception(error)


def _refusal(status: int, body: bytes) -> GatewayRefusedError:
    try:
        problem = msgspec.json.decode(body, type=_Problem)
        said = problem.detail or problem.title
    except msgspec.MsgspecError:
        said = ""
    return GatewayRefusedError(
        status, f"the gateway refuses the tunnel ({status}){f': {said}' if said else ''}"
    )
