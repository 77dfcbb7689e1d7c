"""
Pools that grow and shrink: the bars of what they promise, as JSON on standard output.

    python -m tests.performance.elastic [--rounds 5] [--leases 200] [--chaos 60]

`plan`, `burst` and `packing` are planned by the real planner from made-up slots and jobs; the rest is a real pool whose machines are
processes of this host. Its figures have the parts that nobody can avoid beside them: the time that a machine takes to boot, the work,
and the idle time after which machines go.
"""

import argparse
import asyncio
import json
import math
import tempfile
import time
from pathlib import Path
from typing import Any, Final

from tests.chaos import elastic as chaos
from tests.unit.scaler.planning_lab import NOW, Lab, job, machine_slot, offer, pool

from kettle.classad import Context
from kettle.client import select
from kettle.client.explanations.pool_use import figures
from kettle.testing.measurements import processor_seconds, say, summary
from kettle.testing.throwaway_pool import ThrowawayPool, throwaway_pool
from kettle.worker_pools.reading import read_pool
from kettle_services.provisioner.providers.processes import kill_tree, marked
from kettle_services.scaler.domain.leases.breakers import TemplateRecord
from kettle_wire.ads import Ad
from kettle_wire.leases import LeaseState

SERVICES: Final = [
    "collector", "negotiator", "schedd", "shadow", "accounting", "iam", "scaler", "provisioner"
]  # fmt: skip
SETTINGS: Final[dict[str, Any]] = {"master": {"daemon_list": SERVICES}, "scaler": {"renew_interval": 1.0}}
IDLE_S: Final = 3.0
CORES: Final = 4
MOST: Final = 2
WORK: Final = """\
name = "work"
max = {most}
idle = "{idle}s"
waits = 0
[[offer]]
name = "shared"
provider = "process"
cpus = {cores}
memory = "2 GB"
boot = "2s"
"""
CROWD: Final = """\
name = "crowd"
max = 1000
min = {least}
life = "10h"
[[offer]]
name = "asleep"
provider = "asleep"
cpus = 1
memory = "128 MB"
boot = "1h"
"""
SECONDS: Final = 2
JOBS: Final = f"executable = /bin/sleep\narguments = {SECONDS}\ntransfer_executable = false\nrequest_memory = 64\nqueue {{count}}\n"
WITHIN_S: Final = 300.0
_LOOK_S: Final = 0.02


def plan_of_many(rounds: int) -> dict[str, Any]:
    """Seconds of one plan: 10,000 jobs in 50 kinds, 40 offers, 500 workers, 200 machines on their way."""
    offers = [
        offer(f"o{number}", 2 + number % 16, 4096 * (1 + number % 7), price=0.1) for number in range(40)
    ]
    lab = Lab(*(pool(f"p{number}", offers[number * 10 : number * 10 + 10], max=1000) for number in range(4)))
    for number in range(500):
        lab.slots[f"w{number}.slot1"] = machine_slot(f"w{number}", 1 + number % 8, 2048)
    lab.set_queue(200, job(16, 4096))
    for _ in range(3):
        lab.cycle()
    lab.max_actions = 250
    lab.requests.clear()
    for number in range(50):
        lab.queue(200, job(1 + number % 12, 512 * (1 + number % 9)), submitter=f"person{number % 10}")
    snapshot, context = lab.snapshot(), Context(now=lambda: int(NOW))
    took: list[float] = []
    for _ in range(rounds + 1):
        inputs, patience = lab.inputs(), lab.patience.copy()
        began = time.perf_counter()
        snapshot.plan(inputs, patience, context)
        took.append(time.perf_counter() - began)
    return {
        "first_s": round(took[0], 3),
        "next_s": summary(took[1:]),
        "machines_on_their_way": len(lab.leases),
        "bar_s": 1.0,
    }


def burst() -> dict[str, Any]:
    """
    A thousand jobs of one core, an empty pool of machines of eight, which boot in two seconds of a simulated clock.
    """
    lab = Lab(pool(max=1000), proven=False)
    lab.set_queue(1000)
    plans, most, began = 0, 0, lab.now
    while len(lab.leases) < 125:
        plan = lab.cycle(seconds=2.0)
        plans += bool(plan.leases)
        most = max(most, len(lab.leases))
        lab.ready(*lab.leases)
        lab.templates = dict.fromkeys(lab.templates, TemplateRecord(proven=True))
    for _ in range(5):
        lab.cycle(seconds=2.0)
        most = max(most, len(lab.leases))
    return {
        "plans_with_orders": plans,
        "simulated_s": lab.now - began,
        "most_machines": most,
        "bar": "at most 3 plans with orders, the first of which is for one machine, and never more than 129 machines",
    }


def packing() -> dict[str, Any]:
    """
    Jobs that want much memory, many cores or GPUs: the price of what is ordered, against the least that any order could cost.
    """
    offers = [
        offer("balanced", 8, 32_768, price=0.40),
        offer("memory", 8, 131_072, price=0.80),
        offer("compute", 16, 32_768, price=0.64),
        offer("gpu", 8, 65_536, gpus=2, price=3.00),
    ]
    kinds: list[tuple[int, Ad]] = [
        (200, job(1, 2_000)),
        (60, job(1, 15_000)),
        (40, job(4, 6_000)),
        (12, job(16, 16_000)),
        (9, job(2, 8_000, RequestGPUs=1)),
    ]
    lab = Lab(pool(offers=offers, max=1000))
    for count, ad in kinds:
        lab.queue(count, ad)
    costs: list[float] = []
    for _ in range(5):
        lab.cycle()
        costs.append(sum(lease.offer.price for lease in lab.leases.values()))
    cores = sum(count * int(str(ad["RequestCpus"])) for count, ad in kinds)
    memory = sum(count * int(str(ad["RequestMemory"])) for count, ad in kinds)
    gpus = sum(count * int(str(ad.get("RequestGPUs", 0))) for count, ad in kinds)
    # So many machines have to have GPUs; the rest could at best be had at the lowest price for a core, or for memory.
    special = math.ceil(gpus / 2)
    least = 3.00 * special + max(
        min(each.price / each.cpus for each in offers) * (cores - 8 * special),
        min(each.price / each.memory for each in offers) * (memory - 65_536 * special),
    )
    return {
        "least_price": round(least, 2),
        "ratio_of_the_first_plan": round(costs[0] / least, 3),
        "ratio_after_five_plans": round(costs[-1] / least, 3),
        "bar_ratio": 1.25,
    }


async def from_nothing(pool: ThrowawayPool, place: Path, count: int) -> dict[str, float]:
    """Jobs for a pool without machines, from the submission until the last machine is gone."""
    workers, began = pool.client.worker_pools, time.time()
    known = {each.lease for each in (await workers.leases("work", states=[LeaseState.GONE])).leases}
    cluster = (await pool.client.submit(JOBS.format(count=count), cwd=place)).cluster
    first = 0.0
    async with asyncio.timeout(WITHIN_S):
        async for progress in pool.client.watch(select(cluster)):
            if progress.done and not first:
                first = time.time()
            if progress.done == count:
                break
        ended = time.time()
        while (await workers.leases("work")).leases:
            await asyncio.sleep(_LOOK_S)
    leases = [
        each
        for each in (await workers.leases("work", states=[LeaseState.GONE])).leases
        if each.lease not in known
    ]
    used = await workers.report("work", since=began, now=time.time())
    use = figures(leases, used.used, now=time.time())
    there = [each for each in leases if each.ready]
    boot = sorted(each.ready - each.accepted for each in there)[len(there) // 2]
    rounds = math.ceil(count / (MOST * CORES))
    clairvoyant = MOST * CORES * (boot + rounds * SECONDS)
    return {
        "ordered_s": min(each.requested for each in leases) - began,
        "ready_s": min(each.ready for each in there) - began,
        "first_job_began_s": first - began - SECONDS,
        "all_jobs_s": ended - began,
        "boot_s": boot,
        "removal_after_idle_s": max(each.ended for each in leases) - ended - IDLE_S,
        "machines": len(there),
        "provided_for_each_used": use.ratio,
        "provided_against_clairvoyant": use.provided / clairvoyant,
    }


async def growth(place: Path, rounds: int, count: int) -> dict[str, Any]:
    """A pool that grows from nothing and shrinks to nothing, again and again."""
    async with throwaway_pool(place, settings=SETTINGS) as running:
        (work := place / "work").mkdir()
        text = WORK.format(most=MOST, idle=IDLE_S, cores=CORES)
        await running.client.worker_pools.apply(read_pool(text, "work.toml"))
        found = [await from_nothing(running, work, count) for _ in range(rounds)]
        audit = await running.log_check()
    return {
        "jobs": count,
        "seconds_of_a_job": SECONDS,
        **{name: summary(each[name] for each in found) for name in found[0]},
        "log_is_clean": audit.clean,
        "bar_first_job_began_s": 5.0,
    }


async def restart(place: Path, rounds: int, count: int) -> dict[str, Any]:
    """
    A scaler that is killed with no lease and with many: seconds until the next one answers, and until it plans.
    """
    asleep = {"kind": "process", "boot_failures": 1.0, "grace": 0.0}
    settings = SETTINGS | {"provisioner": {"providers": {"asleep": asleep}}}
    none: list[float] = []
    many: list[float] = []
    used: list[float] = []
    async with throwaway_pool(place, settings=settings) as running:
        try:
            workers = running.client.worker_pools
            await workers.apply(read_pool(CROWD.format(least=0), "crowd.toml"))
            none += [await _again(running) for _ in range(rounds)]
            await _many(running, count)
            for _ in range(rounds):
                many.append(await _again(running))
                used.append(processor_seconds(running.pid("scaler")))
        finally:
            for mark in marked(f"{running.home}/machines/"):
                kill_tree(mark, None)
    return {
        "leases": count,
        "answers_without_leases_s": summary(none),
        "answers_with_leases_s": summary(many),
        "processor_s_until_then": summary(used),
    }


async def _many(running: ThrowawayPool, count: int) -> None:
    """
    So many machines are on their way, each ordered by hand: a planner tries a template that nobody knows with one.
    """
    workers = running.client.worker_pools
    for _ in range(count):
        await workers.order("crowd", "asleep")
    async with asyncio.timeout(WITHIN_S):
        while len((await workers.leases("crowd")).leases) < count:
            await asyncio.sleep(_LOOK_S)


async def _again(running: ThrowawayPool) -> float:
    began = time.time()
    await running.restarted("scaler", after=running.kill("scaler"))
    async with asyncio.timeout(WITHIN_S):
        while (await running.kettle("pool", "leases", "--json")).status:
            await asyncio.sleep(_LOOK_S)
    return time.time() - began


async def leaks(seconds: float) -> dict[str, Any]:
    """Everybody is killed in turn while a fifth of the answers is lost; what is left after quiet."""
    given = argparse.Namespace(seconds=seconds, seed=1, every=5.0, lost=0.2, victims=",".join(chaos.VICTIMS))
    return await chaos.attempt(given)


async def real(arguments: argparse.Namespace) -> dict[str, Any]:
    """What needs a pool."""
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(prefix="kettle-bench-elastic-") as directory:
        for name in ("growth", "restart"):
            (place := Path(directory, name)).mkdir()
            say(f"pools of workers: {name}")
            if name == "growth":
                found[name] = await growth(place, arguments.rounds, arguments.jobs)
            else:
                found[name] = await restart(place, arguments.rounds, arguments.leases)
    if arguments.chaos:
        say("pools of workers: faults")
        found["after_faults"] = await leaks(arguments.chaos)
    return found


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=24, help="of a pool that grows from nothing")
    parser.add_argument("--leases", type=int, default=200, help="that a scaler has which is killed")
    parser.add_argument("--chaos", type=float, default=60.0, help="seconds of faults; 0: none")
    given = parser.parse_args()
    say("pools of workers: plans")
    found = {"plan_of_10000": plan_of_many(2 * given.rounds), "burst": burst(), "packing": packing()}
    print(json.dumps({**found, **asyncio.run(real(given))}, indent=2))


if __name__ == "__main__":
    main()
