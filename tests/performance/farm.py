"""
A whole farm through real services and the real bus: how many slots two processors keep busy, and what falls behind first.

    python -m tests.performance.farm [--machines 800] [--cores 63] [--jobs 100000] [--seconds 60] [--period 240]

Servers, collector, negotiator, schedd, shadow, accounting and gateway are a pool's own processes; the database flushes what
it commits. The startds are real too, hundreds in a process, each with a connection of its own; their starters run nothing and say
after `seconds`, give or take half of it so that jobs do not end together, that the job is over.

The farm is filled as farms are, some hundred jobs a second; then `jobs` are in the queue until the end: for those that have ended
others are submitted.

Looks every ten seconds, at the queues of everything: jobs that wait while a slot is free, frames that are not on the bus yet,
frames that the history has still to take, reports that the shadow has still to read.  It is a steady state if in the last half
of the period nearly all slots are in use and none of these grows.  Prints JSON, with processors and memory of each service and server.
"""

import argparse
import asyncio
import json
import logging
import os
import random
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

import msgspec
from nats.aio.client import Client
from nats.js import JetStreamContext
from tests.performance.machines import lots

from kettle.client import select
from kettle.projections import lags
from kettle.storage import PgLog
from kettle.testing.measurements import below, busy_seconds, processor_seconds, proportional_kib, say, summary
from kettle.testing.servers.embedded import servers, temporary
from kettle.testing.servers.locations import Addresses, Place
from kettle.testing.simulated_starters import SECONDS
from kettle.testing.throwaway_pool import ThrowawayPool, throwaway_pool

CLUSTERS: Final = 10
DAEMONS: Final = ["collector", "negotiator", "schedd", "shadow", "accounting", "gateway"]
POOL: Final = "farm"
SCHEDD: Final = "schedd"
FILLED_PER_S: Final = 250
"""
Jobs with which the empty farm is filled: all slots at once would be another measurement, that of the start.
"""
_STEP_S: Final = 4.0
"""Between two submissions of them."""
IN_USE: Final = 0.95
"""Of all slots, in a steady state; the others are between two jobs."""
WAITING_S: Final = 2.0
"""In a steady state a queue has no more than what arrives in so many seconds."""
_LOOK_S: Final = 10.0
_JOBS: Final = (
    "executable = /bin/true\ntransfer_executable = false\nrequest_memory = 128\nrequest_disk = 1\n"
    f"+{SECONDS} = $(seconds)\nqueue seconds from (\n{{rows}}\n)\n"
)


class Plan(msgspec.Struct, frozen=True):
    """What is simulated; times in seconds."""

    machines: int
    cores: int
    jobs: int
    seconds: float
    period: float

    @property
    def slots(self) -> int:
        """On all machines together."""
        return self.machines * self.cores


class Look(msgspec.Struct, frozen=True):
    """How things are at one moment; `at` in seconds since there were jobs for all slots."""

    at: float
    running: int
    idle: int
    ended: int
    unfilled: int
    """Jobs that wait, and have a free slot."""
    unpublished: int
    """Frames of the schedd that are not on the bus yet."""
    unprojected: int
    """Frames of the schedd that the history has still to take."""
    unread: int
    """Reports of startds that the shadow has not acknowledged."""


QUEUES: Final = ("unfilled", "unpublished", "unprojected", "unread")


class Farm:
    """The pool under load, and what is seen of it."""

    def __init__(
        self, plan: Plan, pool: ThrowawayPool, servers: Place, *, log: PgLog, stream: JetStreamContext
    ) -> None:
        self._plan = plan
        self._pool = pool
        self._subjects = servers.subjects
        self._servers = servers.own
        self._log = log
        self._stream = stream
        self._random = random.Random(1)
        self._submitted = 0
        self.machines: list[int] = []
        """The processes in which they are."""

    async def submit(self, count: int) -> None:
        """One cluster of so many jobs, each with a time of its own."""
        half = self._plan.seconds / 2
        rows = "\n".join(f"{self._random.uniform(half, 3 * half):.2f}" for _ in range(count))
        await self._pool.client.submit(_JOBS.format(rows=rows), cwd=self._pool.home.parent)
        self._submitted += count

    async def fill(self) -> None:
        """A job for each slot, little by little, and then all others."""
        step = int(FILLED_PER_S * _STEP_S)
        began = time.perf_counter()
        for number, first in enumerate(range(0, self._plan.slots, step), 1):
            await self.submit(min(step, self._plan.slots - first))
            await asyncio.sleep(max(0.0, began + number * _STEP_S - time.perf_counter()))
        rest = max(0, self._plan.jobs - self._plan.slots)
        for _ in range(CLUSTERS):
            await self.submit(rest // CLUSTERS)

    async def look(self, began: float) -> Look:
        """One look."""
        at = time.perf_counter() - began
        totals = (await self._pool.client.totals(select(constraint="true"))).statuses
        [history] = [
            each for each in await lags(self._log.database, [self._log]) if each.projection == "jobs"
        ]
        published = await self._stream.stream_info(self._subjects.event_stream(history.shard))
        reader = self._subjects.work_reader(SCHEDD)
        reports = await self._stream.consumer_info(self._subjects.work_stream, reader)
        running, idle = totals.get("running", 0), totals.get("idle", 0)
        return Look(
            at=round(at, 1),
            running=running,
            idle=idle,
            ended=self._submitted - sum(totals.values()),
            unfilled=min(idle, max(0, self._plan.slots - running)),
            unpublished=max(0, history.head - published.state.last_seq),
            unprojected=history.frames,
            unread=(reports.num_pending or 0) + (reports.num_ack_pending or 0),
        )

    def processes(self) -> dict[str, list[int]]:
        """Of each service and server; `who_looks` is this one, which also submits."""
        assert self._servers is not None
        postgres = self._servers.postgres.pid
        found = {each.name: [each.pid] for each in self._pool.state.daemons if each.pid}
        return found | {
            "nats": [self._servers.nats.pid],
            "postgres": [postgres, *below(postgres)],
            "machines": self.machines,
            "who_looks": [os.getpid()],
        }

    def spent(self) -> dict[str, float]:
        """Processor seconds of each so far, and of everything on this computer."""
        found = {
            # Sessions of the database come and go: its time is that of those that ended, too.
            name: sum(processor_seconds(pid, ended_children=name == "postgres") for pid in pids)
            for name, pids in self.processes().items()
        }
        return found | {"whole_computer": busy_seconds()}

    def memory(self) -> dict[str, float]:
        """What each has of its own, and its part of what it shares, MiB."""
        return {
            name: round(sum(map(proportional_kib, pids)) / 1024, 1) for name, pids in self.processes().items()
        }


async def measure(farm: Farm, servers: Place, directory: Path, plan: Plan) -> dict[str, Any]:
    """From the first machine to the end of the period."""
    say(f"{plan.machines} machines of {plan.cores} cores")
    looks: list[Look] = []
    made = time.perf_counter()
    async with lots(servers, directory, plan.machines, cores=plan.cores) as farm.machines:
        advertised = time.perf_counter()
        say(f"all of them advertised after {advertised - made:.0f} s; {plan.jobs} jobs")
        await farm.fill()
        began = time.perf_counter()
        say(f"as many jobs as slots after {began - advertised:.0f} s")
        half, half_at = farm.spent(), 0.0
        while (now := time.perf_counter() - began) < plan.period:
            await asyncio.sleep(_LOOK_S)
            looks.append(await farm.look(began))
            say(f"  {looks[-1]}")
            if ended := plan.jobs - looks[-1].running - looks[-1].idle:
                await farm.submit(ended)
            if now < plan.period / 2:
                half, half_at = farm.spent(), time.perf_counter() - began
        used, sizes = farm.spent(), farm.memory()
        took = time.perf_counter() - began
    late = [each for each in looks if each.at >= plan.period / 2]
    return {
        "slots": plan.slots,
        "machines": plan.machines,
        "jobs_in_the_queue": plan.jobs,
        "seconds_per_job": plan.seconds,
        "machines_made_s": round(advertised - made, 1),
        "filled_s": round(began - advertised, 1),
        **last_half(late, plan),
        "processors_in_use": {name: round((used[name] - half[name]) / (took - half_at), 3) for name in used},
        "memory_mib": sizes,
        "looks": looks,
    }


def last_half(looks: list[Look], plan: Plan) -> dict[str, Any]:
    """What holds when all slots that can be filled are."""
    first, last = looks[0], looks[-1]
    rate = (last.ended - first.ended) / (last.at - first.at)
    queues = {name: [getattr(each, name) for each in looks] for name in QUEUES}
    growing = [
        name
        for name, sizes in queues.items()
        if statistics.median(sizes[len(sizes) // 2 :]) > WAITING_S * rate
    ]
    in_use = [each.running for each in looks]
    return {
        "ended_per_second": round(rate, 1),
        "ends_per_second_of_a_full_farm": round(plan.slots / plan.seconds, 1),
        "slots_in_use": summary(in_use, 0),
        "queues": {name: summary(sizes, 0) for name, sizes in queues.items()},
        "too_long": growing,
        "steady": not growing and statistics.median(in_use) >= IN_USE * plan.slots,
    }


async def run(plan: Plan) -> dict[str, Any]:
    """Servers, pool, and what was measured."""
    with temporary() as directory, tempfile.TemporaryDirectory(prefix="kettle-farm-") as home:
        async with servers(directory, durable=True) as own:
            addresses = Addresses(
                nats_url=own.nats.url,
                nats_credentials=str(own.nats.credentials("test")),
                nats_replicas=1,
                database_url=own.postgres.dsn,
            )
            settings: dict[str, Any] = {
                "kettle": {"pool": POOL, **msgspec.structs.asdict(addresses)},
                "master": {"daemon_list": DAEMONS},
                "collector": {"classad_lifetime": 3600.0},
                "negotiator": {"interval": 5.0},
                "schedd": {"name": SCHEDD, "lease": 1200.0, "alive_interval": 300.0, "sync_interval": 60.0},
            }
            place, client = Place(POOL, addresses, own), Client()
            async with (
                throwaway_pool(Path(home), settings=settings) as pool,
                PgLog.connect(addresses.database_url) as log,
            ):
                await client.connect(addresses.nats_url, user_credentials=addresses.nats_credentials)
                try:
                    farm = Farm(plan, pool, place, log=log, stream=JetStreamContext(client))
                    return await measure(farm, place, Path(home), plan)
                finally:
                    await client.close()


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--machines", type=int, default=800)
    parser.add_argument("--cores", type=int, default=63, help="of each machine")
    parser.add_argument("--jobs", type=int, default=100_000, help="always in the queue")
    parser.add_argument("--seconds", type=float, default=60.0, help="that a job takes, on average")
    parser.add_argument(
        "--period", type=float, default=240.0, help="seconds, once there were jobs for all slots"
    )
    arguments = parser.parse_args()
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr)
    report = asyncio.run(run(msgspec.convert(vars(arguments), Plan)))
    print(json.dumps(msgspec.to_builtins(report), indent=2))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
