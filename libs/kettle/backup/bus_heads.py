"""
Whether the bus of a pool knows more than a backup of its log: then what it knows was recorded, and would be
lost.
"""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import msgspec

from kettle.auth.trust.pool import PoolTrust
from kettle.auth.trust.server import PROBE, Statements
from kettle.backup.errors import BackupError, StreamAhead
from kettle.backup.manifest import ShardHead
from kettle.bus.credentials import Credential
from kettle.bus.nats import NatsBus
from kettle.bus.ports import BusError
from kettle.embedded import EmbeddedError, EmbeddedNats
from kettle.pool.home import Home
from kettle_wire.identity import daemon
from kettle_wire.subjects import Subjects

AUDIT: Final = "audit"
"""The credential with which the streams of shards are looked at."""
_PATIENCE_S: Final = 15.0


class BusPlace(msgspec.Struct, frozen=True, kw_only=True):
    """Where the bus of a pool is, and what shows to it who asks."""

    pool: str
    url: str = ""
    """Empty: it is the pool's own server, in the pool's directory."""
    credentials: str = ""
    ca: str = ""


class _KeptTrust:
    """Those whom the pool's own server trusted, by the keys in the pool's directory; see `Trust`."""

    def __init__(self, home: Home, pool: str) -> None:
        self._home = home
        self._trust = PoolTrust(home.credentials / "trust", Subjects(pool))

    def statements(self) -> Statements:
        """See `Trust`."""
        return self._trust.statements()

    def credentials(self, name: str) -> Path:
        """See `Trust`."""
        return self._home.credential(name)

    def probe(self) -> str:
        """See `Trust`."""
        return str(self._home.credential(PROBE))

    def teller(self) -> Credential:
        """See `Trust`."""
        return self._trust.teller()


@asynccontextmanager
async def bus_of(home: Path, place: BusPlace) -> AsyncGenerator[NatsBus | None]:
    """
    A connection to the bus of a pool that does not run; None if the pool's own server has never stored anything here.

    Raises:
        BackupError: it cannot be reached or started.
    """
    own = Home(home)
    shown = own.credential(AUDIT)
    if place.url:
        async with _connected(
            place, place.url, place.credentials or (str(shown) if shown.exists() else "")
        ) as bus:
            yield bus
        return
    server = EmbeddedNats(home / "nats", trust=_KeptTrust(own, place.pool), name=f"kettle-{place.pool}")
    if not server.store.is_dir() or not shown.exists():
        yield None
        return
    try:
        async with server, _connected(place, server.url, str(shown)) as bus:
            yield bus
    except EmbeddedError as error:
        raise BackupError(f"what the bus has cannot be looked at: {error}") from error


@asynccontextmanager
async def _connected(place: BusPlace, url: str, credentials: str) -> AsyncGenerator[NatsBus]:
    try:
        async with NatsBus.connect(
            url,
            subjects=Subjects(place.pool),
            identity=daemon(AUDIT),
            credentials=credentials,
            ca=place.ca,
            name="kettle backup",
            patience=_PATIENCE_S,
        ) as bus:
            yield bus
    except BusError as error:
        raise BackupError(f"what the bus has cannot be looked at: {error}") from error


async def ahead(bus: NatsBus, pool: str, shards: Sequence[ShardHead]) -> list[StreamAhead]:
    """The streams that have more frames than a log with these heads."""
    found: list[StreamAhead] = []
    for each in shards:
        stream = Subjects(pool).event_stream(each.shard)
        last = await bus.last_sequence(stream) or 0
        if last > each.frame:
            found.append(StreamAhead(stream, each.shard, last, each.frame))
    return found
