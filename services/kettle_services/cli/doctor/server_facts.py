"""What `kettle doctor` asks NATS and PostgreSQL."""

import asyncio
import time
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import asyncpg
from msgspec.structs import replace

from kettle.bus.encryption import is_wanted
from kettle.bus.open_servers import greetings
from kettle.bus.ports import BusError
from kettle.client import PoolFile
from kettle.embedded.nats_listener import LOOPBACK
from kettle.storage.schema_state import schema_state
from kettle_services.cli.doctor.server_checks import BusFacts, DatabaseFacts
from kettle_services.cli.log.live_events import audit_bus
from kettle_wire.subjects import Subjects

_WITHIN_S: Final = 10.0
_SETTINGS: Final = (
    "fsync",
    "full_page_writes",
    "synchronous_commit",
    "wal_level",
    "archive_mode",
    "max_wal_size",
)


async def bus_facts(home: Path, pool: PoolFile) -> list[BusFacts]:
    """What each server of the bus says of itself."""
    encrypted = is_wanted(pool.nats_url, pool.ca)
    error, took = "", 0.0
    try:
        async with audit_bus(home, patience=_WITHIN_S) as bus:
            began = time.monotonic()
            await bus.last_sequence(Subjects(pool.pool).event_stream("collector"))
            took = time.monotonic() - began
    except (BusError, OSError, ValueError) as failure:
        error = str(failure) or type(failure).__name__
    found: list[BusFacts] = []
    for server, said in (await asyncio.to_thread(greetings, pool.nats_url, pool.ca)).items():
        facts = BusFacts(
            url=server,
            error=error,
            encrypted=encrypted,
            local=server.rpartition(":")[0] in {LOOPBACK, "localhost", "::1"},
            round_trip_s=took,
        )
        if said is None:
            facts = replace(facts, error=error or "it does not greet as NATS does")
        else:
            facts = replace(
                facts,
                version=said.version,
                jetstream=said.jetstream,
                max_payload=said.max_payload,
                asks=not said.open,
            )
        found.append(facts)
    return found


async def database_facts(url: str) -> DatabaseFacts:
    """What the database says of itself."""
    where = f"the database {urlsplit(url).path.lstrip('/')}"
    try:
        connection = await asyncpg.connect(
            url, timeout=_WITHIN_S, server_settings={"application_name": "kettle doctor"}
        )
    except (OSError, asyncpg.PostgresError, ValueError) as error:
        return DatabaseFacts(where=where, error=str(error) or type(error).__name__)
    try:
        before = time.time()
        clock = float(await connection.fetchval("SELECT extract(epoch FROM clock_timestamp())"))
        between = (before + time.time()) / 2
        schema = await schema_state(connection)
        failed = await connection.fetchrow(
            "SELECT last_failed_wal FROM pg_stat_archiver "
            "WHERE last_failed_time > coalesce(last_archived_time, '-infinity')"
        )
        return DatabaseFacts(
            where=where,
            version=int(await connection.fetchval("SHOW server_version_num")),
            settings={
                name: str(await connection.fetchval("SELECT current_setting($1)", name)) for name in _SETTINGS
            },
            clock_s=clock - between,
            connections=int(await connection.fetchval("SHOW max_connections")),
            recovering=bool(await connection.fetchval("SELECT pg_is_in_recovery()")),
            pending=[f"{step.component}/{step.name}" for step in schema.pending],
            unknown=schema.unknown,
            standbys=[
                f"{row['application_name']}, {row['sync_state']}, {row['lag']} bytes behind"
                for row in await connection.fetch(
                    "SELECT application_name, sync_state, pg_wal_lsn_diff(sent_lsn, replay_lsn) AS lag FROM pg_stat_replication"
                )
            ],
            archiver_failed=str(failed["last_failed_wal"]) if failed else "",
        )
    except asyncpg.PostgresError as error:
        return DatabaseFacts(where=where, error=str(error))
    finally:
        await connection.close(timeout=_WITHIN_S)
