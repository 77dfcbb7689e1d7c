"""
A network of this machine that nothing reaches, as one behind NAT: out of it lead some ports of the loopback device, and into it none.

It is that of one thread, and of the processes that the thread starts; it is gone with the last of them.
"""

import asyncio
import ctypes
import fcntl
import os
import socket
import struct
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Final, TypeVar

from kettle.client.published import passed

T = TypeVar("T")

_NEW_NETWORK: Final = 0x4000_0000
_GET_FLAGS: Final = 0x8913
_SET_FLAGS: Final = 0x8914
_UP: Final = 1
_DEVICE: Final = struct.Struct("16sh22x")
_LOCAL: Final = "127.0.0.1"


class ClosedNetwork:
    """Runs things in it."""

    def __init__(self) -> None:
        """Raises OSError: this process may not make one."""
        self._thread: Final = ThreadPoolExecutor(1, thread_name_prefix="closed-network")
        try:
            self._thread.submit(_enter_a_new_one).result()
        except BaseException:
            self._thread.shutdown()
            raise

    async def run(self, work: Callable[[], T]) -> T:
        """Do something there; processes that it starts stay there."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    @asynccontextmanager
    async def leading_out(self, ports: Iterable[int]) -> AsyncGenerator[None]:
        """Have what connects to one of these ports in there get to the same port out here."""
        async with AsyncExitStack() as stack:
            for port in ports:
                inside = await self.run(lambda port=port: socket.create_server((_LOCAL, port)))  # type: ignore[misc]
                await stack.enter_async_context(await asyncio.start_server(_passage(port), sock=inside))
            yield

    def close(self) -> None:
        """Nothing more is run there."""
        self._thread.shutdown()


def _enter_a_new_one() -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(_NEW_NETWORK):
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_:
        name, flags = _DEVICE.unpack(fcntl.ioctl(any_, _GET_FLAGS, _DEVICE.pack(b"lo", 0)))
        fcntl.ioctl(any_, _SET_FLAGS, _DEVICE.pack(name, flags | _UP))


def _passage(port: int) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]:
    async def out(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            there = await asyncio.open_connection(_LOCAL, port)
        except OSError:
            writer.close()
            return
        await passed(reader, writer, *there)
        writer.close()

    return out
