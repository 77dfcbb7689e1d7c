"""Encrypted connections to NATS in an event loop, made as `kettle.bus.encryption` makes blocking ones."""

import asyncio
import ssl
from typing import Final

from kettle.bus.encryption import encrypts
from kettle.pki.contexts import client_context
from kettle.pki.explanations import UntrustedError, failed, is_plain, plain

_SHUTDOWN_S: Final = 1.0
"""For the farewell of TLS: a server that is gone does not answer it, and the next one is to be tried."""
_GREETING_S: Final = 3.0
"""A server of NATS greets at once."""

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class EncryptedStreams:
    """Encrypted connections of one client, all to be proved by the same authority."""

    def __init__(self, ca: str) -> None:
        """
        `ca` is the path of its certificate, read for each connection, since it may be replaced; empty: the system's.
        """
        self._ca = ca
        self._below: asyncio.StreamWriter | None = None
        """What an encrypted connection was made from; if it were forgotten its socket would be closed."""

    async def open(self, host: str, port: int, *, limit: int) -> Streams:
        """
        Connect; what the server has said before it was encrypted can be read again.

        Raises:
            UntrustedError: it is not who it is meant to be, or does not encrypt.
            OSError: it cannot be reached.
        """
        context, where = client_context(self._ca), f"{host}:{port}"
        try:
            return await asyncio.open_connection(
                host, port, limit=limit, ssl=context, server_hostname=host, ssl_shutdown_timeout=_SHUTDOWN_S
            )
        except (ssl.SSLError, ConnectionResetError, ConnectionAbortedError) as error:
            if not is_plain(error):
                raise failed(error, where, self._ca) from error
        reader, self._below = await asyncio.open_connection(host, port, limit=limit)
        try:
            greeting = await _greeting(reader, where)
            encrypted = await start_tls(self._below, context, host, limit=limit)
        except (ssl.SSLError, ConnectionResetError, ConnectionAbortedError) as error:
            self._below.close()
            raise failed(error, where, self._ca) from error
        except BaseException:
            self._below.close()
            raise
        encrypted[0].feed_data(greeting)
        return encrypted


async def _greeting(reader: asyncio.StreamReader, where: str) -> bytes:
    """
    What a server of NATS says in the clear before it goes on encrypted; what anything else says is an error.
    """
    try:
        async with asyncio.timeout(_GREETING_S):
            greeting = await reader.readline()
    except (TimeoutError, ValueError) as error:  # it says nothing, or a line without end
        raise UntrustedError(plain(where)) from error
    if not encrypts(greeting):
        raise UntrustedError(plain(where))
    return greeting


class _Encrypted(asyncio.StreamReaderProtocol):
    """
    What is read of an encrypted connection, of which no half can be closed: asyncio warns of protocols that ask for it.
    """

    def eof_received(self) -> bool:
        """See `asyncio.Protocol.eof_received`."""
        super().eof_received()
        return False


async def start_tls(
    plug: asyncio.StreamWriter, context: ssl.SSLContext, host: str | None, *, limit: int
) -> Streams:
    """
    Go on encrypted. What somebody has put behind the last line in the clear is not read: the reader is a new one.
    """
    loop, reader = asyncio.get_running_loop(), asyncio.StreamReader(limit=limit)
    protocol = _Encrypted(reader)
    encrypted = await loop.start_tls(
        plug.transport, protocol, context, server_hostname=host, ssl_shutdown_timeout=_SHUTDOWN_S
    )
    assert encrypted is not None  # it is only for what is no stream
    reader.set_transport(encrypted)
    return reader, asyncio.StreamWriter(encrypted, protocol, reader, loop)
