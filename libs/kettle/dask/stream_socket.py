"""
A socket that carries what a stream carries, for libraries that want one: Dask's connections are sockets.
"""

import asyncio
import socket
from typing import Final, Self

_PIECE: Final = 256 * 1024
_WITHIN_S: Final = 5.0


class StreamSocket:
    """
    Two tasks copy between the stream and a pair of sockets of this process.

    Back pressure goes through: each side is read only as fast as the other takes it.  At the end of either all is closed.
    What it carries is encrypted already: the pair is on the loopback device.
    """

    def __init__(
        self,
        ours: socket.socket,
        theirs: socket.socket,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        self.socket: Final = theirs
        """For the library, which closes it."""
        self.failure = ""
        """Why the stream ended, if it did by an error."""
        self._ours: Final = ours
        self.copying: Final = asyncio.create_task(
            self._carry(reader, writer), name="stream of a Dask connection"
        )
        """Ends when the stream has ended; somebody has to keep it until then."""

    @classmethod
    async def around(cls, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Self:
        """A socket for this stream, which is ours from now on."""
        try:
            ours, theirs = await _pair()
        except BaseException:
            writer.close()
            raise
        return cls(ours, theirs, reader, writer)

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        inner_reader, inner_writer = await asyncio.open_connection(sock=self._ours)
        try:
            async with asyncio.TaskGroup() as both:
                both.create_task(_copy(reader, inner_writer))
                both.create_task(_copy(inner_reader, writer))
        except* (OSError, asyncio.IncompleteReadError) as failed:
            self.failure = str(failed.exceptions[0])
        finally:
            inner_writer.close()
            writer.close()


async def _copy(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    while data := await source.read(_PIECE):
        target.write(data)
        await target.drain()
    if target.can_write_eof():
        target.write_eof()
    else:
        target.close()


async def _pair() -> tuple[socket.socket, socket.socket]:
    """
    Two ends of a TCP connection on the loopback device.

    A pair of Unix sockets would do, but what is set for Dask's sockets is of TCP.
    """
    loop = asyncio.get_running_loop()
    with socket.create_server(("127.0.0.1", 0), backlog=1) as server:
        server.setblocking(False)
        theirs = socket.socket()
        try:
            theirs.setblocking(False)
            async with asyncio.timeout(_WITHIN_S):
                await loop.sock_connect(theirs, server.getsockname())
                while True:
                    ours, peer = await loop.sock_accept(server)
                    if peer == theirs.getsockname():
                        break
                    ours.close()  # a stranger of this machine was faster
        except BaseException:
            theirs.close()
            raise
    ours.setblocking(False)
    return ours, theirs
