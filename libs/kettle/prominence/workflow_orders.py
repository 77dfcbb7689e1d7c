"""
A workflow as the process of its DAG job is given it: the document, what its jobs may fetch and send, and what is done already.

It is a file of that job, so nobody reads it but its owner.  Its graph is that of a DAG: a node for each job and each instance of a
factory, and a factory waits for all instances of another through one join.  Pure.
"""

from collections.abc import Sequence
from typing import Final

import msgspec
from msgspec.structs import replace

from kettle.dag.edges import EdgeCollector
from kettle.dag.structure import Dag, Node, NodeKind
from kettle.prominence.instances import Permits, instance
from kettle.prominence.job_ads import JobSubmission
from kettle.prominence.nodes import WorkflowNodes
from kettle.prominence.workflow_documents import graph_of, read_workflow
from kettle_wire.prominence.workflow import Workflow

FILE: Final = "workflow.json"
"""How the file is called in the DAG job's directory."""
IDLE: Final = 20
"""Jobs that wait for a machine at a time, as PROMINENCE has it."""


class WorkflowOrder(msgspec.Struct, frozen=True, kw_only=True):
    """What is in the file."""

    document: msgspec.Raw
    """As JSON, with the seeds of its random samples."""
    identifier: str
    """What its results are kept under, which nobody can guess."""
    permits: Permits
    done: list[int] = []
    """Nodes that were done by another run."""


class OrderedWorkflow:
    """One that is to run."""

    def __init__(self, order: WorkflowOrder) -> None:
        """Raises DocumentRefused: the document has faults."""
        self._order: Final = order
        self.workflow: Final = read_workflow(bytes(order.document))
        self.nodes: Final = WorkflowNodes(self.workflow)
        self._stays: Final = stays(self.workflow)

    @classmethod
    def read(cls, text: bytes) -> "OrderedWorkflow":
        """Raises DocumentRefused, and msgspec.MsgspecError: that is no such file."""
        return cls(msgspec.json.decode(text, type=WorkflowOrder))

    def dag(self, file: str) -> Dag:
        """The graph, with the name of a node for each job that will be."""
        nodes, graph = self.nodes, graph_of(self.workflow)
        collected = EdgeCollector()
        for parent, children in enumerate(graph.children):
            for child in children:
                collected.connect(nodes.numbers(parent), nodes.numbers(child), is_weak=False)
        done = frozenset(self._order.done)
        retries = self.workflow.policies.maximum_retries or 0
        return Dag(
            files=(file,),
            nodes=tuple(
                Node(name=name, kind=NodeKind.JOB, submit="", retries=retries, is_done=number in done)
                for number, name in enumerate(node_names(nodes))
            ),
            edges=collected.edges(len(nodes)),
        )

    def parents(self) -> Sequence[str]:
        """By node the names of the jobs for which it waits; instances are not named one by one."""
        jobs = self.workflow.jobs
        found: list[str] = []
        for place, above in enumerate(graph_of(self.workflow).parents()):
            found += [",".join(jobs[parent].name for parent in above)] * self.nodes.counts[place]
        return found

    def submission(self, number: int, workflow: int) -> JobSubmission:
        """The job of a node; `workflow`: the cluster of its DAG job.  Raises DocumentRefused."""
        node = self.nodes[number]
        policies = replace(node.job.policies, leave_in_queue=self._stays)
        node = replace(node, job=replace(node.job, policies=policies))
        return instance(node, self._order.permits, f"{self._order.identifier}/{number}", workflow=workflow)


def node_names(nodes: WorkflowNodes) -> list[str]:
    """Of all nodes: the name of the job, and behind it which instance of a factory it is."""
    made = {name for factory in nodes.workflow.factories for name in factory.jobs}
    return [
        f"{job.name}/{index}" if job.name in made else job.name
        for job, count in zip(nodes.workflow.jobs, nodes.counts, strict=True)
        for index in range(count)
    ]


def stays(workflow: Workflow) -> bool:
    """Whether its jobs stay in the queue when they have ended: all of them do, if one is to."""
    return workflow.policies.leave_in_queue or any(job.policies.leave_in_queue for job in workflow.jobs)
