"""
A DAG of many nodes with scripts, while everything that has to do with it is killed: its result as JSON on standard output.

    python -m tests.chaos.dags --nodes 1000 --every 3
    python -m tests.chaos.dags --nodes 200 --victims dagman,hands --points

Each node has a PRE script, a job and a POST script, which count their runs in a file.  The victims are killed in turn, each as soon
as the one before is back; `hands` is the process of the DAG job.  A script whose starter is killed begins again, as any
job: so starters are no victims here.

The exit status is 1 if something ran twice or not at all, if a step was submitted twice, or if the log is not clean.
"""

import argparse
import asyncio
import json
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any, Final

from kettle.client import ClientError, select
from kettle.faults import POINTS
from kettle.pool import processes
from kettle.testing.commands.running import run
from kettle.testing.measurements import say
from kettle.testing.throwaway_pool import ThrowawayPool, throwaway_pool
from kettle_services.condor import launchers
from kettle_wire.commands.queue import Select

HANDS: Final = "hands"
VICTIMS: Final = (
    "dagman", HANDS, "schedd", "shadow", "negotiator", "collector", "accounting", "gateway", "startd", "nats", "postgres",
)  # fmt: skip
STEPS: Final = ("append", "relay", "working_set")
NODE: Final = """\
executable = /bin/sh
arguments = "-c 'echo $(JOB) job >> {runs}'"
transfer_executable = false
request_memory = 16
request_disk = 1024
queue
"""


def dag(nodes: int, chance: random.Random) -> str:
    """Each node has one parent among those before it; the first ones have none."""
    lines: list[str] = []
    for number in range(nodes):
        name = f"n{number}"
        lines += [f"JOB {name} node.sub", f"SCRIPT PRE {name} count.sh {name} pre"]
        lines.append(f"SCRIPT POST {name} count.sh {name} post")
        if number >= 10:
            lines.append(f"PARENT n{chance.randrange(number)} CHILD {name}")
    return "".join(f"{line}\n" for line in lines)


def hands(pool: ThrowawayPool) -> list[int]:
    """The processes of DAG jobs."""
    found = processes.of_pool(pool.state.pool_id, pool.home / "execute")
    return [each.pid for each in found if "condor_dagman" in each.command]


async def break_all(pool: ThrowawayPool, victims: list[str], every: float, killed: Counter[str]) -> None:
    """Kill one after the other; never returns."""
    while True:
        for victim in victims:
            await asyncio.sleep(every)
            if victim == HANDS:
                for pid in await asyncio.to_thread(hands, pool):
                    os.kill(pid, signal.SIGKILL)
                    killed[victim] += 1
            elif pid := pool.kill(victim):
                killed[victim] += 1
                await pool.restarted(victim, after=pid)


async def ended(pool: ThrowawayPool, cluster: int) -> None:
    """
    Wait for the end of the DAG job, also when those who would tell are away for longer than a client is patient.
    """
    while True:
        try:
            await pool.client.wait(select(cluster))
        except ClientError as error:
            say(f"asked again, because of: {error}")
        else:
            return


def judged(nodes: int, lines: list[str], steps: list[str]) -> dict[str, Any]:
    """What ran and was submitted not exactly once."""
    runs, submitted = Counter(lines), Counter(steps)
    wanted = {f"n{number} {part}" for number in range(nodes) for part in ("pre", "job", "post")}
    return {
        "missing": sorted(wanted - runs.keys())[:20],
        "unknown": sorted(runs.keys() - wanted)[:20],
        "twice": sorted(name for name, count in runs.items() if count > 1)[:20],
        "submitted_twice": sorted(step for step, count in submitted.items() if count > 1)[:20],
        "submitted": len(steps),
    }


async def attempt(given: argparse.Namespace) -> dict[str, Any]:
    """One run."""
    chance = random.Random(given.seed)
    with tempfile.TemporaryDirectory(prefix="kettle-dags-") as directory:
        place = Path(directory)
        work, done = place / "work", place / "done"
        work.mkdir()
        done.mkdir()
        points = ",".join(f"{name}=kill@3" for name in POINTS if name.partition(".")[0] in STEPS)
        environment = {"dagman": {"KETTLE_FAULT_POINTS": points, "KETTLE_FAULT_ONCE": str(done)}}
        settings: dict[str, Any] = {
            "startd": {"job_account": "own"},
            "master": {"environment": environment if given.points else {}},
        }
        async with throwaway_pool(place, cpus=8, settings=settings) as pool:
            commands = launchers.install(place / "commands")
            environ = {**pool.environ, "KETTLE_HOME": str(pool.home), "PATH": f"{commands}:/usr/bin:/bin"}
            (work / "node.sub").write_text(NODE.format(runs=work / "runs"))
            (work / "count.sh").write_text(f'#!/bin/sh\necho "$1 $2" >> {work}/runs\n')
            (work / "count.sh").chmod(0o755)
            (work / "x.dag").write_text(dag(given.nodes, chance))
            began = time.monotonic()
            said = await run([str(commands / "condor_submit_dag"), "x.dag"], work, environ)
            assert said.status == 0, said
            cluster = int(said.out.split("submitted to cluster ")[1].split(".")[0])
            killed: Counter[str] = Counter()
            breaking = asyncio.create_task(break_all(pool, given.victims.split(","), given.every, killed))
            try:
                async with asyncio.timeout(given.longest):
                    await ended(pool, cluster)
            finally:
                breaking.cancel()
            seconds = time.monotonic() - began
            mine = Select(constraint=f"DAGManJobId =?= {cluster}")
            steps = [str(ad["KettleWorkflowStep"]) for ad in await pool.client.history(mine, limit=0)]
            audit = await pool.log_check()
            found = judged(given.nodes, (work / "runs").read_text().splitlines(), steps)
            shown = await pool.client.workflows.show(cluster)
            return {
                "seconds": round(seconds, 1),
                "exit_code": shown.exit_code,
                "counts": shown.counts,
                "killed": dict(killed),
                "died_at": sorted(path.name for path in done.iterdir()),
                "log": "clean" if audit.clean else audit.said,
                **found,
            }


def wrong(found: dict[str, Any]) -> dict[str, Any]:
    """Of what came of a run that which should be otherwise."""
    faults = {name: found[name] for name in ("missing", "unknown", "twice", "submitted_twice") if found[name]}
    if found["exit_code"]:
        faults["exit_code"] = found["exit_code"]
    if found["log"] != "clean":
        faults["log"] = found["log"]
    return faults


def arguments(*words: str) -> argparse.Namespace:
    """What is said on the command line; without words what this process was started with."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--every", type=float, default=3.0, help="seconds between two kills")
    parser.add_argument("--longest", type=float, default=900.0, help="seconds after which it is given up")
    parser.add_argument("--victims", default=",".join(VICTIMS))
    parser.add_argument("--points", action="store_true", help="the dagman dies at each of its steps, too")
    return parser.parse_args(words or None)


def main() -> int:
    """Run it, and print what came of it."""
    found = asyncio.run(attempt(arguments()))
    json.dump(found, sys.stdout, indent=1)
    sys.stdout.write("\n")
    if wrong(found):
        say("something is wrong")
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
