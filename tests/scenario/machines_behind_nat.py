"""Machines of a pool that nothing reaches: they have joined by a token, and run in a network of their own."""

import asyncio
import sys
from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from kettle import pool as pools
from kettle.testing.commands.running import KETTLE, execute
from kettle.testing.patience import PATIENCE_S
from kettle.testing.throwaway_pool import ThrowawayPool

from .closed_networks import closed_network

OF_A_MACHINE: Final = """
[startd]
num_cpus = {cpus}
memory = {memory}
update_interval = 1.0
container_runtimes = []
job_account = "own"
"""


def port_of(pool: ThrowawayPool, service: str) -> int:
    """Where a service of the pool listens."""
    return int((pool.home / service / "port").read_text())


async def joined(
    pool: ThrowawayPool, home: Path, name: str, *, cpus: int = 2, memory: int = 4096, more: str = ""
) -> None:
    """
    Have a machine join that keeps its files in `home`, with more lines of its `[startd]`; it does not run yet.
    """
    _, token, _ = await pool.kettle("worker", "token", "create", "--lifetime", "10m")
    (secret := home.parent / f"{home.name}.token").write_text(token.split()[0])
    words = ("--token-file", str(secret), "--home", str(home), "--name", name)
    status, out, err = await pool.kettle("worker", "join", f"http://127.0.0.1:{port_of(pool, 'iam')}", *words)
    assert 0 == status, out + err
    settings = home / "kettle.toml"
    table = OF_A_MACHINE.format(cpus=cpus, memory=memory) + more
    settings.write_text(settings.read_text().replace("\n[startd]\n", table, 1))


@asynccontextmanager
async def behind_nat(
    pool: ThrowawayPool, home: Path, name: str, ports: Iterable[int] = ()
) -> AsyncGenerator[list[str]]:
    """
    Run a machine that has joined: out of its network lead the ports of bus, gateway and iam, and these others.  Yields the words before a
    command that runs there.
    """
    bus = urlsplit(pool.state.nats_url).port
    assert bus is not None
    leading = [bus, port_of(pool, "gateway"), port_of(pool, "iam"), *ports]
    async with closed_network(leading) as inside:
        environ = {**pool.environ, "KETTLE_HOME": str(home)}
        up = await execute([*inside, sys.executable, *KETTLE, "up"], home.parent, environ)
        assert 0 == up.status, up
        try:
            async with asyncio.timeout(PATIENCE_S):
                while name not in {ad.get("Machine") for ad in await pool.client.ads("Machine")}:
                    await asyncio.sleep(0.05)
            yield inside
        finally:
            await asyncio.to_thread(pools.down, home)
