"""
The lines of `.dagman.out` that follow from the events of a workflow.

Pure.  Pegasus's monitord, LSST and CRAB match these lines with regular expressions: they stand as DAGMan writes them, a
line for what happened and none for how DAGMan works inside.
"""

from collections.abc import Iterable, Iterator, Sequence
from datetime import tzinfo
from typing import Final

import msgspec

from kettle.dag.files.counts import table
from kettle.dag.files.progress import Progress, how
from kettle.dag.files.times import in_logs
from kettle.dag.reuse import reused
from kettle_wire.codes import NodeJobKind, NodePart, NodeState, NodeStatus
from kettle_wire.events.workflow import (
    NodeChange,
    NodeJobFact,
    NodeJobsSeen,
    NodesChanged,
    NodesReused,
    StepFailure,
    SubmissionsFailed,
    WorkflowAborted,
    WorkflowEnded,
    WorkflowEvent,
    WorkflowHalted,
    WorkflowRemoved,
    WorkflowRerunBegun,
    WorkflowResumed,
    WorkflowStarted,
    WorkflowStopping,
)

_EVENTS: Final = {
    NodeJobKind.SUBMITTED: "SUBMIT",
    NodeJobKind.STARTED: "EXECUTE",
    NodeJobKind.EVICTED: "JOB_EVICTED",
    NodeJobKind.HELD: "JOB_HELD",
    NodeJobKind.RELEASED: "JOB_RELEASED",
    NodeJobKind.COMPLETED: "JOB_TERMINATED",
    NodeJobKind.REMOVED: "JOB_ABORTED",
}
"""How the job event log calls what happens to a job."""
_TABLE_SECONDS: Final = 5.0
"""So often, at most, the table of counts is written while the workflow runs."""
_RULE: Final = "*" * 54


class Banner(msgspec.Struct, frozen=True, kw_only=True):
    """What the process says of itself when it starts."""

    dag_job: str
    """`CLUSTER.PROC`."""
    program: str
    version: str
    """With its `$CondorVersion: … $`, whose number readers look at."""
    pid: int
    arguments: Sequence[str] = ()
    dag_files: Sequence[str]
    nodes_log: str
    rescue_file: str = ""
    """The one with which the run began."""


def banner(said: Banner) -> Iterator[str]:
    """The lines of a start."""
    yield _RULE
    yield f"** condor_scheduniv_exec.{said.dag_job} (CONDOR_DAGMAN) STARTING UP"
    yield f"** {said.program}"
    yield f"** {said.version}"
    yield f"** PID = {said.pid}"
    yield _RULE
    yield from (f'argv[{index}] == "{argument}"' for index, argument in enumerate(said.arguments))
    yield f"Default node log file is: <{said.nodes_log}>"
    yield f"DAG Input file is {' '.join(said.dag_files)}"
    yield f"Parsing {len(said.dag_files)} dagfiles"
    yield from (f"Parsing {name} ..." for name in said.dag_files)
    if said.rescue_file:
        yield f"USING RESCUE DAG {said.rescue_file}"


def stamped(at: float, lines: Iterable[str], zone: tzinfo | None = None) -> str:
    """
    The text of lines with their time, as the clocks of `zone` show it, by default those of this machine.

    A line break within a line becomes a blank: what follows must not look like a line of ours.
    """
    stamp = in_logs(at, zone)
    return "".join(f"{stamp} {line.translate(_BREAKS)}\n" for line in lines)


_BREAKS: Final = str.maketrans("\r\n", "  ")


class DagmanOut:
    """Events to lines, one workflow."""

    def __init__(self, progress: Progress, zone: tzinfo | None = None) -> None:
        """`progress` has taken an event before its lines are asked for."""
        self._zone: Final = zone
        self._progress: Final = progress
        self._names: Final = progress.plan.names
        self._retried: Final[dict[int, int]] = {}
        self._table_at = 0.0
        self._final_started = False

    def lines(self, at: float, event: WorkflowEvent) -> Iterator[str]:
        """What one event says, with the table of counts when it is due."""
        match event:
            case WorkflowStarted():
                yield f"Dag contains {self._progress.counts.total} total nodes"
                yield "Bootstrapping..."
                yield f"Number of pre-completed nodes: {self._progress.counts.done}"
            case NodesChanged():
                for change in event.changes:
                    yield from self._change(change)
            case NodeJobsSeen():
                for index, fact in enumerate(event.facts):
                    yield from self._fact(at, fact, event.reasons.get(index, ""))
            case SubmissionsFailed():
                for failure in event.failures:
                    yield from self._not_submitted(at, failure)
            case _:
                yield from self._in_no_dagman(event)
                yield from self._as_a_whole(event)
        is_over = isinstance(event, WorkflowEnded)
        if is_over or at - self._table_at >= _TABLE_SECONDS:
            self._table_at = at
            yield from self.table()

    def table(self) -> Iterator[str]:
        """How far it is."""
        status = self._progress.dag_status
        yield f"DAG status: {status.value} (DAG_STATUS_{_STATUS_WORDS.get(status.name, status.name)})"
        yield from table(self._progress.counts)
        yield f"{self._progress.job_counts.held} job proc(s) currently held"

    def failures(self) -> Iterator[str]:
        """The nodes that failed, at length."""
        progress = self._progress
        failed = [node for node in progress.counted() if progress.status_of(node) is NodeStatus.ERROR]
        if not failed:
            return
        yield "ERROR: the following Node(s) failed:"
        for node in failed:
            yield f"{'-' * 22} Node {'-' * 22}"
            yield f"      Node Name: {self._names[node]}"
            yield f"         NodeID: {node}"
            yield "    Node Status: STATUS_ERROR"
            yield f"          Error: {progress.failures.get(node, '')}"
            if node in progress.plan.retries:
                yield f"          Retry: {progress.plan.retries[node].most}"
            cluster = progress.clusters.get(node)
            yield f" HTCondor Job ID: {'[not yet submitted]' if cluster is None else f'({cluster}.0.0)'}"
        yield f"{'-' * 39}\t<END>"

    def _in_no_dagman(self, event: WorkflowEvent) -> Iterator[str]:
        """What HTCondor's has no lines for."""
        if isinstance(event, WorkflowRerunBegun):
            yield f"Nothing else can run: {len(event.nodes)} node(s) that failed begin again."
        elif isinstance(event, NodesReused):
            for each in event.reuses:
                yield f"Node {self._names[each.step.node]} is not run: {reused(each)}."

    def _as_a_whole(self, event: WorkflowEvent) -> Iterator[str]:
        match event:
            case WorkflowHalted():
                yield "Halting DAGMan progess..."  # the word stands so in HTCondor
                if event.reason:
                    yield f"Halt reason: {event.reason}"
            case WorkflowResumed():
                yield "Resuming DAG progress..."
            case WorkflowRemoved():
                yield "Received SIGUSR1"
            case WorkflowAborted():
                yield "Aborting DAG because we got the ABORT exit value from a node"
            case WorkflowStopping():
                if event.status:
                    yield from self.failures()
                    yield "Aborting DAG..."
            case WorkflowEnded():
                if not event.exit_code:
                    yield "All jobs Completed!"
            case _:
                pass

    def _change(self, change: NodeChange) -> Iterator[str]:
        node, state = change.node, NodeState(change.state)
        if not self._progress.is_counted(node):
            return
        name = self._names[node]
        if node == self._progress.plan.final and not self._final_started and state is not NodeState.FUTILE:
            self._final_started = True
            yield "Starting final node..."
        if state in _BEGINNINGS and change.attempt > self._retried.get(node, 0):
            self._retried[node] = change.attempt
            retries = self._progress.plan.retries.get(node)
            most = retries.most if retries else change.attempt
            yield f"Retrying node {name} (retry #{change.attempt} of {most})..."
        if state is NodeState.SKIPPED:
            code = self._progress.plan.pre_skip[node]
            yield f"PRE_SKIP return value {code} indicates we are done (successfully) with node {name}"

    def _fact(self, at: float, fact: NodeJobFact, reason: str) -> Iterator[str]:
        part, kind = NodePart(fact.step.part), NodeJobKind(fact.kind)
        name = self._names[fact.step.node]
        if part is not NodePart.JOB:
            yield from self._script(at, name, part, fact, reason)
            return
        word = _EVENTS.get(kind)
        if word is None:
            return
        if kind is NodeJobKind.SUBMITTED:
            yield f"Submitting HTCondor Node {name} job(s)..."
            yield f"\tassigned HTCondor ID ({fact.cluster}.0.0)"
            for proc in range(fact.value):
                yield self._event(at, word, name, f"{fact.cluster}.{proc}.0")
            return
        job = f"{fact.cluster}.{fact.proc}.0"
        yield self._event(at, word, name, job)
        if kind is NodeJobKind.HELD:
            yield f"  Hold reason: {reason or '(unknown)'}"
        if kind is NodeJobKind.COMPLETED:
            outcome = f"failed with {how(fact.value)}." if fact.value else "completed successfully."
            yield f"Node {name} job proc ({job}) {outcome}"

    def _script(self, at: float, name: str, part: NodePart, fact: NodeJobFact, reason: str) -> Iterator[str]:
        match NodeJobKind(fact.kind):
            case NodeJobKind.SUBMITTED:
                yield f"Running {part.name} script of Node {name}..."
            case NodeJobKind.COMPLETED:
                yield from self._script_ended(at, name, part, fact)
            case NodeJobKind.HELD:
                yield f"{part.name} Script of node {name} is held: {reason or '(unknown)'}"
            case NodeJobKind.REMOVED:
                yield from _script_not_run(name, part, reason or "its job was removed")
            case _:
                pass

    def _script_ended(self, at: float, name: str, part: NodePart, fact: NodeJobFact) -> Iterator[str]:
        if part is NodePart.POST:
            cluster = self._progress.clusters.get(fact.step.node, -1)
            yield self._event(at, "POST_SCRIPT_TERMINATED", name, f"{cluster}.0.0")
        if not fact.value:
            outcome = "completed successfully."
        elif fact.value < 0:
            outcome = f"died on signal {-fact.value}"
        else:
            outcome = f"failed with status {fact.value}"
        yield f"{part.name} Script of node {name} {outcome}"
        if part is NodePart.POST and fact.value:
            yield f"POST for Node {name} returned {fact.value}"

    def _not_submitted(self, at: float, failure: StepFailure) -> Iterator[str]:
        name, part, reason = self._names[failure.step.node], NodePart(failure.step.part), failure.reason
        if part is not NodePart.JOB:
            yield from _script_not_run(name, part, reason)
            return
        yield f"Submitting HTCondor Node {name} job(s)..."
        yield f"ERROR: submit attempt failed: {reason}"
        yield f"Event: ULOG_SUBMIT_FAILURE for HTCondor Node {name} (-1.-1.-1) {{{in_logs(at, self._zone)}}} {reason}"
        yield f"Job submit try {failure.tries}/{failure.tries} failed."

    def _event(self, at: float, word: str, name: str, job: str) -> str:
        return f"Event: ULOG_{word} for HTCondor Node {name} ({job}) {{{in_logs(at, self._zone)}}}"


def _script_not_run(name: str, part: NodePart, reason: str) -> Iterator[str]:
    yield f"Error: Failed to execute {part.name} for Node {name}: {reason}"
    yield f"{part.name} Script of node {name} failed with status 1"


_STATUS_WORDS: Final = {"ABORTED": "ABORT", "REMOVED": "RM"}
"""Where DAGMan's word for a status is another one."""
_BEGINNINGS: Final = frozenset({NodeState.READY, NodeState.PRE, NodeState.QUEUED})
