"""
What hundreds of browsers cost a gateway that watch a list of jobs, and how soon they see a change: JSON on standard output.

    python -m tests.performance.gateway_live --browsers=500 --queued=100000

The browsers are a process of their own: each holds the connection of a live page and reads the HTML that comes, as htmx does, without
drawing it.  A change is one row of one person, whose page 1 in 50 of them looks at, with the place of the tables and the event of it; what
is measured is the process that has the real pages, over a real database, and reads events from the in-memory bus.
"""

import argparse
import asyncio
import json
import os
import re
import sys
import tempfile
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import msgspec
from tests.performance.gateway import OWNERS, SHARD, fill, served
from tests.performance.gateway_streams import SPEC, SUBJECTS, Readers

from kettle.bus.memory import MemoryBus
from kettle.bus.memory_server import MemoryServer
from kettle.bus.ports import Post
from kettle.projections import Jobs
from kettle.projections import prepare as make_tables
from kettle.storage import Database, PgLog
from kettle.storage.migration import migrate
from kettle.testing.measurements import processor_seconds
from kettle.testing.servers.embedded import servers
from kettle_services.gateway.rest.event_hub import EventHub
from kettle_services.gateway.rest.job_rows import SCHEDD
from kettle_services.gateway.rest.job_tables import session_settings
from kettle_wire.cloud_events import CloudEvent
from kettle_wire.identity import daemon

CHANGES: Final = 20
APART_S: Final = 0.5
"""Between two changes: a page is not sent again sooner than a person can read."""
_MOMENT: Final = re.compile(rb"changed at ([0-9]+\.[0-9]+)")


async def _watch(port: int, number: int, late: list[float]) -> None:
    """Watch the held jobs of one person, until the last change has been seen."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 20)
    path = f"/live/jobs?state=held&owner=user{number % OWNERS}"
    writer.write(f"GET {path} HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer bench\r\n\r\n".encode())
    status = await reader.readline()
    assert b" 200 " in status, status
    while not (await reader.readline()).startswith(b"data: "):
        pass
    _say("open")
    seen = b""
    for _ in range(CHANGES if number % OWNERS == 1 else 0):
        while (found := _MOMENT.search(await reader.readline())) is None or found[1] == seen:
            pass
        seen = found[1]
        late.append(time.time() - float(seen))
        _say("seen")
    await reader.read()  # it looks on until it is ended
    writer.close()


async def watch_all(port: int, browsers: int) -> None:
    """All of them, and then how late the changes were."""
    late: list[float] = []
    watching = [asyncio.create_task(_watch(port, number, late)) for number in range(browsers)]
    await asyncio.to_thread(sys.stdin.readline)
    for each in watching:
        each.cancel()
    late.sort()
    _say(json.dumps({"p50": late[len(late) // 2] * 1000, "p99": late[len(late) * 99 // 100] * 1000}))


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


async def _change(database: Database, bus: MemoryBus, number: int) -> None:
    """The newest held job of one person is held for another reason, in the frame of that number."""
    async with database.connection() as connection, connection.transaction():
        await connection.execute(
            "UPDATE jobs.live SET hold_reason = $1 WHERE ctid = (SELECT ctid FROM jobs.live WHERE owner = 'user1' AND status = 5 "
            "ORDER BY submitted_at DESC, shard DESC, cluster DESC, proc DESC LIMIT 1)",
            f"changed at {time.time():.6f}",
        )
        await connection.execute("UPDATE log.projection SET frame = $1 WHERE name = 'jobs'", number)
    post = Post(SUBJECTS.tail("user1", 1, 0, "job.held"), _event(number))
    await bus.append_together([post], expect_last=number - 1, note="")


def _event(number: int) -> bytes:
    """What is published of it."""
    return msgspec.json.encode(
        CloudEvent(
            specversion="1.0",
            id=f"{SHARD}:{number}",
            source=f"/kettle/bench/{SHARD}",
            type="org.kettle.job.held.v1",
            subject="1.0",
            time=datetime.now(UTC).isoformat(),
            dataschema="urn:kettle:event:job.held:1",
            stream="job/1.0",
            version=1,
            epoch=1,
            frame=str(number),
            owner="user1",
            schedd=SHARD.removeprefix(SCHEDD),
        )
    )


@asynccontextmanager
async def _events() -> AsyncGenerator[tuple[MemoryBus, EventHub]]:
    """A bus with a stream of events, and what reads it."""
    bus = MemoryBus(MemoryServer(), subjects=SUBJECTS, identity=daemon("gateway"))
    await bus.ensure_stream(SPEC)
    hub = EventHub(bus, SPEC.name)
    reading = asyncio.create_task(hub.run())
    try:
        yield bus, hub
    finally:
        reading.cancel()
        await asyncio.wait([reading])
        bus.close()


async def measure(directory: Path, browsers: int, queued: int, idle_s: float) -> dict[str, Any]:
    """Idle, and one change after another."""
    own, mine = os.getpid(), len(range(1, browsers, OWNERS))
    async with servers(directory, durable=True) as running, PgLog.connect(running.postgres.dsn) as log:
        await log.database.run(migrate)
        await make_tables(Jobs(), log.database, [log])
        await fill(log.database, queued, 0)
        await log.database.run(
            lambda c: c.execute(
                "INSERT INTO log.projection (name, version, shard) VALUES ('jobs', $1, $2)",
                Jobs().version,
                SHARD,
            )
        )
        reading = Database.connect(running.postgres.dsn, session=session_settings(60.0))
        async with (
            reading as database,
            _events() as (bus, hub),
            served(database, watchers=browsers, hub=hub) as port,
        ):
            words = ["-m", "tests.performance.gateway_live", "--port", str(port), "--browsers", str(browsers)]
            process = await asyncio.create_subprocess_exec(
                sys.executable, *words, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
            )
            try:
                readers = Readers(process)
                await readers.said("open", browsers)
                began = processor_seconds(own)
                await asyncio.sleep(idle_s)
                idle = (processor_seconds(own) - began) / idle_s * 100
                began, since = processor_seconds(own), time.perf_counter()
                for number in range(1, CHANGES + 1):
                    await _change(log.database, bus, number)
                    await readers.said("seen", mine)
                    await asyncio.sleep(APART_S)
                used = processor_seconds(own) - began
                took = time.perf_counter() - since
                assert process.stdin is not None
                process.stdin.write(b"\n")
                late = await readers.late_ms()
            finally:
                if process.returncode is None:
                    process.kill()
                    await process.wait()
    return {
        "idle_percent_of_a_core": round(idle, 2),
        "change_seen_ms": {name: round(value, 1) for name, value in late.items()},
        "percent_of_a_core_while_it_changes": round(used / took * 100, 1),
        "processor_ms_a_change": round(used / CHANGES * 1000, 1),
    }


def main() -> int:
    """Measure and print, or be the browsers."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--browsers", type=int, default=500)
    parser.add_argument("--queued", type=int, default=100_000)
    parser.add_argument("--idle", type=float, default=30.0)
    parser.add_argument("--port", type=int, default=0, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.port:
        asyncio.run(watch_all(arguments.port, arguments.browsers))
        return 0
    with tempfile.TemporaryDirectory(prefix="kettle-bench-") as directory:
        report = asyncio.run(measure(Path(directory), arguments.browsers, arguments.queued, arguments.idle))
    _say(json.dumps({"browsers": arguments.browsers, "queued": arguments.queued, **report}, indent=2))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
