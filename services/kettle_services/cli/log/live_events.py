"""Going on as it happens: the bus says that there is something new, the log says what."""

import asyncio
import os
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import msgspec

from kettle.bus.credentials import service_identity
from kettle.bus.nats import NatsBus
from kettle.client import PoolFile
from kettle.pool.home import Home
from kettle_services.cli.log.databases import ShardLocation
from kettle_services.cli.log.event_pages import EventFilter
from kettle_wire.identity import daemon
from kettle_wire.subjects import Subjects

ROLE: Final = "audit"
"""The credential of the audit: it may read every shard's frames, and nothing else."""
LOOK_S: Final = 1.0
"""If the bus was silent for so long, the log is asked whether there is something."""


@asynccontextmanager
async def audit_bus(home: Path, *, patience: float) -> AsyncGenerator[NatsBus]:
    """A connection to the pool's bus that may read frames."""
    pool = PoolFile.load(home)
    audit, shadow = (Home(home).credential(name) for name in (ROLE, "shadow"))
    if audit.exists() or not shadow.exists():
        # A site's own servers may know the audit by a key, by that of the person, or nobody by anything.
        usual, identity = str(audit) if audit.exists() else pool.credentials, daemon(ROLE)
    else:  # an access point that has joined: its shadow may read its frames
        usual, identity = str(shadow), service_identity("shadow", str(shadow))
    async with NatsBus.connect(
        pool.nats_url,
        subjects=Subjects(pool.pool),
        identity=identity,
        credentials=os.environ.get("KETTLE_NATS_CREDENTIALS") or usual,
        ca=pool.ca,
        name="kettle log",
        patience=patience,
    ) as bus:
        yield bus


class Followed:
    """Shards from where somebody has read them."""

    def __init__(self, chosen: Sequence[tuple[ShardLocation, EventFilter]]) -> None:
        self._chosen = list(chosen)
        self._moved = asyncio.Event()

    @classmethod
    @asynccontextmanager
    async def open(
        cls, home: Path, chosen: Sequence[tuple[ShardLocation, EventFilter]], *, patience: float
    ) -> AsyncGenerator["Followed"]:
        """Listen as long as the context lasts."""
        followed = cls(chosen)
        async with audit_bus(home, patience=patience) as bus, asyncio.TaskGroup() as tasks:
            loops = [tasks.create_task(followed._hear(bus, place, narrow.until)) for place, narrow in chosen]
            try:
                yield followed
            finally:
                for loop in loops:
                    loop.cancel()

    async def news(self) -> AsyncGenerator[tuple[ShardLocation, EventFilter], None]:
        """What has to be read next, without end."""
        while True:
            self._moved.clear()
            for index, (place, narrow) in enumerate(self._chosen):
                tenure = await place.log.tenure(place.shard)
                if tenure is not None and tenure.frame > narrow.until:
                    further = msgspec.structs.replace(narrow, after=narrow.until, until=tenure.frame)
                    self._chosen[index] = (place, further)
                    yield place, further
            try:
                async with asyncio.timeout(LOOK_S):
                    await self._moved.wait()
            except TimeoutError:
                continue  # the bus may be away or have lost a frame

    async def _hear(self, bus: NatsBus, place: ShardLocation, after: int) -> None:
        subjects = bus.subjects
        batches = bus.consume(
            subjects.event_stream(place.shard),
            "",
            subject=subjects.events(place.shard),
            after=after,
            ephemeral=True,
        )
        async for _ in batches:
            self._moved.set()
