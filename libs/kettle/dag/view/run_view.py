"""A workflow that runs, folded from its events."""

from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from kettle.dag.cluster_jobs import ClusterJobs
from kettle.dag.view.steps import Phase, PhaseTimes, Steps
from kettle_wire.codes import NodeJobKind, NodePart, NodeState, NodeValue
from kettle_wire.events.workflow import (
    NodeChange,
    NodeJobFact,
    NodeJobsSeen,
    NodeReuse,
    NodesChanged,
    NodesReused,
    SubmissionsFailed,
    WorkflowEnded,
    WorkflowEvent,
    WorkflowHalted,
    WorkflowRemoved,
    WorkflowResumed,
    WorkflowStarted,
    WorkflowThrottled,
)
from kettle_wire.workflows import WorkflowOptions, unpacked

_PHASES: Final = {
    NodeState.READY: Phase.TURN,
    NodeState.PRE: Phase.SCRIPT,
    NodeState.QUEUED: Phase.SUBMISSION,
    NodeState.POST: Phase.SCRIPT,
}
"""What a node waits for in a state; in all others it is over."""


class PartJobs(msgspec.Struct, gc=False):
    """The jobs that were submitted for a part of an attempt of a node."""

    attempt: int
    part: int
    """`NodePart`."""
    cluster: int
    jobs: int
    value: int | None = None
    """The exit code, or the number of the signal below zero, of the first that failed, else 0; None: they have not ended."""


class _Live(ClusterJobs, kw_only=True):
    """A cluster that has jobs in the queue."""

    node: int
    made: PartJobs
    value: int = 0


class RunView:
    """One workflow."""

    def __init__(self, at: float, started: WorkflowStarted) -> None:
        """Raises ValueError for a plan that is none."""
        self.started: Final = started
        self.began: Final = at
        self.plan: Final = unpacked(started.plan)
        count = len(self.plan.names)
        self.events = 1
        """So many were taken in."""
        self.ended: tuple[float, WorkflowEnded] | None = None
        self.halted = False
        self.halted_because = ""
        self.removed_because = ""
        self.options: WorkflowOptions = started.options
        self.categories = dict(self.plan.category_limits)
        self.states: Final = bytearray(count)
        """What people call the states of the nodes."""
        self.counts: Final = [0] * len(NodeState)
        self.counts[NodeState.WAITING] = count
        self.attempts: Final[dict[int, int]] = {}
        """Of nodes that were tried again: how often."""
        self.jobs: Final[dict[int, list[PartJobs]]] = {}
        self.said: Final[dict[int, str]] = {}
        """Why jobs of a node were held or removed last, or could not be submitted."""
        self.reuses: Final[dict[int, NodeReuse]] = {}
        """Of nodes that are done without a job whose result they have."""
        self.values: Final[dict[int, int]] = {}
        """Node values other than 0; of a futile node the one because of which it is."""
        self.steps: Final = Steps(count)
        self._times = PhaseTimes(count)
        self._times.begin(at)
        self._live: dict[int, _Live] = {}
        for node in self.plan.done:
            self._enter(node, NodeState.DONE)
            self._step(node, at, Phase.OVER)

    def apply(self, at: float, event: WorkflowEvent) -> None:  # noqa: C901, PLR0912 - a case for each event
        """One more event, and when it was recorded."""
        self.events += 1
        match event:
            case NodesChanged():
                for change in event.changes:
                    self._change(at, change)
            case NodeJobsSeen():
                for place, fact in enumerate(event.facts):
                    self._see(at, fact, event.reasons.get(place, ""))
            case SubmissionsFailed():
                for failure in event.failures:
                    self.said[failure.step.node] = failure.reason
            case NodesReused():
                self.reuses.update({each.step.node: each for each in event.reuses})
            case WorkflowThrottled():
                self.options, self.categories = event.options, dict(event.categories)
            case WorkflowHalted():
                self.halted, self.halted_because = True, event.reason
            case WorkflowResumed():
                self.halted = False
            case WorkflowRemoved():
                self.removed_because = event.reason or (f"removed by {event.by}" if event.by else "")
            case WorkflowEnded():
                self.ended = at, event
            case _:
                pass  # what follows for nodes is recorded of them

    def attempt(self, node: int) -> int:
        """Which attempt of a node it is, from 0."""
        return self.attempts.get(node, 0)

    def state(self, node: int) -> NodeState:
        """What people call its state."""
        return NodeState(self.states[node])

    def phase(self, node: int) -> Phase:
        """What it does or waits for."""
        last = self.steps.last(node)
        return Phase.PARENTS if last is None else last.phase

    def seconds(self, now: float) -> Sequence[float]:
        """By phase how long all nodes together were in it."""
        return self._times.until(self.until(now))

    def until(self, now: float) -> float:
        """The end of the workflow, or now."""
        return now if self.ended is None else self.ended[0]

    @property
    def job_counts(self) -> tuple[int, int, int]:
        """Jobs of nodes that wait for a machine, run, are on hold; those of scripts are none."""
        live = [each for each in self._live.values() if each.made.part == NodePart.JOB]
        running, held = sum(len(each.running) for each in live), sum(len(each.held) for each in live)
        return sum(each.left for each in live) - running - held, running, held

    def jobs_now(self, node: int) -> Iterator[PartJobs]:
        """The jobs of a node that are in the queue."""
        return (each for each in self.jobs.get(node, ()) if each.cluster in self._live)

    # -- nodes -----------------------------------------------------------------------------------------------------------

    def _change(self, at: float, change: NodeChange) -> None:
        node, state = change.node, NodeState(change.state)
        if change.attempt:
            self.attempts[node] = change.attempt
        if change.value:
            self.values[node] = change.value
        elif state in {NodeState.DONE, NodeState.READY, NodeState.WAITING}:
            self.values.pop(node, None)
        self._enter(node, state)
        self._step(node, at, _PHASES.get(state, Phase.OVER))

    def _enter(self, node: int, state: NodeState) -> None:
        self.counts[self.states[node]] -= 1
        self.counts[state] += 1
        self.states[node] = state

    def _step(self, node: int, at: float, phase: Phase) -> None:
        last = self.steps.last(node)
        before, since = (Phase.PARENTS, self.began) if last is None else (last.phase, last.at)
        attempt = self.attempt(node)
        if last is not None and (before, last.attempt) == (phase, attempt):
            return
        self._times.move(before, since, phase, at)
        self.steps.add(node, at, phase, attempt)

    # -- jobs ------------------------------------------------------------------------------------------------------------

    def _see(self, at: float, fact: NodeJobFact, reason: str) -> None:
        node = fact.step.node
        if fact.kind == NodeJobKind.RELEASED:
            self.said.pop(node, None)
        elif reason:
            self.said[node] = reason
        if fact.kind == NodeJobKind.SUBMITTED:
            made = PartJobs(fact.step.attempt, fact.step.part, fact.cluster, fact.value)
            self.jobs.setdefault(node, []).append(made)
            self._live[fact.cluster] = _Live(node=node, made=made, left=fact.value)
            self.said.pop(node, None)
        elif (live := self._live.get(fact.cluster)) is not None:
            if live.take_in(fact):
                removed = fact.kind == NodeJobKind.REMOVED
                live.value = live.value or (int(NodeValue.REMOVED) if removed else fact.value)
        else:
            return
        self._look(at, node, fact.cluster)

    def _look(self, at: float, node: int, cluster: int) -> None:
        """What the jobs of a node make of it."""
        live = self._live[cluster]
        if live.left <= 0:
            live.made.value = live.value
            del self._live[cluster]
        if live.made.part != NodePart.JOB or self.states[node] not in {NodeState.QUEUED, NodeState.RUNNING}:
            return
        if live.left <= 0:
            self._enter(node, NodeState.QUEUED)  # what comes next is recorded of the node
            return
        self._enter(node, NodeState.RUNNING if live.running else NodeState.QUEUED)
        self._step(node, at, Phase.RUNNING if live.running else Phase.HELD if live.held else Phase.MACHINE)
