"""
Elastic pools while everybody who has to do with them is killed: the result as JSON on standard output.

    python -m tests.chaos.elastic --seconds 1800
    python -m tests.chaos.elastic --seconds 300 --victims scaler,provisioner --every 5

A pool of the provider `process` is told again and again how many machines it is to have at least, and machines are given up by force.
Its provider loses a part of its answers, refuses some requests, and some of its machines never boot. The victims are killed in turn,
each as soon as the one before is back. Then it is quiet: nothing is killed any more, and after a while no machine is wanted.

The exit status is 1 if, two minutes after quiet, a machine has no lease or a lease no machine, if something is left when none is
wanted, or if the log is not clean.
"""

import argparse
import asyncio
import json
import random
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any, Final

from kettle.testing.measurements import say
from kettle.testing.throwaway_pool import ThrowawayPool, throwaway_pool
from kettle_services.provisioner.providers.processes import marked

VICTIMS: Final = ("scaler", "provisioner", "nats", "postgres", "iam")
POOL: Final = """\
name = "crowd"
max = 12
min = {least}
idle = "5s"
life = "10m"
[[offer]]
name = "small"
provider = "process"
cpus = 1
memory = "512 MB"
boot = "1s"
"""
QUIET_S: Final = 120.0
_LOOK_S: Final = 1.0
_STARTED: Final = {"ready", "busy"}


def settings(lost: float) -> dict[str, Any]:
    """Times with which much happens in a minute, and a provider that cannot be relied on."""
    process = {"kind": "process", "grace": 3.0, "lost_answers": lost, "refusals": 0.1, "boot_failures": 0.05}
    return {
        "master": {"daemon_list": ["collector", "negotiator", "iam", "scaler", "provisioner"]},
        "scaler": {
            "answer": 6.0,
            "reconcile_interval": 5.0,
            "doubt_interval": 1.0,
            "renew_interval": 2.0,
            "shortest_boot": 20.0,
            "orphan_grace": 30.0,
            "dead": 20.0,
            "interval": 2.0,
            "min_interval": 0.5,
        },
        "provisioner": {"call_deadline": 4.0, "providers": {"process": process}},
    }


async def leases(pool: ThrowawayPool) -> list[dict[str, Any]] | None:
    """Those that are not over; None: nobody says it now."""
    status, out, _ = await pool.kettle("pool", "leases", "--json")
    found: list[dict[str, Any]] | None = json.loads(out)["leases"] if status == 0 else None
    return found


def machines(pool: ThrowawayPool) -> list[str]:
    """The machines in the process table, by the names of their leases."""
    marks = marked(f"{pool.home}/machines/")
    return sorted(Path(mark).name.rpartition(".")[0] for mark in marks)


async def wanted(pool: ThrowawayPool, least: int) -> bool:
    """Say how many are wanted; whether it was heard."""
    file = pool.home.parent / "crowd.toml"
    file.write_text(POOL.format(least=least))
    status, _, _ = await pool.kettle("pool", "apply", str(file))
    if status == 0:
        await pool.kettle("pool", "resume", "crowd")  # what was closed is used again: the chaos is to go on
    return status == 0


async def change(pool: ThrowawayPool, chance: random.Random, did: Counter[str]) -> None:
    """Want other numbers of machines, and give some up; never returns."""
    while True:
        did["applied"] += await wanted(pool, chance.randrange(1, 10))
        await asyncio.sleep(chance.uniform(2.0, 8.0))
        held = await leases(pool)
        if held:
            lease = str(chance.choice(held)["lease"])
            status, _, _ = await pool.kettle("pool", "drain", "--lease", lease, "--force")
            did["given up"] += status == 0


async def break_all(pool: ThrowawayPool, victims: list[str], every: float, did: Counter[str]) -> None:
    """Kill one after the other; never returns."""
    while True:
        for victim in victims:
            await asyncio.sleep(every)
            if pid := pool.kill(victim):
                did[f"killed {victim}"] += 1
                await pool.restarted(victim, after=pid)


async def settled(pool: ThrowawayPool, least: int) -> dict[str, Any]:
    """
    What differs after quiet, if so many machines are wanted; each lease has its machine otherwise, and each machine its lease.
    """
    began = time.monotonic()
    while not await wanted(pool, least):
        await asyncio.sleep(_LOOK_S)
    while True:
        held = await leases(pool)
        if held is not None:
            there, names = machines(pool), sorted(str(each["lease"]) for each in held)
            states = {str(each["state"]) for each in held}
            fits = there == names and states <= _STARTED and len(names) >= least
            if fits and (least or not names):
                return {"seconds": round(time.monotonic() - began, 1)}
            if time.monotonic() - began > QUIET_S:
                return {"machines": there, "leases": {str(each["lease"]): each["state"] for each in held}}
        await asyncio.sleep(_LOOK_S)


async def attempt(given: argparse.Namespace) -> dict[str, Any]:
    """One run."""
    chance, did = random.Random(given.seed), Counter[str]()
    with tempfile.TemporaryDirectory(prefix="kettle-elastic-") as directory:
        async with throwaway_pool(Path(directory), settings=settings(given.lost)) as pool:
            while not await wanted(pool, 3):
                await asyncio.sleep(_LOOK_S)
            breaking = asyncio.create_task(break_all(pool, given.victims.split(","), given.every, did))
            changing = asyncio.create_task(change(pool, chance, did))
            try:
                done, _ = await asyncio.wait(
                    {breaking, changing}, timeout=given.seconds, return_when=asyncio.FIRST_COMPLETED
                )
                for each in done:
                    each.result()  # what ends by itself has failed
            finally:
                breaking.cancel()
                changing.cancel()
                await asyncio.gather(breaking, changing, return_exceptions=True)
            some, none = await settled(pool, 4), await settled(pool, 0)
            audit = await pool.log_check()
            return {
                "did": dict(did),
                "four wanted": some,
                "none wanted": none,
                "log": "clean" if audit.clean else audit.said,
            }


def main() -> int:
    """Run it, and print what came of it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=1800.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--every", type=float, default=5.0, help="seconds between two kills")
    parser.add_argument(
        "--lost", type=float, default=0.2, help="part of the answers of the provider that are lost"
    )
    parser.add_argument("--victims", default=",".join(VICTIMS))
    found = asyncio.run(attempt(parser.parse_args()))
    json.dump(found, sys.stdout, indent=1)
    sys.stdout.write("\n")
    if found["log"] != "clean" or "machines" in found["four wanted"] or "machines" in found["none wanted"]:
        say("something is wrong")
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
