"""The process beside a job, with processes that stand for those of the job."""

import asyncio
import shutil
import socket
import subprocess
import sys
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager

import msgspec
import pytest

from kettle.execution.system.linux import start_time
from kettle.published.errors import StreamRefusedError
from kettle.published.frames import Announcement
from kettle.published.job_side import Orders
from kettle.published.services import Service
from kettle.published.tunnel import Tunnel
from kettle_services.starter.published.helper import TunnelHelper

from .made_up_gateway import PATIENCE_S, MadeUpGateway, made_up_gateway

ECHO = """\
import socket, sys
server = socket.create_server((sys.argv[1], int(sys.argv[2])), family=socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET)
print(server.getsockname()[1], flush=True)
while True:
    plug, _ = server.accept()
    plug.sendall(plug.recv(100))
    plug.close()
"""


def inside() -> tuple[str, ...] | None:
    """What has a program run in a network of its own; None: there can be none."""
    words = (shutil.which("unshare") or "", "-rn", "sh", "-c", 'ip link set lo up && exec "$@"', "sh")
    tried = subprocess.run([*words, "true"], check=False, capture_output=True)
    return words if tried.returncode == 0 else None


INSIDE = inside()


@contextmanager
def process(*before: str, host: str = "127.0.0.1") -> Generator[int]:
    """A process of the job that listens; its port."""
    words = [*before, sys.executable, "-c", ECHO, host, "0"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as made:
        assert made.stdout is not None
        try:
            yield int(made.stdout.readline())
        finally:
            made.kill()


@asynccontextmanager
async def published(gateway: MadeUpGateway, port: int) -> AsyncGenerator[tuple[Tunnel, TunnelHelper]]:
    """The port, as a service of the job of which this process is the starter."""
    helper = TunnelHelper(None, "")
    try:
        announcement = Announcement(services=(Service("raw", port, "tcp"),))
        assert helper.order(Orders(url=gateway.url, ticket="t", announcement=announcement))
        yield await gateway.tunnel(), helper
    finally:
        helper.end()


async def echoed(tunnel: Tunnel) -> bytes:
    reader, writer = await tunnel.open_connection("raw")
    writer.write(b"hello")
    said = await asyncio.wait_for(reader.read(), PATIENCE_S)
    writer.close()
    return said


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0", "::1", "::"])
async def test_a_process_of_the_job_is_reached(host: str) -> None:
    """On whichever address it listens."""
    async with made_up_gateway() as gateway:
        with process(host=host) as port:
            async with published(gateway, port) as (tunnel, _):
                assert await echoed(tunnel) == b"hello"


async def test_nobody_else_is_reached() -> None:
    """Neither a process of the machine, nor one of ours."""
    async with made_up_gateway() as gateway:
        with socket.create_server(("127.0.0.1", 0)) as stranger, process():
            async with published(gateway, stranger.getsockname()[1]) as (tunnel, _):
                with pytest.raises(StreamRefusedError) as refused:
                    await echoed(tunnel)
        assert refused.value.code == "not_of_this_job"
        async with published(gateway, 1) as (tunnel, _):
            with (
                process(),
                pytest.raises(StreamRefusedError, match="nothing of the job listens on port 1 yet"),
            ):
                await echoed(tunnel)


async def test_a_network_of_its_own_is_entered() -> None:
    """As of a container: nobody outside of it reaches the port."""
    if INSIDE is None:
        pytest.skip("this machine gives no network namespaces")
    async with made_up_gateway() as gateway:
        with process(*INSIDE) as port:
            async with published(gateway, port) as (tunnel, _):
                for _ in range(3):
                    assert await echoed(tunnel) == b"hello"
            with pytest.raises(OSError, match="refused"):
                socket.create_connection(("127.0.0.1", port)).close()


STARTER = """\
import sys, time
import msgspec
from kettle.published.job_side import Orders
from kettle_services.starter.published.helper import TunnelHelper
helper = TunnelHelper(None, "")
helper.order(msgspec.json.decode(sys.argv[1], type=Orders))
print(helper.pid, flush=True)
time.sleep(600)
"""


async def test_it_ends_with_its_starter() -> None:
    """Also if that one is killed."""
    async with made_up_gateway() as gateway:
        orders = msgspec.json.encode(Orders(url=gateway.url, ticket="t")).decode()
        starter = await asyncio.create_subprocess_exec(
            sys.executable, "-c", STARTER, orders, stdout=subprocess.PIPE
        )
        assert starter.stdout is not None
        pid = int(await starter.stdout.readline())
        tunnel = await gateway.tunnel()
        starter.kill()
        await starter.wait()
        await asyncio.wait_for(tunnel.ended(), PATIENCE_S)
        async with asyncio.timeout(PATIENCE_S):
            while start_time(pid) is not None:
                await asyncio.sleep(0.05)
