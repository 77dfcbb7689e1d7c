"""
Whether usage follows priority factors in a whole pool: real services and protocols, simulated machines and jobs.

    python -m tests.performance.bench --part fairness
    python -m tests.performance.fairness [--users 50] [--jobs 20000] [--machines 200] [--seconds 3600] [--pace 12]

Servers, collector, negotiator, schedd, shadow and accounting are a pool's own processes. The startds are real too, all in
this process, each with a connection of its own; their starters run nothing (`kettle.testing.simulated_starters`) and say
after a `pace`-th of a job's time that it is over.

Five priority factors are shared out among the users. All want more than is there, real priorities are kept equal by a very
long half-life, so what is due to each is in inverse proportion to the factor. Prints JSON: `misplaced` is the part of all
usage that is with somebody else than it is due to, `most_cores_over` how many cores somebody had on average that were due
to others.  In the first minutes claims are as the machines came, so the second half says what usage converges to.
"""

import argparse
import asyncio
import getpass
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
from kettle.testing.measurements import processor_seconds, say
from kettle.testing.servers.embedded import server_directory
from kettle.testing.servers.locations import Place
from kettle.testing.servers.selection import place
from kettle.testing.simulated_starters import SECONDS
from kettle.testing.throwaway_pool import ThrowawayPool, throwaway_pool

CORES: Final = 8
HALVES: Final = 2
FACTORS: Final = 5
SHORTEST: Final = 200
"""Simulated seconds of the shortest job; the longest takes three times as long."""
DAEMONS: Final = ["collector", "negotiator", "schedd", "shadow", "accounting", "gateway"]
WITHIN_S: Final = 120.0
_LOOK_S: Final = 0.1
_FILES: Final = 16_384
_JOBS: Final = "executable = /bin/true\ntransfer_executable = false\nrequest_memory = 128\nrequest_disk = 1\n"


class Plan(msgspec.Struct, frozen=True):
    """What is simulated; times in simulated seconds."""

    users: int
    jobs: int
    machines: int
    seconds: float
    pace: float
    worklife: float

    @property
    def groups(self) -> list[str]:
        """
        Accounting groups without a quota, one for each submitter: a personal pool runs the jobs of one account, and to the
        negotiator its names in different groups are different submitters.
        """
        return [f"user{number:02}" for number in range(self.users)]

    @property
    def factors(self) -> dict[str, float]:
        """By submitter."""
        me = getpass.getuser()
        return {f"{name}.{me}": 1000.0 * (1 + n % FACTORS) for n, name in enumerate(self.groups)}

    @property
    def due(self) -> dict[str, float]:
        """By submitter, as a part of all usage."""
        inverse = {name: 1 / factor for name, factor in self.factors.items()}
        return {name: part / sum(inverse.values()) for name, part in inverse.items()}


async def submit(pool: ThrowawayPool, name: str, number: int, jobs: int) -> None:
    """The jobs of one submitter, in one cluster; they take 200 to 600 s."""
    seconds = [SHORTEST + (k * 7919 + number * 31) % (2 * SHORTEST) for k in range(jobs)]
    rows = "\n".join(str(each) for each in seconds)
    group = name.partition(".")[0]
    text = f"{_JOBS}accounting_group = {group}\n+{SECONDS} = $(seconds)\nqueue seconds from (\n{rows}\n)\n"
    await pool.client.submit(text, cwd=pool.home.parent)


async def used(pool: ThrowawayPool, plan: Plan) -> dict[str, float]:
    """Weighted usage of each user so far, in core seconds."""
    known = {each.name: each for each in (await pool.client.accountant.priorities()).submitters}
    return {name: known[name].weighted_accumulated for name in plan.factors}


async def idle(pool: ThrowawayPool, name: str) -> int:
    """How many jobs of a user wait; who has none cannot have a share."""
    return (await pool.client.totals(select(constraint=f'AccountingGroup == "{name}"'))).statuses.get(
        "idle", 0
    )


async def full(pool: ThrowawayPool, plan: Plan) -> None:
    """Wait until all cores are in use."""
    async with asyncio.timeout(WITHIN_S):
        while True:
            known = (await pool.client.accountant.priorities()).submitters
            if sum(each.weight for each in known) >= 0.99 * plan.machines * CORES:
                return
            await asyncio.sleep(_LOOK_S)


def difference(late: dict[str, float], early: dict[str, float]) -> dict[str, float]:
    """What each used between two moments."""
    return {name: late[name] - early[name] for name in late}


def divided(given: dict[str, float], plan: Plan, took: float) -> dict[str, float]:
    """How far usage is from what was due, in `took` seconds."""
    whole = sum(given.values())
    over = {name: given[name] - part * whole for name, part in plan.due.items()}
    return {
        "misplaced": round(sum(map(abs, over.values())) / 2 / whole, 5),
        "most_cores_over": round(max(over.values()) / took, 2),
        "most_cores_under": round(-min(over.values()) / took, 2),
    }


async def measure(servers: Place, pool: ThrowawayPool, directory: Path, plan: Plan) -> dict[str, Any]:
    """From the first machine to the end of the period."""
    for name, factor in plan.factors.items():
        await pool.client.accountant.set(name, "factor", factor)
    say(f"{plan.jobs} jobs of {plan.users} users")
    for number, (name, part) in enumerate(plan.due.items()):
        await submit(pool, name, number, round(plan.jobs * part))
    say(f"{plan.machines} machines")
    busy = {each.name: processor_seconds(each.pid) for each in pool.state.daemons if each.pid}
    began = time.perf_counter()
    worklife = {"claim_worklife": str(plan.worklife / plan.pace)}
    async with simulated_machines(
        servers, directory, plan.machines, cores=CORES, pace=plan.pace, settings=worklife
    ):
        await full(pool, plan)
        filled = time.perf_counter()
        say(f"all cores in use after {filled - began:.1f} s; {plan.seconds:.0f} s at a pace of {plan.pace:g}")
        seen = [await used(pool, plan)]
        for _ in range(HALVES):
            await asyncio.sleep(plan.seconds / plan.pace / HALVES)
            seen.append(await used(pool, plan))
        took = time.perf_counter() - filled
        waiting = [await idle(pool, name) for name in plan.factors]
        spent = {each.name: processor_seconds(each.pid) for each in pool.state.daemons if each.pid}
    return {
        "users": plan.users,
        "jobs": plan.jobs,
        "machines": plan.machines,
        "simulated_s": round(took * plan.pace),
        "pace": plan.pace,
        "filled_after_s": round(filled - began, 1),
        "cores_used": round(sum(difference(seen[-1], seen[0]).values()) / took, 1),
        "all": divided(difference(seen[-1], seen[0]), plan, took),
        "second_half": divided(difference(seen[-1], seen[-2]), plan, took / HALVES),
        "least_waiting": min(waiting),
        "processor_s": {name: round(spent[name] - busy.get(name, 0.0), 1) for name in spent},
    }


async def run(plan: Plan) -> dict[str, Any]:
    """Servers, pool, and what was measured."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(_FILES, hard)), hard))
    with server_directory() as directory, tempfile.TemporaryDirectory(prefix="kettle-fair-") as home:
        async with place(directory) as servers:
            addresses = msgspec.structs.asdict(servers.addresses)
            settings = {
                "kettle": {"pool": servers.pool, **addresses},
                "master": {"daemon_list": DAEMONS},
                "collector": {"classad_lifetime": 900.0},
                "negotiator": {"priority_halflife": 1e9, "charge_interval": 1.0},
                "schedd": {
                    "lease": 1200.0,
                    "alive_interval": 300.0,
                    "accounting_groups": {group: ["*"] for group in plan.groups},
                },
            }
            async with throwaway_pool(Path(home), settings=settings) as pool:
                return await measure(servers, pool, Path(home), plan)


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--users", type=int, default=50)
    parser.add_argument("--jobs", type=int, default=20_000)
    parser.add_argument("--machines", type=int, default=200, help=f"of {CORES} cores each")
    parser.add_argument("--seconds", type=float, default=3600.0, help="simulated, once all cores are in use")
    parser.add_argument("--pace", type=float, default=12.0, help="simulated seconds in one")
    parser.add_argument("--worklife", type=float, default=1200.0, help="CLAIM_WORKLIFE, simulated seconds")
    arguments = parser.parse_args()
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr)
    print(json.dumps(asyncio.run(run(msgspec.convert(vars(arguments), Plan))), indent=2))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
