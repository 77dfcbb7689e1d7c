"""
What the nodes of a DAG have left, so that a later run of it leaves those out that are the same.

It reads files, in threads. What is known of earlier runs comes from the events of their workflows.
"""

import asyncio
import hashlib
import logging
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kettle.client import Client
from kettle.client.errors import ClientError
from kettle.dag import memo
from kettle.dag.memo import Ran
from kettle.dag.structure import Dag
from kettle_services.condor.dagman.earlier_runs import earlier_runs
from kettle_services.condor.dagman.node_jobs import NodesInCommon
from kettle_services.condor.dagman.node_source import step_text
from kettle_wire.ads.types import Ad
from kettle_wire.commands.dagman import RememberNodes
from kettle_wire.events.workflow import (
    NodeMemory,
    NodeReuse,
    NodesRemembered,
    NodesReused,
    NodeStep,
    WorkflowEvent,
    WorkflowStarted,
)
from kettle_wire.workflows import unpacked

if TYPE_CHECKING:
    from kettle.submit import Submission

_log: Final = logging.getLogger(__name__)


class NodeMemo:
    """
    What is known of nodes that have run, and what those of this run leave.

    Of jobs that an earlier process has submitted it knows nothing: their nodes are run again the next time.
    """

    def __init__(self, dag: Dag, workflow: int, ran: Mapping[str, Ran]) -> None:
        """`ran`: by their keys."""
        self._dag = dag
        self._workflow = workflow
        self._ran = ran
        self._keys: dict[NodeStep, tuple[str, list[str]]] = {}
        """Of jobs that this process has submitted, with the paths of what they leave."""

    @classmethod
    async def of_earlier_runs(cls, client: Client, common: NodesInCommon) -> "NodeMemo":
        """With what the last runs of the same DAG in the same directory have left."""
        ran: dict[str, Ran] = {}
        try:
            async for cluster, events in earlier_runs(client, common):
                for key, one in _remembered(cluster, events).items():
                    ran.setdefault(key, one)
        except ClientError as error:
            _log.warning("it is not known what earlier runs have left, and all nodes run: %s", error)
        return cls(common.dag, common.workflow, ran)

    async def reusable(
        self, prepared: "Mapping[NodeStep, Submission | Exception]"
    ) -> dict[NodeStep, NodeReuse]:
        """Those steps that need no job, and why."""
        return await asyncio.to_thread(self._reusable, prepared)

    def _reusable(self, prepared: "Mapping[NodeStep, Submission | Exception]") -> dict[NodeStep, NodeReuse]:
        found: dict[NodeStep, NodeReuse] = {}
        known: dict[Path, str] = {}
        for step, made in prepared.items():
            if isinstance(made, Exception) or (identified := self._identified(step, made, known)) is None:
                continue
            key = identified[0]
            ran = self._ran.get(key)
            if ran is not None and _are_there(ran.outputs):
                found[step] = NodeReuse(
                    step, key, dict(ran.outputs), ran.workflow, ran.name, ran.cluster, ran.at
                )
            else:
                self._keys[step] = identified
        return found

    def _identified(
        self, step: NodeStep, made: "Submission", known: dict[Path, str]
    ) -> tuple[str, list[str]] | None:
        """
        The key of a node, and what it leaves; None: it is run in any case. `known`: files that were read just now.
        """
        node = self._dag.nodes[step.node]
        ad: Ad = {**made.ad, **dict(zip(made.columns, made.rows[0], strict=True))} if made.rows else made.ad
        try:
            if refusal := memo.refusal(node, ad, made.count):
                _log.info("%s is run in any case: %s", node.name, refusal)
                return None
            contents: dict[str, str] = {}
            for each in memo.read_by(ad):
                path = Path(each.path)
                if path not in known:
                    known[path] = _digest(path)
                contents[each.name] = known[path]
            return memo.key(ad, contents), list(memo.left_by(ad))
        except (OSError, ValueError) as error:
            _log.info("%s is run in any case: %s", node.name, error)
            return None

    async def left(self, steps: Sequence[NodeStep], clusters: Mapping[int, int]) -> RememberNodes:
        """What nodes have left that have run well; `clusters`: of their jobs, by node."""
        return await asyncio.to_thread(self._left, steps, clusters)

    def _left(self, steps: Sequence[NodeStep], clusters: Mapping[int, int]) -> RememberNodes:
        memories: list[NodeMemory] = []
        others: list[int] = []
        for step in steps:
            try:
                key, paths = self._keys.pop(step)
                outputs = {path: _digest(Path(path)) for path in paths}
                memories.append(NodeMemory(step.node, clusters[step.node], key, outputs))
            except (KeyError, OSError) as error:
                _log.info("%s leaves nothing to be used again: %r", step_text(self._workflow, step), error)
                others.append(step.node)
        return RememberNodes(workflow=self._workflow, memories=memories, others=others)


def _remembered(cluster: int, events: Sequence[tuple[float, WorkflowEvent]]) -> dict[str, Ran]:
    """The nodes of one workflow that are remembered, by their keys; those left out as those that ran."""
    names: Sequence[str] = ()
    found: dict[str, Ran] = {}
    for at, event in events:
        match event:
            case WorkflowStarted():
                names = unpacked(event.plan).names
            case NodesRemembered():
                for ran in event.memories:
                    found[ran.key] = Ran(cluster, names[ran.node], ran.cluster, int(at), ran.outputs)
            case NodesReused():
                for left in event.reuses:
                    found[left.key] = Ran(left.workflow, left.name, left.cluster, left.at, left.outputs)
            case _:
                pass
    return found


def _are_there(outputs: Mapping[str, str]) -> bool:
    """Whether files are what they were."""
    try:
        return all(_digest(Path(path)) == digest for path, digest in outputs.items())
    except OSError:
        return False


def _digest(path: Path) -> str:
    """SHA-256 of a file, in hexadecimal. Raises OSError, also for what is no regular file."""
    with path.open("rb") as file:
        if not stat.S_ISREG(path.stat().st_mode):
            raise OSError(f"{path} is no regular file")
        return hashlib.file_digest(file, "sha256").hexdigest()
