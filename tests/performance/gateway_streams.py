"""
What hundreds of readers of events cost a gateway, and how soon they have an event: JSON on standard output.

    python -m tests.performance.gateway_streams --readers=500

The readers are a process of their own and follow one person's events over real HTTP; what is measured is the process that has the
real hub and feed, which read a stream of the in-memory bus.  `bare` is the same work with one reader.
"""

import argparse
import asyncio
import json
import os
import sys
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any, Final, cast

import msgspec
from aiohttp import web

from kettle.auth.mapping.policy import Mapped
from kettle.auth.mapping.principals import local
from kettle.bus.memory import MemoryBus
from kettle.bus.memory_server import MemoryServer
from kettle.bus.ports import Post, StreamSpec
from kettle.runtime.http_server import serving
from kettle.testing.measurements import processor_seconds, summary
from kettle_services.gateway.rest.admission import Admission
from kettle_services.gateway.rest.application import Asked
from kettle_services.gateway.rest.connections import PersonConnections
from kettle_services.gateway.rest.event_feed import EventFeed
from kettle_services.gateway.rest.event_hub import EventHub
from kettle_services.gateway.rest.past import PastQuestions
from kettle_services.gateway.rest.persons import Person
from kettle_services.gateway.rest.streams import Streams
from kettle_wire.cloud_events import CloudEvent
from kettle_wire.identity import daemon
from kettle_wire.rest.streams import FollowChanges, FollowEvents
from kettle_wire.subjects import Subjects

SUBJECTS: Final = Subjects("bench")
SPEC: Final = StreamSpec(name=SUBJECTS.monitor_stream, subjects=[SUBJECTS.tail_all], max_messages=100_000)


async def still() -> None:
    """Nothing is withdrawn."""


ADMITTED: Final = Admission(still)
ADA: Final = Person(local("ada"), Mapped(owner="ada", domain="bench"))
BURST: Final = 200
SINGLE: Final = 20


class Gateway:
    """The part of a gateway that streams."""

    def __init__(self, bus: MemoryBus, port: int) -> None:
        self._bus = bus
        self._last = 0
        self.port: Final = port

    async def publish(self, count: int) -> None:
        """So many events at once, which say when that was."""
        posts = [
            Post(SUBJECTS.tail("ada", 1, n, "job.held"), _event(self._last + n)) for n in range(1, count + 1)
        ]
        await self._bus.append_together(posts, expect_last=self._last, note="")
        self._last += count


def _event(number: int) -> bytes:
    event = CloudEvent(
        specversion="1.0",
        id=f"s:{number}",
        source="/kettle/bench/s",
        type="org.kettle.job.held.v1",
        subject=f"1.{number}",
        time=datetime.now(UTC).isoformat(),
        dataschema="urn:kettle:event:job.held:1",
        data=msgspec.Raw(msgspec.json.encode({"reason": "x" * 200})),
        stream=f"job/1.{number}",
        version=1,
        epoch=1,
        frame="1",
        owner="ada",
        schedd="ap",
    )
    return msgspec.json.encode(event)


@asynccontextmanager
async def gateway(most: int) -> AsyncGenerator[Gateway]:
    """It serves as long as the context lasts."""
    bus = MemoryBus(MemoryServer(), subjects=SUBJECTS, identity=daemon("gateway"))
    await bus.ensure_stream(SPEC)
    hub = EventHub(bus, SPEC.name)
    nobody = cast("PersonConnections", None)
    feed = EventFeed(bus, SPEC.name, nobody, cast("PastQuestions", None), hub, Streams(most, most))

    async def events(request: web.Request) -> web.StreamResponse:
        return await feed.follow(Asked(ADA, FollowEvents(), None, request, admission=ADMITTED))

    async def changes(request: web.Request) -> web.StreamResponse:
        return await feed.follow_changes(Asked(ADA, FollowChanges(), None, request, admission=ADMITTED))

    application = web.Application()
    application.router.add_get("/events", events)
    application.router.add_get("/changes", changes)
    async with asyncio.TaskGroup() as tasks:
        running = [tasks.create_task(each) for each in (hub.run(), feed.run())]
        async with serving(application, "127.0.0.1", 0) as port:
            yield Gateway(bus, port)
        for each in running:
            each.cancel()
    bus.close()


# -- the readers, in a process of their own ---------------------------------------------------------------------------


async def _read(port: int, path: str, expected: int, late: list[float]) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 20)
    writer.write(f"GET {path} HTTP/1.1\r\nHost: bench\r\n\r\n".encode())
    while (await reader.readline()).strip():
        pass
    _say("open")
    seen = 0
    while seen < expected:
        line = await reader.readline()
        if line.startswith(b"data: "):
            seen += 1
            if path == "/events":
                late.append(time.time() - datetime.fromisoformat(json.loads(line[6:])["time"]).timestamp())
    _say("read")
    writer.close()


async def read_all(port: int, path: str, readers: int, expected: int) -> None:
    """Read so many events with each of so many readers, and say how late they were."""
    late: list[float] = []
    await asyncio.gather(*(_read(port, path, expected, late) for _ in range(readers)))
    late.sort()
    figures = {"p50": late[len(late) // 2], "p99": late[len(late) * 99 // 100]} if late else {}
    _say(json.dumps({name: round(value * 1000, 1) for name, value in figures.items()}))


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


class Readers:
    """The other process."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    async def said(self, word: str, count: int) -> None:
        """Wait until so many readers have said it."""
        assert self._process.stdout is not None
        for _ in range(count):
            assert word == (await self._process.stdout.readline()).decode().strip()

    async def late_ms(self) -> dict[str, float]:
        """How late their events were."""
        assert self._process.stdout is not None
        said: dict[str, float] = json.loads(await self._process.stdout.readline())
        await self._process.wait()
        return said


@asynccontextmanager
async def reading(port: int, path: str, count: int, expected: int) -> AsyncGenerator[Readers]:
    """So many readers, all of whom have their stream open."""
    words = ["--port", str(port), "--path", path, "--readers", str(count), "--expected", str(expected)]
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.performance.gateway_streams", *words, stdout=asyncio.subprocess.PIPE
    )
    try:
        readers = Readers(process)
        await readers.said("open", count)
        yield readers
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def measure(readers: int, idle_s: float) -> dict[str, Any]:
    """Idle, single events, and many at once."""
    own = os.getpid()
    async with gateway(6 * readers) as serving_:
        found: dict[str, Any] = {}
        for name, path, count in (("bare", "/changes", 1), ("changes", "/changes", readers)):
            async with reading(serving_.port, path, count, 1):
                used = processor_seconds(own)
                await asyncio.sleep(idle_s)
                used = processor_seconds(own) - used
                found[f"{name}_idle_percent_of_a_core"] = round(used / idle_s * 100, 2)
        async with reading(serving_.port, "/events", readers, SINGLE) as one:
            for _ in range(SINGLE):
                await serving_.publish(1)
                await asyncio.sleep(0.5)
            await one.said("read", readers)
            found["single_event_late_ms"] = await one.late_ms()
        rates: list[float] = []
        for _ in range(3):
            async with reading(serving_.port, "/events", readers, BURST) as many:
                began, used = time.perf_counter(), processor_seconds(own)
                await serving_.publish(BURST)
                await many.said("read", readers)
                rates.append(BURST * readers / (time.perf_counter() - began))
                found["processor_us_per_delivery"] = round(
                    (processor_seconds(own) - used) / BURST / readers * 1e6, 2
                )
        return found | {"deliveries_per_s": summary(rates, 0)}


def main() -> int:
    """Measure and print, or be the readers."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--readers", type=int, default=500)
    parser.add_argument("--idle", type=float, default=30.0)
    parser.add_argument("--port", type=int, default=0, help=argparse.SUPPRESS)
    parser.add_argument("--path", default="", help=argparse.SUPPRESS)
    parser.add_argument("--expected", type=int, default=0, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.port:
        asyncio.run(read_all(arguments.port, arguments.path, arguments.readers, arguments.expected))
        return 0
    report = asyncio.run(measure(arguments.readers, arguments.idle))
    _say(json.dumps({"readers": arguments.readers, **report}, indent=2))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
