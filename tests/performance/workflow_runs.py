"""
How fast DAGs run: JSON on standard output.

    python -m tests.performance.workflow_runs chain --nodes 100
    python -m tests.performance.workflow_runs fan-out --nodes 1000
    python -m tests.performance.workflow_runs restart --nodes 100000

`chain` and `fan-out` run `/bin/true` on a pool of their own; `fan-out` runs as many jobs of one cluster on the same pool, too, of
which its rate is a share.  `restart` is processor time: to read the events of a workflow that is half done, and decide again.
"""

import argparse
import asyncio
import json
import sys
import tempfile
import time
from pathlib import Path

from kettle.client import select
from kettle.testing.commands.running import run
from kettle.testing.throwaway_pool import ThrowawayPool, throwaway_pool
from kettle_services.condor import launchers
from kettle_services.dagman.domain.decisions import react
from kettle_services.dagman.domain.workflow import Workflow
from kettle_wire.codes import NodeJobKind
from kettle_wire.events import WorkflowEvent, WorkflowStarted, decode, encode
from kettle_wire.events.workflow import NodeJobFact, NodeJobsSeen
from kettle_wire.workflows import Plan, WorkflowOptions, packed

TRUE = "executable = /bin/true\ntransfer_executable = false\nrequest_memory = 16\nrequest_disk = 1024\n"
AT_ONCE = 500


def restart(nodes: int) -> dict[str, float]:
    """Half of the nodes have run."""
    plan = Plan(names=[f"node{number}" for number in range(nodes)], starts=bytes(4 * (nodes + 1)))
    started = WorkflowStarted(
        workflow=1,
        owner="ann",
        files=[],
        directory="",
        digest="",
        plan=packed(plan),
        options=WorkflowOptions(max_idle=0),
        followed=0,
    )
    workflow = Workflow(started)
    events: list[WorkflowEvent] = [started, *react(workflow, [], 0.0)]
    began = time.process_time()
    for number in range(nodes // 2 // AT_ONCE):
        facts = [
            NodeJobFact(step, number * AT_ONCE + place, proc, kind, proc + 2)
            for place, step in enumerate(list(workflow.orders)[:AT_ONCE], 1)
            for proc, kind in ((-1, NodeJobKind.SUBMITTED), (0, NodeJobKind.STARTED))
        ]
        facts += [NodeJobFact(each.step, each.cluster, 0, NodeJobKind.COMPLETED) for each in facts[::2]]
        events += react(workflow, [NodeJobsSeen(frame=number + 1, facts=facts)], 0.0)
    decided = time.process_time() - began
    data = [encode(event) for event in events]
    began = time.process_time()
    read = Workflow(started)
    for each in data[1:]:
        event = decode(each)
        assert isinstance(event, WorkflowEvent)
        read.apply(event)
    react(read, [], 0.0)
    return {
        "nodes": nodes,
        "decided_nodes_per_cpu_s": nodes // 2 / decided,
        "restart_cpu_s": time.process_time() - began,
        "bytes": sum(map(len, data)),
    }


async def on_a_pool(shape: str, nodes: int) -> dict[str, float]:
    """Run it, and for a fan-out as many plain jobs."""
    with tempfile.TemporaryDirectory(prefix="kettle-workflows-") as directory:
        place = Path(directory)
        commands = launchers.install(place / "commands")
        settings = {"startd": {"job_account": "own"}}
        async with throwaway_pool(place / "pool", cpus=8, settings=settings) as pool:
            lines = [f"JOB n{number} true.sub" for number in range(nodes)]
            if shape == "chain":
                lines += [f"PARENT n{number} CHILD n{number + 1}" for number in range(nodes - 1)]
            took = await _dag(pool, place, commands, lines)
            found = {"nodes": nodes, "dag_s": took, "nodes_per_s": nodes / took}
            if shape == "fan-out":
                plain = await _plain(pool, nodes)
                found |= {"plain_s": plain, "share": plain / took}
            return found


async def _dag(pool: ThrowawayPool, place: Path, commands: Path, lines: list[str]) -> float:
    (place / "true.sub").write_text(f"{TRUE}queue\n")
    (place / "x.dag").write_text("".join(f"{line}\n" for line in lines))
    environ = {**pool.environ, "KETTLE_HOME": str(pool.home), "PATH": f"{commands}:/usr/bin:/bin"}
    began = time.monotonic()
    said = await run([str(commands / "condor_submit_dag"), "x.dag"], place, environ)
    assert said.status == 0, said
    cluster = int(said.out.split("submitted to cluster ")[1].split(".")[0])
    await pool.client.wait(select(cluster))
    assert (await pool.client.workflows.show(cluster)).exit_code == 0
    return time.monotonic() - began


async def _plain(pool: ThrowawayPool, jobs: int) -> float:
    began = time.monotonic()
    submitted = await pool.client.submit(f"{TRUE}queue {jobs}\n")
    await pool.client.wait(select(submitted.cluster))
    return time.monotonic() - began


def main() -> int:
    """Run one, and print what came of it."""
    parser = argparse.ArgumentParser()
    parser.add_argument("shape", choices=("chain", "fan-out", "restart"))
    parser.add_argument("--nodes", type=int, default=100)
    said = parser.parse_args()
    found = restart(said.nodes) if said.shape == "restart" else asyncio.run(on_a_pool(said.shape, said.nodes))
    json.dump({key: round(value, 3) for key, value in found.items()}, sys.stdout)
    sys.stdout.write("\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
