"""A machine that joins the pool of a demonstration by a token, in a network that nothing reaches."""

import asyncio
import os
import sys
import time
from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from kettle import pool
from kettle.client import Client
from kettle_services.cli.errors import CommandError
from kettle_services.cli.facility.closed_network import ClosedNetwork

MACHINE: Final = "behind.example"
IS_WORKER: Final = 'regexp("kettle[.]dask[.]worker", Arguments)'
"""Of a job: it is a worker of a Dask cluster."""
_KETTLE: Final = (sys.executable, "-c", "from kettle_services.cli.entry import command; command()")
_WITHIN_S: Final = 120.0
_SETTINGS: Final = {
    "KETTLE_STARTD_NUM_CPUS": "1",
    "KETTLE_STARTD_JOB_ACCOUNT": "own",
    "KETTLE_STARTD_UPDATE_INTERVAL": "1",
    # One worker has to come here, and nothing else can.
    "KETTLE_STARTD_START": IS_WORKER.replace("Arguments", "TARGET.Arguments"),
}


@asynccontextmanager
async def joined_machine(
    home: Path,
    machine: Path,
    network: ClosedNetwork,
    lifeline_fd: int,
    *,
    ports: Iterable[int] = (),
    settings: Mapping[str, str] | None = None,
) -> AsyncGenerator[None]:
    """
    Have a machine with one core run in the network as long as the context lasts, for a worker of a Dask cluster.

    `home` is the pool's directory, `machine` its own; out of the network lead the ports of bus, gateway and iam, and these `ports`;
    `settings` are variables for its services.

    Raises CommandError: it has not joined.
    """
    own = {name: int((home / name / "port").read_text()) for name in ("iam", "gateway")}
    state = pool.state(home)
    bus = urlsplit(state.nats_url).port if state is not None else None
    if bus is None:
        raise CommandError("the pool of the demonstration has ended; see kettle demo facility --keep")
    told = await _kettle(home, "worker", "token", "create", "--lifetime", "10m")
    secret = machine.with_suffix(".token")
    secret.touch(0o600)
    secret.write_text(told.split()[0])
    words = ("--token-file", str(secret), "--home", str(machine), "--name", MACHINE)
    await _kettle(home, "worker", "join", f"http://127.0.0.1:{own['iam']}", *words)
    async with network.leading_out([bus, *own.values(), *ports]):
        environ = {**os.environ, **_SETTINGS, **(settings or {})}
        await network.run(partial(pool.up, machine, environ=environ, lifeline_fd=lifeline_fd))
        try:
            await _seen(home)
            yield
        finally:
            await asyncio.to_thread(pool.down, machine)


async def _kettle(home: Path, *words: str) -> str:
    """What a command of the pool's administrator says; raises CommandError."""
    process = await asyncio.create_subprocess_exec(
        *_KETTLE,
        *words,
        env={**os.environ, "KETTLE_HOME": str(home)},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await process.communicate()
    if process.returncode:
        raise CommandError(f"kettle {' '.join(words[:2])}: {err.decode(errors='replace').strip()}")
    return out.decode()


async def _seen(home: Path) -> None:
    """Wait until the pool knows the machine; raises CommandError."""
    until = time.monotonic() + _WITHIN_S
    async with Client.connect(home=home) as client:
        while MACHINE not in {ad.get("Machine") for ad in await client.ads("Machine")}:
            if time.monotonic() > until:
                raise CommandError(f"{MACHINE} has not come; see kettle demo facility --keep")
            await asyncio.sleep(0.05)
