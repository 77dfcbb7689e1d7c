"""`kettle dag show` and `kettle dag why`: workflows that run, and those that have."""

import argparse
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import PurePath

from kettle.client import Client, JobId, select
from kettle.client.explanations.job_state import answer
from kettle.client.explanations.many_jobs import answers, heading
from kettle.dag.submission.command_line import OptionError, of_dagman
from kettle.jobs.quoting import QuotingError, split_v2
from kettle_services.cli.options import with_pool
from kettle_services.cli.output.screen import Screen
from kettle_wire.codes import DagStatus, NodeState, Universe
from kettle_wire.commands.dagman import NodeExplained, WorkflowState

_MOST = 40
"""How many nodes people are shown that need no look."""
_NEED_A_LOOK = frozenset(
    {NodeState.FAILED, NodeState.RUNNING, NodeState.PRE, NodeState.POST, NodeState.QUEUED}
)


def show(arguments: argparse.Namespace, screen: Screen) -> int:
    """How far a workflow is."""
    state = with_pool(arguments, lambda pool: pool.workflows.show(arguments.workflow, nodes=True))
    states = [NodeState(byte) for byte in state.states]
    if screen.as_json:
        nodes = [
            {"node": name, "state": each.name.lower()} for name, each in zip(state.names, states, strict=True)
        ]
        screen.json({**_figures(state, states), "nodes": nodes})
        return 0
    for line in _told(state, states):
        screen.say(line)
    shown = [pair for pair in zip(state.names, states, strict=True) if pair[1] in _NEED_A_LOOK]
    shown += [pair for pair in zip(state.names, states, strict=True) if pair[1] not in _NEED_A_LOOK][
        : max(0, _MOST - len(shown))
    ]
    screen.table(("NODE", "STATE"), [(name, each.name.lower()) for name, each in shown])
    if len(shown) < len(states):
        screen.say(f"{len(states) - len(shown)} nodes more; --json has all.")
    return 0


def _counts(states: Sequence[NodeState]) -> dict[str, int]:
    """How many nodes are in each state, by the words that the table has for them."""
    counted = Counter(states)
    return {state.name.lower(): counted[state] for state in NodeState if counted[state]}


def _figures(state: WorkflowState, states: Sequence[NodeState]) -> dict[str, object]:
    return {
        "workflow": state.workflow,
        "owner": state.owner,
        "files": state.files,
        "counts": _counts(states),
        "reused": state.reused,
        "jobs": {"idle": state.idle, "running": state.running, "held": state.held},
        "halted": state.halted,
        "halted_because": state.halted_because,
        "status": None if state.status is None else DagStatus(state.status).name.lower(),
        "exit_code": state.exit_code,
    }


def _told(state: WorkflowState, states: Sequence[NodeState]) -> Iterator[str]:
    files = ", ".join(state.files)
    if state.status is not None:
        yield f"Workflow {state.workflow} ({files}) of {state.owner} is over: {DagStatus(state.status).name.lower()}, exit code {state.exit_code}."
    elif state.halted:
        because = f": {state.halted_because}" if state.halted_because else ""
        yield f"Workflow {state.workflow} ({files}) of {state.owner} is halted{because}."
    else:
        yield f"Workflow {state.workflow} ({files}) of {state.owner} runs."
    yield f"Nodes: {', '.join(f'{count} {name}' for name, count in _counts(states).items())}."
    if state.reused:
        yield f"Not run, because their results were there: {state.reused} (kettle dag why {state.workflow} NODE says from where)."
    yield f"Jobs of nodes: {state.idle} idle, {state.running} running, {state.held} held."


def why(arguments: argparse.Namespace, screen: Screen) -> int:
    """Why a node is where it is, and why its job is."""
    explained, of_job = with_pool(
        arguments, lambda pool: _explained(pool, arguments.workflow, arguments.node)
    )
    if screen.as_json:
        screen.json(
            {
                "node": explained.node,
                "state": NodeState(explained.state).name.lower(),
                "attempt": explained.attempt,
                "sentences": [*explained.sentences, *of_job],
            }
        )
        return 0
    screen.say(f"Node {explained.node} is {NodeState(explained.state).name.lower()}.")
    for sentence in [*explained.sentences, *of_job]:
        screen.say(sentence)
    return 0


async def _explained(pool: Client, workflow: int, node: str) -> tuple[NodeExplained, list[str]]:
    explained = await pool.workflows.explain(workflow, node)
    if not explained.cluster:
        return explained, []
    reports = await pool.why_jobs(select(explained.cluster))
    now = time.time()
    if not reports.groups and not reports.unmade:  # they have just ended
        return explained, list(answer(await pool.why(JobId(explained.cluster, 0)), now=now).sentences)
    told = answers(reports, now=now)
    sentences = [
        sentence
        for group in told.groups
        for sentence in (heading(group), *group.answer.sentences[1 if group.jobs == 1 else 0 :])
    ]
    return explained, [*sentences, *told.others]


async def workflow_called(pool: Client, text: str) -> tuple[int, str] | None:
    """
    The workflow and the node that `DAG.NODE` names, of the DAG jobs in the queue that are one's own; the newest of several.

    None: it names none.
    """
    mine = [pool.pool.user] if pool.pool.user else []
    dag_jobs = select(owners=mine, constraint=f"JobUniverse == {int(Universe.SCHEDULER)}")
    for ad in reversed(await pool.jobs(dag_jobs, projection=["ClusterId", "Arguments"])):
        try:
            options = of_dagman(split_v2(str(ad.get("Arguments", ""))))
        except (OptionError, QuotingError):
            continue  # a job of this universe that is no DAG job
        for name in options.dag_files[:1]:
            dag = f"{PurePath(name).name}."
            cluster = ad.get("ClusterId")
            if text.startswith(dag) and isinstance(cluster, int):
                return cluster, text.removeprefix(dag)
    return None
