"""
How fast DAGs run: JSON on standard output, each figure with its median and spread.

    python -m tests.performance.workflow_runs chain --nodes 100
    python -m tests.performance.workflow_runs fan-out --nodes 1000 3000
    python -m tests.performance.workflow_runs restart --nodes 100000
    python -m tests.performance.workflow_runs tasks --nodes 100

`chain` and `fan-out` run `/bin/true` on a pool of their own, from `condor_submit_dag` to the end of the DAG job.  `fan-out` runs as
many jobs of one cluster on the same pool by turns, without and with a job event log (which nodes have, too): its rate is a share of
theirs, and so is what a node costs of processor time, by service, on a machine that has other work, too.  `restart` is processor
time: to read the events of a workflow that is half done, and decide again.  `tasks` is one job with so many tasks, one after the
other, beside a job with one.  What is demanded stands beside its figure.
"""

import argparse
import asyncio
import json
import sys
import tempfile
import time
from collections.abc import Awaitable
from pathlib import Path
from typing import Any

from tests.performance.jobs import sentence, spent

from kettle.client import select
from kettle.testing.commands.running import run
from kettle.testing.measurements import accounted, barred, say, summary
from kettle.testing.throwaway_pool import ThrowawayPool, throwaway_pool
from kettle_services.condor import launchers
from kettle_services.dagman.domain.decisions import react
from kettle_services.dagman.domain.workflow import Workflow
from kettle_wire.codes import NodeJobKind
from kettle_wire.events import WorkflowEvent, WorkflowStarted, decode, encode
from kettle_wire.events.workflow import NodeJobFact, NodeJobsSeen, NodesChanged
from kettle_wire.workflows import Plan, WorkflowOptions, packed

TRUE = "executable = /bin/true\ntransfer_executable = false\nrequest_memory = 16\nrequest_disk = 1024\n"
TASKS = "executable = tasks\ntransfer_executable = false\nshould_transfer_files = yes\nrequest_memory = 16\nrequest_disk = 1024\n"
AT_ONCE = 500
AT_MOST = {"chain": {"dag_s": 6.0}, "restart": {"restart_cpu_s": 3.0}}
AT_LEAST = {"fan-out": {"share": 0.95}, "restart": {"changes": 50_000.0}}
"""
What is demanded of 100 nodes in a chain, 10,000 beside each other, and 100,000 half done; a record of more changes than 50,000 is
what engines refuse that keep a workflow's record as one.
"""


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
        "decided_nodes_per_cpu_s": nodes // 2 / decided,
        "restart_cpu_s": time.process_time() - began,
        "bytes": sum(map(len, data)),
        "changes": sum(_changes(event) for event in events),
    }


def _changes(event: WorkflowEvent) -> int:
    """How many changes of nodes and their jobs it records."""
    match event:
        case NodesChanged():
            return len(event.changes)
        case NodeJobsSeen():
            return len(event.facts)
        case _:
            return 1


async def on_a_pool(shape: str, sizes: list[int], rounds: int) -> dict[str, Any]:
    """Run it so many times, for a fan-out by turns with as many plain jobs."""
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(prefix="kettle-workflows-") as directory:
        place = Path(directory)
        commands = launchers.install(place / "commands")
        settings = {"startd": {"job_account": "own"}}
        with accounted() as group:
            async with throwaway_pool(place / "pool", cpus=8, settings=settings) as pool:
                measured = _Measured(pool, place, commands, group)
                for nodes in sizes:
                    say(f"{shape} of {nodes} nodes")
                    one = {"chain": measured.chain, "fan-out": measured.fan_out, "tasks": measured.tasks}[
                        shape
                    ]
                    runs = [await one(nodes) for _ in range(rounds)]
                    found[f"{nodes}_nodes"] = summaries(shape, runs)
    return found


def summaries(shape: str, runs: list[dict[str, float]]) -> dict[str, Any]:
    """Each figure of several rounds, with what is demanded of it."""
    figures = {name: summary((run[name] for run in runs), 3) for name in runs[0]}
    return barred(figures, at_most=AT_MOST.get(shape, {}), at_least=AT_LEAST.get(shape, {}))


class _Measured:
    """Runs on one pool; `group`: where the processor time of all of it is counted."""

    def __init__(self, pool: ThrowawayPool, place: Path, commands: Path, group: Path | None) -> None:
        self._pool = pool
        self._place = place
        self._commands = commands
        self._group = group

    async def chain(self, nodes: int) -> dict[str, float]:
        """Each node waits for the one before it."""
        edges = [f"PARENT n{number} CHILD n{number + 1}" for number in range(nodes - 1)]
        return {"dag_s": await _dag(self._pool, self._place, self._commands, [*_nodes(nodes), *edges])}

    async def fan_out(self, nodes: int) -> dict[str, float]:
        """No node waits for another one."""
        plain, plain_ms = await self._cost(nodes, _plain(self._pool, nodes, ""))
        took, dag_ms = await self._cost(nodes, _dag(self._pool, self._place, self._commands, _nodes(nodes)))
        log = f"log = {self._place}/plain.log\n"
        logged, logged_ms = await self._cost(nodes, _plain(self._pool, nodes, log))
        return {
            "dag_s": took,
            "nodes_per_s": nodes / took,
            "plain_s": plain,
            "share": plain / took,
            "share_of_logged": logged / took,
            "processor_ms_per_node": dag_ms,
            "processor_ms_per_plain_job": plain_ms,
            "processor_ms_per_logged_job": logged_ms,
        }

    async def tasks(self, tasks: int) -> dict[str, float]:
        """They are of one job, each a process of its own."""
        one = await _tasks(self._pool, 1)
        all_of_them = await _tasks(self._pool, tasks)
        return {"job_s": all_of_them, "ms_per_task": 1000 * (all_of_them - one) / (tasks - 1)}

    async def _cost(self, jobs: int, run: Awaitable[float]) -> tuple[float, float]:
        """Seconds of a run, and milliseconds of processor time for each of its jobs."""
        before = spent(self._pool, self._group)
        took = await run
        after = spent(self._pool, self._group)
        each = {name: 1000 * (after[name] - before.get(name, 0.0)) / jobs for name in after}
        say(sentence(jobs / took, each))
        return took, sum(each.values())


def _nodes(count: int) -> list[str]:
    return [f"JOB n{number} true.sub" for number in range(count)]


async def _dag(pool: ThrowawayPool, place: Path, commands: Path, lines: list[str]) -> float:
    work = Path(tempfile.mkdtemp(dir=place))
    (work / "true.sub").write_text(f"{TRUE}queue\n")
    (work / "x.dag").write_text("".join(f"{line}\n" for line in lines))
    environ = {**pool.environ, "KETTLE_HOME": str(pool.home), "PATH": f"{commands}:/usr/bin:/bin"}
    began = time.monotonic()
    said = await run([str(commands / "condor_submit_dag"), "x.dag"], work, environ)
    assert said.status == 0, said
    cluster = int(said.out.split("submitted to cluster ")[1].split(".")[0])
    await pool.client.wait(select(cluster))
    assert (await pool.client.workflows.show(cluster)).exit_code == 0
    return time.monotonic() - began


async def _plain(pool: ThrowawayPool, jobs: int, more: str) -> float:
    began = time.monotonic()
    submitted = await pool.client.submit(f"{TRUE}{more}queue {jobs}\n")
    await pool.client.wait(select(submitted.cluster))
    return time.monotonic() - began


async def _tasks(pool: ThrowawayPool, tasks: int) -> float:
    listed = json.dumps({"tasks": [{"cmd": ["/bin/true"]}] * tasks})
    began = time.monotonic()
    submitted = await pool.client.submit(f"{TASKS}+KettleTasks = {json.dumps(listed)}\nqueue\n")
    await pool.client.wait(select(submitted.cluster))
    return time.monotonic() - began


def main() -> int:
    """Run one, and print what came of it."""
    parser = argparse.ArgumentParser()
    parser.add_argument("shape", choices=("chain", "fan-out", "restart", "tasks"))
    parser.add_argument("--nodes", type=int, nargs="+", default=[100])
    parser.add_argument("--rounds", type=int, default=3)
    said = parser.parse_args()
    if said.shape == "restart":
        found = {
            f"{nodes}_nodes": summaries("restart", [restart(nodes) for _ in range(said.rounds)])
            for nodes in said.nodes
        }
    else:
        found = asyncio.run(on_a_pool(said.shape, said.nodes, said.rounds))
    json.dump(found, sys.stdout)
    sys.stdout.write("\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
