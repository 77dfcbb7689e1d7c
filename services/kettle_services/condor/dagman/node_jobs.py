"""
The jobs of nodes: read from their submit descriptions when a node is submitted and not before, because a PRE script may have
written them.
"""

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from kettle.client.jobs.submission import prepare
from kettle.dag.structure import Dag, Node, NodeKind
from kettle.dag.submission.options import SubmitDagOptions
from kettle.dag.submission.preparing import PreparationError, Site, prepare_within
from kettle_services.condor.dagman.node_source import STEP, step_text
from kettle_wire.events.workflow import NodeStep

if TYPE_CHECKING:
    from kettle.submit import Submission

METHOD: Final = 1
"""JobSubmitMethod of what DAGMan submits."""
_QUEUE: Final = re.compile(r"^[ \t]*queue\b(?![ \t]*=)", re.IGNORECASE | re.MULTILINE)


class NodesInCommon(msgspec.Struct, frozen=True):
    """What the jobs of all nodes have in common."""

    dag: Dag
    workflow: int
    batch: str
    """The name of the workflow in the queue, which is that of its DAG job."""
    directory: Path
    nodes_log: Path
    parents: Sequence[str] | Mapping[int, str]
    """By node the names of its parents, with commas between."""
    options: SubmitDagOptions
    """What was said when the DAG was submitted; some of it holds for the DAGs within, too."""
    site: Site
    """Where the DAGs within are submitted."""


def directory_of(node: Node, base: Path) -> Path:
    """Where the files of a node are looked for."""
    return base / node.directory if node.directory else base


def attributes_of(source: NodesInCommon, step: NodeStep) -> dict[str, str | int]:
    """What says in the ad of each job of a node, scripts too, where it belongs."""
    node = source.dag.nodes[step.node]
    return {
        "DAGManJobId": source.workflow,
        "DAGNodeName": node.name,
        "JobBatchName": source.batch,
        "DAGParentNodeNames": source.parents[step.node],
        "DAGManNodeRetry": step.attempt,
        "JobSubmitMethod": METHOD,
        STEP: step_text(source.workflow, step),
    }


def node_submission(
    source: NodesInCommon,
    step: NodeStep,
    *,
    failed: int,
    status: int,
    environ: Mapping[str, str] = os.environ,
) -> "Submission":
    """
    The jobs of a node's attempt; `failed` nodes and the status are macros of every description.

    Raises:
        SubmitError: the description is refused.
        ClientError: it cannot be read.
    """
    node = source.dag.nodes[step.node]
    directory = directory_of(node, source.directory)
    before = {each.name: each.value for each in node.variables if not each.is_appended}
    given = {
        "JOB": node.name,
        "RETRY": str(step.attempt),
        "FAILED_COUNT": str(failed),
        "DAG_STATUS": str(status),
        "DAG_PARENT_NAMES": source.parents[step.node],
        "DAGManJobId": str(source.workflow),
        **({"priority": str(node.priority)} if node.priority else {}),
        **before,
    }
    if node.kind is NodeKind.SUBDAG:
        _describe_sub_dag(source, node, is_retry=step.attempt > 0)
    text, name = _text(node, directory)
    prepared = prepare(
        _with_lines(text, [f"{each.name} = {each.value}" for each in node.variables if each.is_appended]),
        given=given,
        cwd=directory,
        environ=environ,
        source=name,
        submit_method=METHOD,
        tolerant=True,  # not every description uses every macro
    )
    note = {"SubmitEventNotes": f"DAG Node: {node.name}", "DAGManNodesLog": str(source.nodes_log)}
    return msgspec.structs.replace(prepared, ad={**prepared.ad, **note, **attributes_of(source, step)})


def _describe_sub_dag(source: NodesInCommon, node: Node, *, is_retry: bool) -> None:
    """Write the description of a DAG within; only now, because the nodes before may have written its file."""
    from kettle.client.errors import ClientError

    try:
        prepare_within(node, source.options, source.site, is_retry=is_retry)
    except PreparationError as error:
        raise ClientError(
            f"the DAG {node.submit} of node {node.name} cannot be submitted: {error}"
        ) from error


def _text(node: Node, directory: Path) -> tuple[str, str]:
    """The description of a node, and what it is called in refusals."""
    from kettle.client.errors import ClientError

    if node.description is not None:
        return node.description, f"description of node {node.name}"
    name = f"{node.submit}.condor.sub" if node.kind is NodeKind.SUBDAG else node.submit
    try:
        return (directory / name).read_text(encoding="utf-8", errors="surrogateescape"), name
    except OSError as error:
        raise ClientError(
            f"cannot read the submit file {name} of node {node.name}: {error.strerror}"
        ) from error


def _with_lines(text: str, lines: Sequence[str]) -> str:
    """
    The description with lines that count more than its own, before its first queue statement; it has one then.
    """
    first = _QUEUE.search(text)
    if first is None:
        text = f"{text.rstrip()}\nqueue\n"
        first = _QUEUE.search(text)
        assert first is not None, "a queue statement was added"
    added = "".join(f"{line}\n" for line in lines)
    return text[: first.start()] + added + text[first.start() :]
