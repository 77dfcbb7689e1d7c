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

from kettle.client.errors import ClientError
from kettle.client.jobs.submission import prepare_alike
from kettle.dag.structure import Dag, Node, NodeKind
from kettle.dag.submission.options import SubmitDagOptions
from kettle.dag.submission.preparing import PreparationError, Site, prepare_within
from kettle.submit.errors import SubmitError
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
    priorities: Sequence[int] = ()
    """By node the priority of its jobs, unless it has one of its own; empty: none has."""


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


class _Description(msgspec.Struct, frozen=True):
    """What nodes have in common whose jobs are worked out together."""

    text: str
    name: str
    """What it is called in refusals."""
    directory: Path
    given: frozenset[str]
    """The names of the macros that it is given."""


def node_submissions(
    source: NodesInCommon,
    steps: Sequence[NodeStep],
    *,
    failed: int,
    status: int,
    environ: Mapping[str, str] = os.environ,
) -> "dict[NodeStep, Submission | SubmitError | ClientError]":
    """
    The jobs of many nodes' attempts, or why there are none; `failed` nodes and the status are macros of every description.

    It reads and writes files. A file is read once for all of these nodes, as it is now.
    """
    texts: dict[Path, str] = {}
    found: dict[NodeStep, Submission | SubmitError | ClientError] = {}
    alike: dict[_Description, dict[NodeStep, dict[str, str]]] = {}
    for step in steps:
        given = _given(source, step, failed=failed, status=status)
        try:
            description = _described(source, step, given, texts)
        except ClientError as error:
            found[step] = error
        else:
            alike.setdefault(description, {})[step] = given
    for description, nodes in alike.items():
        prepared = _prepared(description, list(nodes.values()), environ)
        for step, submission in zip(nodes, prepared, strict=True):
            found[step] = (
                submission if isinstance(submission, Exception) else _noted(source, step, submission)
            )
    return found


def _given(source: NodesInCommon, step: NodeStep, *, failed: int, status: int) -> dict[str, str]:
    """The macros that stand before the first line of a node's description."""
    node = source.dag.nodes[step.node]
    own = node.priority or (source.priorities[step.node] if source.priorities else 0)
    priority = source.options.priority + own
    return {
        "JOB": node.name,
        "RETRY": str(step.attempt),
        "FAILED_COUNT": str(failed),
        "DAG_STATUS": str(status),
        "DAG_PARENT_NAMES": source.parents[step.node],
        "DAGManJobId": str(source.workflow),
        **({"priority": str(priority)} if priority else {}),
        **{each.name: each.value for each in node.variables if not each.is_appended},
    }


def _described(
    source: NodesInCommon, step: NodeStep, given: Mapping[str, str], texts: dict[Path, str]
) -> _Description:
    """Raises ClientError: it cannot be read."""
    node = source.dag.nodes[step.node]
    directory = directory_of(node, source.directory)
    if node.kind is NodeKind.SUBDAG:
        _describe_sub_dag(source, node, is_retry=step.attempt > 0)
    text, name = _text(node, directory, texts)
    appended = [f"{each.name} = {each.value}" for each in node.variables if each.is_appended]
    return _Description(_with_lines(text, appended), name, directory, frozenset(given))


def _prepared(
    description: _Description, given: list[dict[str, str]], environ: Mapping[str, str]
) -> "list[Submission | SubmitError | ClientError]":
    """What each of them comes to; if one is refused it is looked for by working out each alone."""
    try:
        return [
            *prepare_alike(
                description.text,
                given,
                cwd=description.directory,
                environ=environ,
                source=description.name,
                submit_method=METHOD,
            )
        ]
    except (SubmitError, ClientError) as error:
        if len(given) == 1:
            return [error]
        return [alone for each in given for alone in _prepared(description, [each], environ)]


def _noted(source: NodesInCommon, step: NodeStep, submission: "Submission") -> "Submission":
    """The jobs with what says where they belong."""
    name = source.dag.nodes[step.node].name
    note = {"SubmitEventNotes": f"DAG Node: {name}", "DAGManNodesLog": str(source.nodes_log)}
    return msgspec.structs.replace(submission, ad={**submission.ad, **note, **attributes_of(source, step)})


def _describe_sub_dag(source: NodesInCommon, node: Node, *, is_retry: bool) -> None:
    """Write the description of a DAG within; only now, because the nodes before may have written its file."""
    try:
        prepare_within(node, source.options, source.site, is_retry=is_retry)
    except PreparationError as error:
        raise ClientError(
            f"the DAG {node.submit} of node {node.name} cannot be submitted: {error}"
        ) from error


def _text(node: Node, directory: Path, texts: dict[Path, str]) -> tuple[str, str]:
    """
    The description of a node, and what it is called in refusals; `texts` are files that were read before.
    """
    if node.description is not None:
        return node.description, f"description of node {node.name}"
    name = f"{node.submit}.condor.sub" if node.kind is NodeKind.SUBDAG else node.submit
    path = directory / name
    if path not in texts:
        try:
            texts[path] = path.read_text(encoding="utf-8", errors="surrogateescape")
        except OSError as error:
            raise ClientError(
                f"cannot read the submit file {name} of node {node.name}: {error.strerror}"
            ) from error
    return texts[path], name


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
