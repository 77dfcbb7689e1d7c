"""
The transport below nats-py's client: TCP, of which no socket is forgotten, and which is read in large pieces.

It is a `Transport` of nats-py's, made from nothing but `asyncio`. Only how the client gets it is not offered by nats-py,
which makes a transport of its own unless there is one: `NatsClient` has one from the beginning.
"""

import asyncio
import ssl
from typing import TYPE_CHECKING, Final
from urllib.parse import ParseResult

from kettle.bus.nats_driver import Client, Transport, errors

if TYPE_CHECKING:
    from kettle.bus.encrypted_stream import EncryptedStreams

_PORT: Final = 4222
READ_BYTES: Final = 256 * 1024
"""At once: pieces of files come in few reads, and what comes is handed on after each."""


class TcpTransport(Transport):
    """One connection after another, to whichever server the client has chosen."""

    def __init__(self, encrypted: "EncryptedStreams | None" = None) -> None:
        """
        `encrypted`: what all connections are made by; without it they are encrypted if the server asks for it.
        """
        self._encrypted = encrypted
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None
        self._plain: asyncio.StreamWriter | None = None
        """Below a connection with TLS; if it were forgotten its socket would be closed."""
        self.used = False
        """Whether a connection was tried: before that the client has nothing to close."""

    async def connect(self, uri: ParseResult, buffer_size: int, connect_timeout: float) -> None:
        """
        Connect in place of the former connection, which is closed: a server may have broken off while it greeted.

        `asyncio.timeout`, because before Python 3.12 `wait_for` forgets a connection that is there at the moment at which
        it is cancelled.
        """
        del buffer_size
        self.used = True
        self.close()
        async with asyncio.timeout(connect_timeout):
            if self._encrypted is not None:
                streams = await self._encrypted.open(uri.hostname or "", uri.port or _PORT, limit=READ_BYTES)
            else:
                streams = await asyncio.open_connection(uri.hostname, uri.port, limit=READ_BYTES)
        self._reader, self._writer = streams
        self._plain = self._writer

    async def connect_tls(
        self, uri: str | ParseResult, ssl_context: ssl.SSLContext, buffer_size: int, connect_timeout: float
    ) -> None:
        """Encrypt the connection that there is, as the server has asked for, unless it is."""
        del buffer_size
        if self._encrypted is not None:
            return
        from kettle.bus.encrypted_stream import start_tls  # most servers do not ask
        from kettle.pki.explanations import failed

        host = uri if isinstance(uri, str) else uri.hostname
        async with asyncio.timeout(connect_timeout):
            try:
                streams = await start_tls(self._open, ssl_context, host, limit=READ_BYTES)
            except BaseException as error:
                self._forget()
                if isinstance(error, ssl.SSLError):
                    raise failed(error, host or "the bus", "") from error
                raise
        self._reader, self._writer = streams

    def write(self, payload: bytes) -> None:
        """
        See `Transport.write`; to a connection that is closed nothing is written, as with one that is not encrypted.
        """
        if not self._open.is_closing():  # an encrypted one would end in an AttributeError of asyncio's
            self._open.write(payload)

    def writelines(self, payload: list[bytes]) -> None:
        """As `write`."""
        if not self._open.is_closing():
            self._open.writelines(payload)

    async def read(self, buffer_size: int) -> bytes:
        """What has come, more of it at once than is asked for."""
        del buffer_size
        return await self._reader.read(READ_BYTES) if self._reader is not None else b""

    async def readline(self) -> bytes:
        """See `Transport.readline`."""
        return await self._reader.readline() if self._reader is not None else b""

    async def drain(self) -> None:
        """See `Transport.drain`."""
        await self._open.drain()

    async def wait_closed(self) -> None:
        """See `Transport.wait_closed`."""
        if self._writer is not None:
            await self._writer.wait_closed()

    def close(self) -> None:
        """Close the connection, if there is one."""
        if self._writer is not None:
            self._writer.close()

    def _forget(self) -> None:
        """
        Close a connection whose encryption has failed. Nobody tells its writer that it is closed, so nobody waits for that.
        """
        self.close()
        self._reader = self._writer = None

    def at_eof(self) -> bool:
        """See `Transport.at_eof`."""
        return self._reader is None or self._reader.at_eof()

    def __bool__(self) -> bool:  # pyright: ignore[reportIncompatibleMethodOverride]  # its base has no types
        """Always: a transport that is not there yet would be replaced by one of nats-py's own."""
        return True

    @property
    def _open(self) -> asyncio.StreamWriter:
        if self._writer is None:
            raise errors.ConnectionClosedError
        return self._writer


_ASKED_AGAIN: Final = ("authorization violation", "user authentication expired")
"""What the server says of a connection that may be made again: it has let this client in before."""


_BETWEEN_ROWS_S: Final = 0.5
"""A row of tries that ended in a failure which nats-py does not expect is followed by another one after so long."""


class NatsClient(Client):
    """nats-py's client over our transport, which comes back whatever goes wrong while it comes back."""

    def __init__(self, transport: TcpTransport) -> None:
        super().__init__()
        self._transport = transport

    async def _attempt_reconnect(self) -> None:
        """
        nats-py stops trying for good, and says so to nobody, when something other than the network fails: a credential that is
        being replaced and cannot be read, a greeting that is none.
        """
        while True:
            try:
                await super()._attempt_reconnect()
            except Exception as error:  # noqa: BLE001 - whatever it is, the next try may succeed
                if self.is_closed:
                    return
                self._status = Client.RECONNECTING
                await self._error_cb(errors.Error(f"nats: cannot connect again: {error!r}"))
                await asyncio.sleep(_BETWEEN_ROWS_S)
            else:
                return

    async def _process_err(self, err_msg: str) -> None:
        """
        nats-py closes the client for good after whatever the server says.  But a server ends connections of which a credential has
        ended, and those about which it wants to ask again; who has a newer credential, or is still welcome, comes again.
        """
        if self.is_connected and any(each in err_msg.lower() for each in _ASKED_AGAIN):
            await self._process_op_err(errors.Error(f"nats: {err_msg}"))
        else:
            await super()._process_err(err_msg)
