"""
How far a workflow is, folded from its events: states of nodes, their jobs, why they failed.

Pure.  What is written of a workflow at a moment (status files, the table of `.dagman.out`, the ad of the DAG job) is read
from here; what is appended (lines of logs) follows from the single events.
"""

from collections.abc import Iterator
from typing import Final

from kettle.dag.cluster_jobs import ClusterJobs
from kettle.dag.files.counts import Counts, Jobs
from kettle_wire.codes import DagStatus, NodeJobKind, NodePart, NodeState, NodeStatus
from kettle_wire.events.workflow import (
    NodeChange,
    NodeJobFact,
    NodeJobsSeen,
    NodesChanged,
    SubmissionsFailed,
    WorkflowAborted,
    WorkflowEnded,
    WorkflowEvent,
    WorkflowHalted,
    WorkflowRemoved,
    WorkflowRerunBegun,
    WorkflowResumed,
    WorkflowStopping,
)
from kettle_wire.workflows import Plan

STATUSES: Final = {
    NodeState.WAITING: NodeStatus.NOT_READY,
    NodeState.READY: NodeStatus.READY,
    NodeState.PRE: NodeStatus.PRERUN,
    NodeState.QUEUED: NodeStatus.SUBMITTED,
    NodeState.RUNNING: NodeStatus.SUBMITTED,
    NodeState.POST: NodeStatus.POSTRUN,
    NodeState.DONE: NodeStatus.DONE,
    NodeState.SKIPPED: NodeStatus.DONE,
    NodeState.FAILED: NodeStatus.ERROR,
    NodeState.FUTILE: NodeStatus.FUTILE,
}
"""What the files call a state."""
_RAN: Final = frozenset({NodeStatus.DONE, NodeStatus.ERROR})


class NodeJobs(ClusterJobs, kw_only=True):
    """The jobs of one try of a node."""

    cluster: int
    total: int
    failed: int = 0
    value: int = 0
    """Of the first one that failed, as its node's."""


class Progress:
    """A workflow of a plan, before its first event."""

    def __init__(self, plan: Plan) -> None:
        self.plan: Final = plan
        self.status = DagStatus.OK
        self.exit_code: int | None = None
        """None: it is not over."""
        self.is_stopping = False
        """Nothing runs any more but the FINAL node."""
        self.is_halted = False
        self.started = 0.0
        self.changed = 0.0
        """When something happened last."""
        self.states: Final = bytearray([NodeState.WAITING]) * len(plan.names)
        self.attempts: Final[dict[int, int]] = {}
        self._begun_again: Final[dict[int, int]] = {}
        """By node the attempt with which it began again, with all of its retries."""
        self.jobs: Final[dict[int, NodeJobs]] = {}
        """Of nodes whose jobs are in the queue."""
        self.clusters: Final[dict[int, int]] = {}
        """The last cluster of each node that ever had jobs."""
        self.failures: Final[dict[int, str]] = {}
        """Why a node failed, or its last try."""
        self.done_before: Final = frozenset(plan.done)
        self._uncounted: Final = frozenset(plan.services)
        self._counts: Final = [0] * (max(NodeState) + 1)
        self._counts[NodeState.WAITING] = len(plan.names) - len(self._uncounted)
        self._submitted = 0
        self._completed = 0
        for node in plan.done:
            self._enter(node, NodeState.DONE)

    def apply(self, at: float, event: WorkflowEvent) -> None:
        """One more event."""
        self.started = self.started or at
        self.changed = at
        match event:
            case NodesChanged():
                for change in event.changes:
                    self._change(change)
            case NodeJobsSeen():
                for place, fact in enumerate(event.facts):
                    self._fact(fact, event.reasons.get(place, ""))
            case SubmissionsFailed():
                for failure in event.failures:
                    if failure.step.part == NodePart.JOB:
                        self.failures[failure.step.node] = "Job submit failed"
            case _:
                self._as_a_whole(event)

    def is_counted(self, node: int) -> bool:
        """Whether people count it: service nodes are not."""
        return node not in self._uncounted

    def status_of(self, node: int) -> NodeStatus:
        """How the files call its state."""
        return STATUSES[NodeState(self.states[node])]

    def counted(self) -> Iterator[int]:
        """The nodes that people count, in their order."""
        return (node for node in range(len(self.states)) if node not in self._uncounted)

    def retries_made(self, node: int) -> int:
        """How many of its retries a node has used."""
        return max(0, self.attempts.get(node, 0) - self._begun_again.get(node, 0))

    @property
    def counts(self) -> Counts:
        """How many nodes are in which state."""
        by_state = self._counts
        return Counts(
            total=len(self.states) - len(self._uncounted),
            done=by_state[NodeState.DONE] + by_state[NodeState.SKIPPED],
            pre=by_state[NodeState.PRE],
            queued=by_state[NodeState.QUEUED],
            post=by_state[NodeState.POST],
            ready=by_state[NodeState.READY],
            unready=by_state[NodeState.WAITING],
            failed=by_state[NodeState.FAILED],
            futile=by_state[NodeState.FUTILE],
        )

    @property
    def job_counts(self) -> Jobs:
        """How many jobs there were, and are in which state."""
        return Jobs(
            submitted=self._submitted,
            idle=sum(jobs.idle for jobs in self.jobs.values()),
            held=sum(len(jobs.held) for jobs in self.jobs.values()),
            running=sum(len(jobs.running) for jobs in self.jobs.values()),
            completed=self._completed,
        )

    @property
    def dag_status(self) -> DagStatus:
        """`DAG_Status` now."""
        if self.exit_code is None and self.status is DagStatus.OK:
            if self.is_halted:
                return DagStatus.HALTED
            if self._counts[NodeState.FAILED]:
                return DagStatus.NODE_FAILED
        return self.status

    def _as_a_whole(self, event: WorkflowEvent) -> None:
        match event:
            case WorkflowAborted():
                self.status = DagStatus.ABORTED if event.exit_code else DagStatus.OK
            case WorkflowRemoved():
                self.status = DagStatus.REMOVED
            case WorkflowHalted():
                self.is_halted = True
            case WorkflowResumed():
                self.is_halted = False
            case WorkflowRerunBegun():
                self._begun_again.update({node: self.attempts.get(node, 0) + 1 for node in event.nodes})
            case WorkflowStopping():
                self.status = DagStatus(event.status)
                self.is_stopping = True
            case WorkflowEnded():
                self.status = DagStatus(event.status)
                self.exit_code = event.exit_code
            case _:
                pass  # says nothing of states

    def _change(self, change: NodeChange) -> None:
        node, state = change.node, NodeState(change.state)
        self.attempts[node] = change.attempt
        self._enter(node, state)
        if STATUSES[state] in _RAN:
            self.jobs.pop(node, None)
        if state is NodeState.FAILED and change.attempt and node in self.failures:
            self.failures[node] += f" (after {change.attempt} node retries)"

    def _enter(self, node: int, state: NodeState) -> None:
        if node not in self._uncounted:
            self._counts[self.states[node]] -= 1
            self._counts[state] += 1
        self.states[node] = state

    def _fact(self, fact: NodeJobFact, reason: str) -> None:
        node, kind = fact.step.node, NodeJobKind(fact.kind)
        if fact.step.part != NodePart.JOB:
            if kind is NodeJobKind.COMPLETED and fact.value:
                ended = f"{'died on' if fact.value < 0 else 'failed with'} {how(fact.value)}"
                self._script_failed(node, NodePart(fact.step.part), ended)
            elif kind is NodeJobKind.REMOVED:
                self._script_failed(
                    node, NodePart(fact.step.part), f"was removed ({reason})" if reason else "was removed"
                )
            return
        if kind is NodeJobKind.SUBMITTED:
            self.failures.pop(node, None)
            self.clusters[node] = fact.cluster
            self.jobs[node] = NodeJobs(cluster=fact.cluster, total=fact.value, left=fact.value)
            self._submitted += fact.value
            return
        jobs = self.jobs.get(node)
        if jobs is None or jobs.cluster != fact.cluster:
            return  # of a try that is over
        if jobs.take_in(fact):
            self._left_queue(node, jobs, fact, kind)

    def _left_queue(self, node: int, jobs: NodeJobs, fact: NodeJobFact, kind: NodeJobKind) -> None:
        if kind is NodeJobKind.COMPLETED and not fact.value:
            self._completed += 1
            return
        jobs.failed += 1
        jobs.value = jobs.value or fact.value
        job = f"({fact.cluster}.{fact.proc}.0)"
        if kind is NodeJobKind.REMOVED:
            self.failures.setdefault(node, f"HTCondor reported ULOG_JOB_ABORTED event for job proc {job}")
        else:
            self.failures.setdefault(node, f"Job proc {job} failed with {how(fact.value)}")

    def _script_failed(self, node: int, part: NodePart, ended: str) -> None:
        if part is NodePart.HOLD:
            return
        script = f"{part.name} Script {ended}"
        before = self.failures.get(node)
        self.failures[node] = f"{before} and {script}" if part is NodePart.POST and before else script


def how(value: int) -> str:
    """An exit code, or a signal below zero, as the files say it."""
    return f"signal {-value}" if value < 0 else f"status {value}"
