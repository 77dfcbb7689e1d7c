"""
A whole farm through real services and the real bus: how many slots two processors keep busy, and what falls behind first.

    python -m tests.performance.farm [--machines 800] [--cores 63] [--jobs 100000] [--seconds 60] [--period 120]

Servers, collector, negotiator, schedd, shadow, accounting and gateway are a pool's own processes. The startds are real too,
in this process, each with a connection of its own; their starters run nothing and say after `seconds` that the job is over.
Jobs are in ten clusters, all submitted before the first machine is there.

Looks every ten seconds: jobs that wait, run and have ended, jobs that are late (their time is over, and nobody has recorded
it), frames that the history has still to take.  It is a steady state if in the last half of the period neither of the latter
two grows.  Prints JSON.
"""

import argparse
import asyncio
import json
import logging
import resource
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

import msgspec
from tests.performance.machines import simulated_machines

from kettle.client import select
from kettle.projections import lags
from kettle.storage import PgLog
from kettle.testing.embedded import server_directory
from kettle.testing.figures import processor_seconds, proportional_kib, say, summary
from kettle.testing.lanes import place
from kettle.testing.places import Place
from kettle.testing.pool import ThrowawayPool, throwaway_pool
from kettle.testing.simulated_starters import SECONDS

CLUSTERS: Final = 10
DAEMONS: Final = ["collector", "negotiator", "schedd", "shadow", "accounting", "gateway"]
LATE_S: Final = 5.0
FRAMES_BEHIND: Final = 100
_LOOK_S: Final = 10.0
_FILES: Final = 65_536
_JOBS: Final = (
    "executable = /bin/true\ntransfer_executable = false\nrequest_memory = 128\nrequest_disk = 1\n"
    f"+{SECONDS} = {{seconds}}\nqueue {{count}}\n"
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
    """How things are at one moment; `at` in seconds since all machines were there."""

    at: float
    running: int
    idle: int
    ended: int
    late: int
    """Jobs whose time was over some seconds ago and whose end is not recorded: they wait between startd and schedd."""
    frames_behind: int
    """What the history has still to take of the schedd's frames."""


async def look(pool: ThrowawayPool, log: PgLog, plan: Plan, began: float) -> Look:
    """One look."""
    at = time.perf_counter() - began
    totals = (await pool.client.totals(select(constraint="true"))).statuses
    over = f"JobStatus == 2 && time() - EnteredCurrentStatus > {plan.seconds + LATE_S}"
    late = (await pool.client.totals(select(constraint=over))).statuses
    behind = [each for each in await lags(log.database, [log]) if each.projection == "jobs"]
    return Look(
        at=round(at, 1),
        running=totals.get("running", 0),
        idle=totals.get("idle", 0),
        ended=plan.jobs - sum(totals.values()),
        late=sum(late.values()),
        frames_behind=max(each.frames for each in behind),
    )


def spent(pool: ThrowawayPool) -> dict[str, float]:
    """Processor seconds of each service so far, and of this process, which is all the machines."""
    services = {each.name: processor_seconds(each.pid) for each in pool.state.daemons if each.pid}
    return services | {"machines": time.process_time()}


def memory(pool: ThrowawayPool) -> dict[str, float]:
    """What each service has of its own, and its part of what it shares, MiB."""
    return {each.name: round(proportional_kib(each.pid) / 1024, 1) for each in pool.state.daemons if each.pid}


async def measure(servers: Place, pool: ThrowawayPool, directory: Path, plan: Plan) -> dict[str, Any]:
    """From the first machine to the end of the period."""
    say(f"{plan.jobs} jobs in {CLUSTERS} clusters")
    for _ in range(CLUSTERS):
        text = _JOBS.format(seconds=plan.seconds, count=plan.jobs // CLUSTERS)
        await pool.client.submit(text, cwd=pool.home.parent)
    say(f"{plan.machines} machines of {plan.cores} cores")
    looks: list[Look] = []
    made = time.perf_counter()
    async with (
        PgLog.connect(servers.addresses.database_url) as log,
        simulated_machines(servers, directory, plan.machines, cores=plan.cores, pace=1.0, settings={}),
    ):
        began = time.perf_counter()
        say(f"all of them advertised after {began - made:.0f} s")
        half = busy = spent(pool)
        while time.perf_counter() - began < plan.period:
            await asyncio.sleep(_LOOK_S)
            looks.append(await look(pool, log, plan, began))
            say(f"  {looks[-1]}")
            if looks[-1].at < plan.period / 2:
                half = spent(pool)
        used, sizes = spent(pool), memory(pool)
    return {
        "slots": plan.slots,
        "machines": plan.machines,
        "jobs": plan.jobs,
        "seconds_per_job": plan.seconds,
        "machines_made_s": round(began - made, 1),
        **last_half([each for each in looks if each.at >= plan.period / 2], half, used),
        "processor_s": {name: round(used[name] - busy[name], 1) for name in used},
        "memory_mib": sizes,
        "looks": looks,
    }


def last_half(looks: list[Look], half: dict[str, float], used: dict[str, float]) -> dict[str, Any]:
    """What holds when all slots that can be filled are."""
    first, last = looks[0], looks[-1]
    took = last.at - first.at
    return {
        "ended_per_second": round((last.ended - first.ended) / took, 1),
        "slots_in_use": summary((each.running for each in looks), 0),
        "late": summary((each.late for each in looks), 0),
        "frames_behind": summary((each.frames_behind for each in looks), 0),
        "steady": last.late <= max(first.late, last.running // 100) and last.frames_behind <= FRAMES_BEHIND,
        "processors_in_use": {name: round((used[name] - half[name]) / took, 3) for name in used},
    }


async def run(plan: Plan) -> dict[str, Any]:
    """Servers, pool, and what was measured."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(_FILES, hard), hard))
    with server_directory() as directory, tempfile.TemporaryDirectory(prefix="kettle-farm-") as home:
        async with place(directory) as servers:
            settings: dict[str, Any] = {
                "kettle": {"pool": servers.pool, **msgspec.structs.asdict(servers.addresses)},
                "master": {"daemon_list": DAEMONS},
                "collector": {"classad_lifetime": 3600.0},
                "negotiator": {"interval": 5.0},
                "schedd": {"lease": 1200.0, "alive_interval": 300.0, "sync_interval": 60.0},
            }
            async with throwaway_pool(Path(home), settings=settings) as pool:
                return await measure(servers, pool, Path(home), plan)


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--machines", type=int, default=800)
    parser.add_argument("--cores", type=int, default=63, help="of each machine")
    parser.add_argument("--jobs", type=int, default=100_000)
    parser.add_argument("--seconds", type=float, default=60.0, help="that a job takes")
    parser.add_argument("--period", type=float, default=240.0, help="seconds, once all machines are there")
    arguments = parser.parse_args()
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr)
    report = asyncio.run(run(msgspec.convert(vars(arguments), Plan)))
    print(json.dumps(msgspec.to_builtins(report), indent=2))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
