"""Servers of NATS that are given what `kettle site containers` makes are one bus."""

import asyncio
import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

from kettle.embedded.binaries import nats_server, setpriv
from kettle.pool.container_files import ContainerPool, make
from kettle.testing.patience import PATIENCE_S
from kettle.testing.servers.held_port import held_port

SERVERS = 3


def configured(bus: Path, number: int, routes: list[int]) -> Path:
    """
    The file of all servers, for one that is not in a container: ports, paths and addresses of this machine.
    """
    text = (bus / "nats.conf").read_text()
    for old, new in (
        ("$HOSTNAME", f"nats-{number}"),
        ("127.0.0.1:8222", f"127.0.0.1:{held_port()}"),
        ("0.0.0.0:4222", f"127.0.0.1:{held_port()}"),
        ("0.0.0.0:6222", f"127.0.0.1:{routes[number]}"),
        ("/tmp/nats.pid", str(bus / f"{number}.pid")),
        ('"/data"', f'"{bus / str(number)}"'),
    ):
        assert old in text
        text = text.replace(old, new)
    text, found = re.subn(r"nats-(\d)\.nats:6222", lambda each: f"127.0.0.1:{routes[int(each[1])]}", text)
    assert SERVERS == found
    path = bus / f"{number}.conf"
    path.write_text(text)
    return path


@asynccontextmanager
async def running(config: Path) -> AsyncGenerator[asyncio.StreamReader]:
    """A server, and what it says."""
    server = await asyncio.create_subprocess_exec(
        *(setpriv(), "--pdeathsig=TERM", "--", str(nats_server()), "--config", str(config)),
        cwd=config.parent,
        stderr=asyncio.subprocess.PIPE,
    )
    assert server.stderr is not None
    try:
        yield server.stderr
    finally:
        if server.returncode is None:
            server.kill()
        await server.wait()


async def test_several_servers_find_each_other(tmp_path: Path) -> None:
    """Each shows the others its certificate, and they agree on a leader of what JetStream keeps."""
    make(ContainerPool(pool="demo", bus_servers=SERVERS), tmp_path, now=datetime.now(UTC))
    routes = [held_port() for _ in range(SERVERS)]
    first, second, third = (configured(tmp_path / "bus", number, routes) for number in range(SERVERS))
    async with running(first) as said, running(second), running(third), asyncio.timeout(PATIENCE_S):
        async for line in said:
            assert b"handshake error" not in line, line.decode()
            if b"metadata leader" in line:
                break
        else:
            raise AssertionError("the server has ended")
