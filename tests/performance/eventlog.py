"""
What the event log carries: appended, published and projected; read back; started and taken over.

    python -m tests.performance.eventlog [--quick]

Real servers, a database that flushes. A projection runs in a process of its own, as it does in a pool.
"""

import argparse
import asyncio
import gc
import json
import os
import signal
import statistics
import sys
import tempfile
import time
import uuid
from collections import Counter
from collections.abc import AsyncGenerator, Coroutine, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import uvloop

from kettle.bus.nats import NatsBus
from kettle.bus.ports import BusError
from kettle.eventsourcing.projection import Decoded, Progress, Tx, run_projection
from kettle.eventsourcing.relay import relay
from kettle.eventsourcing.shard import Shard
from kettle.eventsourcing.working_set import Checkpointer
from kettle.projections import prepare
from kettle.storage import PgCursors, PgLog, PgWorkingSet
from kettle.testing.servers.embedded import Servers, servers
from kettle_services.schedd.domain.queue.fold import Queue
from kettle_services.schedd.domain.queue.replay import Replay
from kettle_services.schedd.domain.queue.rows import Change
from kettle_services.schedd.domain.queue.working_set import restore
from kettle_services.schedd.queue.recorder import mark
from kettle_wire.ads import Ad
from kettle_wire.attempts import ExitRecord
from kettle_wire.commands.schedd import QUERY_JOBS, QueryJobs, Select
from kettle_wire.events import ClusterSubmitted, Event, JobAssigned, JobCompleted, JobStarted, Usage
from kettle_wire.frames import Frame
from kettle_wire.identity import daemon
from kettle_wire.subjects import Subjects

T = TypeVar("T")

CALLERS = 4096
"""Enough for some to prepare the next frame while others wait for theirs."""
CLUSTER = 10_000
"""Jobs of one submission."""
SUBJECTS = Subjects("personal")
ASSIGNED = JobAssigned(
    attempt=1, claim="claim-00000001", slot="slot1_1@worker-0001.example.org", startd="worker"
)
STARTED = JobStarted(attempt=1, pid=4711, at=1.0)
COMPLETED = JobCompleted(
    attempt=1, exit=ExitRecord(code=0, at=3.0), usage=Usage(wall=3.0, user_cpu=2.5, memory_kib=12345)
)
PATIENCE_S = 120.0
WARM_UP_S = 0.5


class Tally:
    """A projection that counts: what remains of one when its own work is taken away."""

    name = "tally"
    version = 1
    kinds = ("bench",)
    directory = Path(__file__).parent / "tally"

    async def apply(self, tx: Tx, frames: Sequence[Decoded]) -> None:
        """Add the events of the frames, by type."""
        counts = Counter(entry.type for frame, _ in frames for entry in frame.entries)
        await tx.execute(
            "INSERT INTO tally AS t (shard, type, count) "
            "SELECT $1, * FROM unnest($2::text[], $3::bigint[]) "
            "ON CONFLICT (shard, type) DO UPDATE SET count = t.count + excluded.count",
            frames[0][0].shard,
            list(counts),
            list(counts.values()),
        )


class Timed(Progress):
    """Remembers when each frame was seen to be committed, seconds of the machine's monotonic clock."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[int, float]] = []

    async def move(self, shard: str, frame: int) -> None:
        """See `Progress.move`."""
        self.seen.append((frame, time.monotonic()))
        await super().move(shard, frame)


@asynccontextmanager
async def connected(url: str, credentials: str) -> AsyncGenerator[NatsBus]:
    """A connection to the bus."""
    async with NatsBus.connect(
        url, subjects=SUBJECTS, identity=daemon("gateway"), credentials=credentials
    ) as bus:
        yield bus


async def project(dsn: str, url: str, credentials: str, shard: str) -> None:
    """Be the process of the projection; at the end of the input, print what `Timed` has seen."""
    timed = Timed()
    async with PgLog.connect(dsn) as log, connected(url, credentials) as bus:
        running = asyncio.create_task(
            run_projection(
                Tally(),
                shard,
                log=log,
                bus=bus,
                cursors=PgCursors(log.database),
                subjects=SUBJECTS,
                progress=timed,
            )
        )
        print("ready", flush=True)
        done = asyncio.create_task(asyncio.to_thread(sys.stdin.readline))
        await asyncio.wait({running, done}, return_when=asyncio.FIRST_COMPLETED)
        running.cancel()
    print(json.dumps(timed.seen), flush=True)


class Pipeline:
    """One shard with its relay in this process, and its projection in another."""

    def __init__(self, place: Servers, log: PgLog, bus: NatsBus, shard: Shard) -> None:
        self._place = place
        self._log = log
        self._bus = bus
        self.shard = shard
        self.committed: dict[int, tuple[int, float]] = {}
        shard.on_commit(self._committed)

    def _committed(self, frame: Frame) -> None:
        self.committed[frame.number] = (len(frame.entries), time.monotonic())

    async def projected(self) -> float:
        """Wait until projection and bus have the last frame; when that was seen, on the monotonic clock."""
        cursors, stream = PgCursors(self._log.database), SUBJECTS.event_stream(self.shard.name)
        async with asyncio.timeout(PATIENCE_S):
            while await cursors.cursor("tally", 1, self.shard.name) < self.shard.frame:
                await asyncio.sleep(0.005)
            while (await self._bus.last_sequence(stream) or 0) < self.shard.frame:
                await asyncio.sleep(0.005)
        return time.monotonic()

    async def counts(self) -> dict[str, int]:
        """Events in the database, frames on the bus, events that were projected."""
        name = self.shard.name
        async with self._log.database.connection() as connection:
            projected = await connection.fetchval(
                "SELECT sum(count)::bigint FROM tally.tally WHERE shard = $1", name
            )
        tenure = await self._log.tenure(name)
        assert tenure is not None
        on_bus = await self._bus.last_sequence(SUBJECTS.event_stream(name))
        return {
            "log": tenure.head,
            "projected": projected,
            "frames": tenure.frame,
            "frames_on_bus": on_bus or 0,
        }


@asynccontextmanager
async def pipeline(place: Servers) -> AsyncGenerator[tuple[Pipeline, dict[int, float]]]:
    """Everything running; when each frame was projected is known after the context."""
    name = f"bench.{uuid.uuid4().hex}"
    seen: dict[int, float] = {}
    credentials = str(place.nats.credentials("test"))
    async with (
        PgLog.connect(place.postgres.dsn) as log,
        connected(place.nats.url, credentials) as bus,
        Shard.own(log, name, owner="bench") as shard,
    ):
        await prepare(Tally(), log.database, [log])
        loops = [asyncio.create_task(shard.run()), asyncio.create_task(relay(bus, log, shard, SUBJECTS))]
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            __file__,
            "project",
            place.postgres.dsn,
            place.nats.url,
            credentials,
            name,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            limit=1 << 26,
        )
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            assert await process.stdout.readline() == b"ready\n"
            yield Pipeline(place, log, bus, shard), seen
            process.stdin.write(b"\n")
            seen |= dict(json.loads(await process.stdout.readline()))
        finally:
            for loop in loops:
                loop.cancel()
            await asyncio.wait(loops)
            if process.returncode is None:
                process.terminate()
            await process.wait()


async def throughput(place: Servers, seconds: float) -> dict[str, Any]:
    """
    Events per second that are durable, on the bus and projected, with as many callers as keep all of it busy.
    """
    async with pipeline(place) as (running, _):
        shard = running.shard
        began = time.monotonic()

        async def call(number: int) -> None:
            stream = f"job/{number}.0"
            while time.monotonic() - began < seconds:
                await shard.record([(stream, ASSIGNED)], now_us=time.time_ns() // 1000)

        await asyncio.gather(*(call(i) for i in range(CALLERS)))
        committed = time.monotonic() - began
        took = await running.projected() - began
        counts = await running.counts()
    if counts["log"] != counts["projected"] or counts["frames"] != counts["frames_on_bus"]:
        raise SystemExit(f"the counts differ: {counts}")
    return {
        "events_per_second": round(counts["log"] / took),
        "committed_per_second": round(counts["log"] / committed),
        **counts,
    }


async def latency(place: Servers, rate: int, seconds: float) -> dict[str, Any]:
    """
    Milliseconds from commit to committed projection, at a steady rate of events, once statements are prepared.
    """
    async with pipeline(place) as (running, seen):
        loop = asyncio.get_running_loop()
        began, sent, cold = loop.time(), 0, 0
        while (elapsed := loop.time() - began) < seconds + WARM_UP_S:
            cold = cold if elapsed > WARM_UP_S else running.shard.frame
            due = int(elapsed * rate)
            for number in range(sent, due):
                running.shard.record([(f"job/{number % 5000}.0", ASSIGNED)], now_us=time.time_ns() // 1000)
            sent = due
            await asyncio.sleep(0.001)
        await running.shard.record([], now_us=0)
        await running.projected()
        committed = running.committed
    waited: list[float] = []
    marks = sorted(seen.items())
    at = 0
    for number, (entries, when) in sorted(committed.items()):
        if number <= cold:
            continue
        while at < len(marks) and marks[at][0] < number:
            at += 1
        waited += [1e3 * (marks[at][1] - when)] * entries
    waited.sort()
    return {
        "p50_ms": round(waited[len(waited) // 2], 2),
        "p99_ms": round(waited[len(waited) * 99 // 100], 2),
        "events_per_second": round(sent / (seconds + WARM_UP_S)),
    }


def life(cluster: int, proc: int) -> list[tuple[str, Event]]:
    """What is recorded of a job that runs once."""
    stream = f"job/{cluster}.{proc}"
    return [(stream, ASSIGNED), (stream, STARTED), (stream, COMPLETED)]


def submission(cluster: int) -> tuple[str, Event]:
    """A cluster of jobs of 100 autoclusters."""
    rows: list[list[Any]] = [[f"-n {proc}", 100 + proc % 100] for proc in range(CLUSTER)]
    ad: Ad = {"Cmd": "/usr/bin/sim", "RequestCpus": 1, "RequestDisk": 1024, "JobUniverse": 5}
    columns = ["Args", "RequestMemory"]
    return f"cluster/{cluster}", ClusterSubmitted(
        cluster=cluster, owner="ada", ad=ad, columns=columns, rows=rows
    )


async def fill(dsn: str, shard_name: str, *, finished: int, live: int) -> None:
    """A queue with a past: `finished` jobs that ran, and `live` ones that have begun to run."""
    async with PgLog.connect(dsn) as log, Shard.own(log, shard_name, owner="bench") as shard:
        committing = asyncio.create_task(shard.run())
        queue = Queue(shard_name.partition(".")[2])
        checkpointer = Checkpointer(
            PgWorkingSet(log.database), shard_name, epoch=shard.tenure.epoch, frame=0, interval=1.0
        )

        async def record(changes: list[tuple[str, Event]]) -> None:
            folded: list[tuple[int, list[Change]]] = []
            future = shard.record(changes, now_us=time.time_ns() // 1000)
            at = shard.open_at
            for stream, event in changes:
                folded.append((shard.version(stream), queue.apply(stream, event, at)))
            mark(checkpointer, await future, folded)

        for cluster in range(1, (finished + live) // CLUSTER + 1):
            await record([submission(cluster)])
            over = cluster <= finished // CLUSTER
            for start in range(0, CLUSTER, 1000):
                lives = [life(cluster, proc) for proc in range(start, start + 1000)]
                await record([event for one in lives for event in (one if over else one[:2])])
            await checkpointer.flush()
        committing.cancel()


async def replay(dsn: str, shard: str) -> dict[str, Any]:
    """How fast the working set is made from nothing but the log, and how fast it is read."""
    async with PgLog.connect(dsn) as log:
        began, count, past = time.process_time(), 0, Replay("bench")
        wall = time.monotonic()
        async for frame in log.read(shard):
            past.feed(frame)
            count += len(frame.entries)
        queue = past.queue()
        cpu, wall = time.process_time() - began, time.monotonic() - wall
        began = time.process_time()
        _, rows = await PgWorkingSet(log.database).load(shard)
        loaded = time.process_time() - began
        fresh = Queue("bench")
        restore(fresh, ((row.stream, row.state) for row in rows))
        restored = time.process_time() - began
        if fresh.jobs != queue.jobs:
            raise SystemExit("the working set is not what its events make of it")
    return {
        "events_per_cpu_second": round(count / cpu),
        "events_per_second": round(count / wall),
        "events": count,
        "working_set_rows": len(rows),
        "rows_read_per_cpu_second": round(len(rows) / loaded),
        "rows_restored_per_cpu_second": round(len(rows) / restored),
    }


class Schedd:
    """A schedd in a process of its own."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process

    @classmethod
    @asynccontextmanager
    async def running(cls, place: Servers, home: Path, name: str) -> AsyncGenerator["Schedd"]:
        """Started; `says` tells how far it is."""
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "kettle_services.schedd",
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            env={
                "PATH": os.environ["PATH"],
                "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
                "KETTLE_HOME": str(home),
                "KETTLE_NATS_URL": place.nats.url,
                "KETTLE_NATS_CREDENTIALS": str(place.nats.credentials("test")),
                "KETTLE_DATABASE_URL": place.postgres.dsn,
                "KETTLE_LOG_FORMAT": "json",
                "KETTLE_SCHEDD_NAME": name,
            },
        )
        try:
            yield cls(process)
        finally:
            if process.returncode is None:
                process.kill()
            await process.wait()

    async def says(self, text: str) -> None:
        """Read on until a line has a text."""
        assert self.process.stdout is not None
        async with asyncio.timeout(PATIENCE_S):
            while line := await self.process.stdout.readline():
                if text.encode() in line:
                    return
        raise SystemExit(f"the schedd ended before it said {text}")


async def answers(bus: NatsBus, name: str) -> None:
    """Ask a schedd until it answers."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            try:
                await bus.call(
                    QUERY_JOBS,
                    name,
                    QueryJobs(select=Select(), projection=["ClusterId"], limit=1),
                    deadline=0.25,  # a stopped owner holds it back: how finely the figure is measured
                )
            except BusError:
                await asyncio.sleep(0.01)
            else:
                return


async def takeover(place: Servers, home: Path, name: str) -> dict[str, Any]:
    """
    Seconds to start with a large queue, and to take it over from an owner that was killed, or that is stopped.
    """
    result: dict[str, Any] = {}
    async with connected(place.nats.url, str(place.nats.credentials("test"))) as bus:
        began = time.monotonic()
        async with Schedd.running(place, home, name) as first:
            await first.says('"msg":"ready"')
            result["start_s"] = round(time.monotonic() - began, 2)
            async with Schedd.running(place, home, name) as second:
                await second.says("stands by")
                await answers(bus, name)
                began = time.monotonic()
                first.process.send_signal(signal.SIGKILL)
                await answers(bus, name)
                result["takeover_after_kill_s"] = round(time.monotonic() - began, 2)
                async with Schedd.running(place, home, name) as third:
                    await third.says("stands by")
                    began = time.monotonic()
                    second.process.send_signal(signal.SIGSTOP)
                    await answers(bus, name)
                    result["takeover_after_silence_s"] = round(time.monotonic() - began, 2)
    return result


def summary(rounds: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Of each figure the median and the range."""
    return {
        name: {"median": statistics.median(sample), "min": min(sample), "max": max(sample), "n": len(sample)}
        for name in rounds[0]
        for sample in [[one[name] for one in rounds]]
    }


async def measure(*, quick: bool) -> dict[str, Any]:
    """All figures."""
    rounds, seconds = (1, 1.0) if quick else (3, 3.0)
    finished, live = (20_000, 10_000) if quick else (1_000_000, 100_000)
    with tempfile.TemporaryDirectory(prefix="kettle-bench-") as directory:
        home = Path(directory)
        async with servers(home, durable=True) as place:
            figures: dict[str, Any] = {
                "pipeline": summary([await throughput(place, seconds) for _ in range(rounds)]),
                "latency_at_10000": summary([await latency(place, 10_000, seconds) for _ in range(rounds)]),
            }
            await fill(place.postgres.dsn, "schedd.past", finished=finished, live=live)
            figures["replay"] = await replay(place.postgres.dsn, "schedd.past")
            figures["owner"] = summary([await takeover(place, home, "past") for _ in range(rounds)])
            figures["owner"] |= {"finished": finished, "live": live}
    return figures


def run(main: Coroutine[Any, Any, T]) -> T:
    """As services run: in their event loop, and with modules that no collection of garbage looks at."""
    gc.freeze()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(main)


if __name__ == "__main__":
    if sys.argv[1:2] == ["project"]:
        run(project(*sys.argv[2:]))
    else:
        parser = argparse.ArgumentParser(description=__doc__)
        parser.add_argument("--quick", action="store_true", help="one short round with a small queue")
        print(json.dumps(run(measure(quick=parser.parse_args().quick)), indent=2))
