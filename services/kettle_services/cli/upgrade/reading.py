"""What `kettle upgrade` reads of a pool."""

from pathlib import Path
from typing import Final

from kettle import VERSION
from kettle.client import Client, ClientError
from kettle.projections import PROJECTIONS, lags
from kettle.storage.database import Database
from kettle.storage.migration import migrate
from kettle.storage.schema_state import SchemaState, schema_state
from kettle_services.cli.log.databases import places
from kettle_services.cli.upgrade.readiness import ReadinessFacts
from kettle_wire.events import CODEC

_FRAMES: Final = 10_000
"""So many frames of each shard are looked at: what a newer version has recorded is at the end."""
_TYPES: Final = """
SELECT DISTINCT e.type FROM log.event e JOIN log.shard s ON s.id = e.shard
WHERE s.name = $1 AND e.frame > $2
"""


async def facts_of(home: Path, *, patience: float) -> ReadinessFacts:
    """
    Everything about the pool in a directory.

    Raises:
        CommandError: its database does not answer.
    """
    known = {*CODEC.written, *CODEC.superseded}
    unknown: list[tuple[str, str]] = []
    async with places(home, patience=patience) as found:
        first = found.logs[0]
        schema = await first.database.run(schema_state)
        for place in found.every:
            after = max(0, place.tenure.frame - _FRAMES)
            assert place.database is not None, "it is a pool's own log"
            recorded = await _types(place.database, place.shard, after)
            unknown += [(place.shard, kind) for kind in recorded if kind not in known]
        told = await lags(first.database, found.logs)
    expected = {name: make().version for name, make in PROJECTIONS.items()}
    return ReadinessFacts(
        version=VERSION,
        schema=schema,
        unknown_types=unknown,
        hosts=await _hosts(home, patience),
        rebuilds=sorted(
            {
                lag.projection
                for lag in told
                if lag.version is not None and lag.version != expected.get(lag.projection, lag.version)
            }
        ),
        stopped=[f"{lag.projection} in {lag.shard}: {lag.error}" for lag in told if lag.error],
    )


async def finish(home: Path, *, patience: float) -> tuple[list[str], SchemaState]:
    """
    Take the steps that older releases cannot work with; their names, and how the database stands now.

    Raises:
        CommandError: the database does not answer.
        LogError: the role of the address may not change the schema.
    """
    async with places(home, patience=patience) as found:
        database = found.logs[0].database
        return await database.run(migrate), await database.run(schema_state)


async def _types(database: Database, shard: str, after: int) -> list[str]:
    rows = await database.run(lambda connection: connection.fetch(_TYPES, shard, after))
    return sorted(str(row["type"]) for row in rows)


async def _hosts(home: Path, patience: float) -> list[tuple[str, str]]:
    """
    By the ads of all daemons: where an engine for containers runs them, no master says which version it is.
    """
    try:
        async with Client.connect(home=home, patience=patience) as client:
            ads = await client.ads(
                constraint="KettleVersion =!= undefined", projection=("Name", "Machine", "KettleVersion")
            )
    except ClientError:
        return []  # an upgrade may be looked at while the pool is down
    return sorted({(str(ad.get("Machine", ad.get("Name"))), str(ad["KettleVersion"])) for ad in ads})
