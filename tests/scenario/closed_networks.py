"""
Machines that nothing outside reaches: network namespaces with nothing but a loopback interface of their own, out of which some ports lead.
"""

import asyncio
import ctypes
import os
import secrets
import shutil
import socket
import subprocess
from collections.abc import AsyncGenerator, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Final

import pytest

from kettle.client.published import passed

_NETWORK_NAMESPACE: Final = 0x4000_0000
"""CLONE_NEWNET of setns(2)."""
_WITHIN_S: Final = 30.0


@asynccontextmanager
async def closed_network(ports: Iterable[int]) -> AsyncGenerator[list[str]]:
    """
    One of them: what connects inside to one of the ports of 127.0.0.1 gets to the same port outside.  Yields the words before a command
    that runs there.
    """
    if os.geteuid() != 0:
        pytest.skip("only root can make network namespaces")
    if shutil.which("ip") is None:
        pytest.skip("ip is not installed (Debian: iproute2)")
    name = f"ktc{secrets.token_hex(3)}"
    _ip("netns", "add", name)
    try:
        _ip("-n", name, "link", "set", "lo", "up")
        async with AsyncExitStack() as stack:
            for port in ports:
                inside = await asyncio.to_thread(_listener, name, port)
                await stack.enter_async_context(await _leading_out(inside, port))
            yield ["ip", "netns", "exec", name]
    finally:
        _ip("netns", "del", name)


async def _leading_out(inside: socket.socket, port: int) -> asyncio.Server:
    async def out(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            there = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            writer.close()
            return
        await passed(reader, writer, *there)
        writer.close()

    return await asyncio.start_server(out, sock=inside)


def _listener(name: str, port: int) -> socket.socket:
    libc = ctypes.CDLL(None, use_errno=True)

    def made() -> socket.socket:
        with Path(f"/run/netns/{name}").open("rb") as space:
            # Of this thread alone, which ends here.
            if libc.setns(space.fileno(), _NETWORK_NAMESPACE):
                raise OSError(ctypes.get_errno(), f"the network {name} cannot be entered")
        return socket.create_server(("127.0.0.1", port))

    with ThreadPoolExecutor(1) as thread:
        return thread.submit(made).result()


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, timeout=_WITHIN_S)
