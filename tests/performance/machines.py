"""
Machines by the hundred in one process: real startds with connections of their own, and starters that run nothing.

A running job takes two open files of the process, so that thousands of slots take several processes: `lots`.
"""

import asyncio
import logging
import os
import resource
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, Final

import msgspec

from kettle.bus.nats import NatsBus
from kettle.testing.servers.locations import Addresses, NotHereError, Place
from kettle.testing.simulated_starters import SimulatedStarters
from kettle_services.startd.settings import StartdSettings
from kettle_services.startd.wiring import running
from kettle_wire.identity import daemon
from kettle_wire.subjects import Subjects

_FILES_OF_A_JOB: Final = 2
_FILES_OF_A_MACHINE: Final = 16
_OTHER_FILES: Final = 1024


@asynccontextmanager
async def simulated_machines(
    servers: Place,
    directory: Path,
    number: int,
    *,
    cores: int,
    pace: float,
    settings: Mapping[str, Any],
    first: int = 0,
) -> AsyncGenerator[None]:
    """
    So many startds, all advertised, below `directory`; `pace` as for `SimulatedStarters`, `settings` beside the usual.

    They are numbered from `first` on.
    """
    async with AsyncExitStack() as stack:
        for each in range(first, first + number):
            name = f"m{each:03}"
            home = directory / name
            home.mkdir(mode=0o700)
            chosen = StartdSettings(
                pool=servers.pool,
                **msgspec.structs.asdict(servers.addresses),
                home=str(home),
                name=name,
                num_cpus=cores,
                memory=cores * 1024,
                disk=cores << 20,
                cgroups=False,
                container_runtimes=(),
                transfer_methods=(),
                discover_gpus=False,
                local_jobs=False,
                polling_interval=60.0,
                **settings,
            )
            bus = await stack.enter_async_context(
                NatsBus.connect(
                    chosen.nats_url,
                    subjects=Subjects(servers.pool),
                    identity=daemon("startd"),
                    credentials=chosen.nats_credentials,
                    name=name,
                )
            )
            startd = await stack.enter_async_context(
                running(bus, chosen, starters=SimulatedStarters(pace=pace))
            )
            await startd.advertised()
        yield


class Lot(msgspec.Struct, frozen=True, kw_only=True):
    """The machines of one process."""

    pool: str
    addresses: Addresses
    directory: str
    first: int
    number: int
    cores: int


@asynccontextmanager
async def lots(servers: Place, directory: Path, number: int, *, cores: int) -> AsyncGenerator[list[int]]:
    """
    So many startds, all advertised, in as many processes as it takes for the files that one may have open: their ids.

    Raises:
        NotHereError: one process may not even have the files of one machine.
        RuntimeError: a process ended before its machines were there; it has said why.
    """
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    each = (hard - _OTHER_FILES) // (_FILES_OF_A_MACHINE + _FILES_OF_A_JOB * cores)
    if each < 1:
        raise NotHereError(
            f"{hard} open files are too few for a machine of {cores} cores: raise `ulimit -Hn`."
        )
    async with AsyncExitStack() as stack:
        made: list[asyncio.subprocess.Process] = []
        for first in range(0, number, each):
            lot = Lot(
                pool=servers.pool,
                addresses=servers.addresses,
                directory=str(directory),
                first=first,
                number=min(each, number - first),
                cores=cores,
            )
            made.append(await stack.enter_async_context(_process(lot)))
        yield [process.pid for process in made]


@asynccontextmanager
async def _process(lot: Lot) -> AsyncGenerator[asyncio.subprocess.Process]:
    """One lot, all advertised; it ends with the context, or with this process."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tests.performance.machines",
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write(msgspec.json.encode(lot) + b"\n")
        if not await process.stdout.readline():
            raise RuntimeError(f"simulated machines ended with {await process.wait()}")
        yield process
    finally:
        process.kill()  # to leave in good order takes each startd its time, and nothing of theirs is needed any more
        await process.wait()


async def _serve(lot: Lot) -> None:
    place = Place(lot.pool, lot.addresses)
    async with simulated_machines(
        place, Path(lot.directory), lot.number, cores=lot.cores, pace=1.0, settings={}, first=lot.first
    ):
        sys.stdout.write("all of them advertised\n")
        sys.stdout.flush()
        await asyncio.get_running_loop().create_future()


async def _end_with(starter: asyncio.StreamReader) -> None:
    await starter.read()
    os._exit(0)  # the parent has ended, and with it the pool that the startds would wait for


async def _main() -> None:
    reader = asyncio.StreamReader()
    protocol = asyncio.StreamReaderProtocol(reader)
    await asyncio.get_running_loop().connect_read_pipe(lambda: protocol, sys.stdin)
    lot = msgspec.json.decode(await reader.readline(), type=Lot)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(_end_with(reader))
        tasks.create_task(_serve(lot))


if __name__ == "__main__":
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr)
    _, _hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (_hard, _hard))
    asyncio.run(_main())
