"""
Machines by the hundred in one process: real startds with connections of their own, and starters that run nothing.
"""

from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from kettle.bus.nats import NatsBus
from kettle.startd.settings import StartdSettings
from kettle.startd.wiring import running
from kettle.testing.places import Place
from kettle.testing.simulated_starters import SimulatedStarters
from kettle.wire.identity import daemon
from kettle.wire.subjects import Subjects


@asynccontextmanager
async def simulated_machines(
    servers: Place, directory: Path, number: int, *, cores: int, pace: float, settings: Mapping[str, Any]
) -> AsyncGenerator[None]:
    """
    So many startds, all advertised, below `directory`; `pace` as for `SimulatedStarters`, `settings` beside the usual.
    """
    async with AsyncExitStack() as stack:
        for each in range(number):
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
