"""
What a workflow comes to, by the plainest means, and workflows that are run without any server: oracles for the decider.
"""

from array import array
from collections.abc import Callable, Sequence
from random import Random
from typing import Any, cast

import msgspec

from kettle_services.dagman.domain.decisions import next_time, react
from kettle_services.dagman.domain.workflow import Workflow
from kettle_wire.codes import NodeJobKind, NodePart, NodeState
from kettle_wire.events import decode, encode
from kettle_wire.events.workflow import (
    NodeJobFact,
    NodeJobsSeen,
    NodeStep,
    StepFailure,
    SubmissionsFailed,
    WorkflowEvent,
    WorkflowStarted,
)
from kettle_wire.workflows import Plan, WorkflowOptions, packed

Outcome = Callable[[int, int, int], int]
"""The exit code of a part of an attempt of a node: (node, attempt, part)."""


def edges(count: int, pairs: Sequence[tuple[int, int, bool]]) -> tuple[bytes, bytes, bytes]:
    """The edges (parent, child, weak) as a plan has them."""
    starts, ends, weak = [0], list[int](), bytearray()
    for parent in range(count):
        for _, child, is_weak in sorted(each for each in pairs if each[0] == parent):
            ends.append(child)
            weak.append(is_weak)
        starts.append(len(ends))
    return _words(starts), _words(ends), bytes(weak)


def _words(numbers: Sequence[int]) -> bytes:
    return b"".join(number.to_bytes(4, "little") for number in numbers)


def started(plan: Plan, options: WorkflowOptions | None = None) -> WorkflowStarted:
    """The first event of a workflow with this plan."""
    return WorkflowStarted(
        workflow=7,
        owner="ann",
        files=["a.dag"],
        directory="/home/ann",
        digest="",
        plan=packed(plan),
        options=options or WorkflowOptions(),
        followed=3,
    )


def interpret(
    plan: Plan, pairs: Sequence[tuple[int, int, bool]], outcome: Outcome, reruns: int = 0
) -> list[NodeState]:
    """The last states of all nodes, by looking at every node again and again until nothing changes."""
    states = [NodeState.DONE if node in plan.done else NodeState.WAITING for node in range(len(plan.names))]
    attempts = [0] * len(states)
    for run in range(1 + reruns):
        if run:
            again = {NodeState.FAILED, NodeState.FUTILE}
            states = [NodeState.WAITING if state in again else state for state in states]
        _run(plan, pairs, outcome, states, attempts)
    return states


def _run(
    plan: Plan,
    pairs: Sequence[tuple[int, int, bool]],
    outcome: Outcome,
    states: list[NodeState],
    attempts: list[int],
) -> None:
    """Until nothing changes; `attempts`: which is the next one of each node."""
    finished = {NodeState.DONE, NodeState.SKIPPED, NodeState.FAILED}
    changed = True
    while changed:
        changed = False
        for node, state in enumerate(states):
            if state != NodeState.WAITING:
                continue
            parents = [(states[parent], weak) for parent, child, weak in pairs if child == node]
            if any(s == NodeState.FUTILE or (s == NodeState.FAILED and not weak) for s, weak in parents):
                states[node], changed = NodeState.FUTILE, True
            elif all(s in finished for s, _ in parents):
                states[node], changed = _attempts(plan, node, outcome, attempts), True


def _attempts(plan: Plan, node: int, outcome: Outcome, attempts: list[int]) -> NodeState:
    rule = plan.retries.get(node)
    for _ in range(1 + (rule.most if rule else 0)):
        state, value = _attempt(plan, node, attempts[node], outcome)
        attempts[node] += 1
        if state != NodeState.FAILED or (rule and value == rule.unless):
            return state
    return NodeState.FAILED


def _attempt(plan: Plan, node: int, attempt: int, outcome: Outcome) -> tuple[NodeState, int]:
    if node in plan.pre and (code := outcome(node, attempt, NodePart.PRE)):
        return (NodeState.SKIPPED if code == plan.pre_skip.get(node) else NodeState.FAILED), code
    value = 0 if node in plan.noop else outcome(node, attempt, NodePart.JOB)
    if node in plan.post:
        value = outcome(node, attempt, NodePart.POST)
    return (NodeState.FAILED if value else NodeState.DONE), value


class Driver:
    """
    Runs a workflow: submits what is ordered, and has jobs end as `outcome` says, in an order that `random` draws.
    """

    def __init__(self, first: WorkflowStarted, outcome: Outcome, random: Random) -> None:
        self.workflow = Workflow(first)
        self.first = first
        self.events: list[WorkflowEvent] = []
        self.submitted: list[NodeStep] = []
        self.now = 1000.0
        self.on_submit: Callable[[NodeStep], str] = lambda _step: ""
        self._outcome = outcome
        self._random = random
        self._running: dict[int, NodeStep] = {}
        self._clusters = 100
        self._frame = 3

    def feed(self, *facts: WorkflowEvent) -> None:
        """Something happened."""
        self.events += react(self.workflow, facts, self.now)

    def see(self, *facts: NodeJobFact) -> None:
        """The schedd has recorded something."""
        self._frame += 1
        self.feed(NodeJobsSeen(frame=self._frame, facts=list(facts)))

    def step(self) -> bool:
        """One thing happens; False: nothing can."""
        choices: list[Callable[[], None]] = []
        if self.workflow.orders:
            choices.append(self.submit)
        if self._running:
            choices.append(self.end_one)
        if not choices:
            moment = next_time(self.workflow)
            if moment is None:
                return False
            self.now = moment
            self.feed()
            return True
        self._random.choice(choices)()
        return True

    def run(self) -> None:
        """Until it is over."""
        self.feed()
        while self.workflow.ended is None and self.step():
            self.look()

    def look(self) -> None:
        """Called after each step."""

    def submit(self) -> None:
        """The hands submit one of the jobs that are ordered."""
        step = self._random.choice(list(self.workflow.orders))
        if refusal := self.on_submit(step):
            self.feed(SubmissionsFailed(failures=[StepFailure(step, refusal)]))
            return
        self._clusters += 1
        self.submitted.append(step)
        self._running[self._clusters] = step
        self.see(NodeJobFact(step, self._clusters, -1, NodeJobKind.SUBMITTED, 1))
        self.see(NodeJobFact(step, self._clusters, 0, NodeJobKind.STARTED))

    def end_one(self) -> None:
        """A job ends, or is removed where that was ordered."""
        cluster = self._random.choice(list(self._running))
        step = self._running.pop(cluster)
        if cluster in self.workflow.clusters and self.workflow.clusters[cluster].removing:
            self.see(NodeJobFact(step, cluster, 0, NodeJobKind.REMOVED))
            return
        code = self._outcome(step.node, step.attempt, step.part)
        self.see(NodeJobFact(step, cluster, 0, NodeJobKind.COMPLETED, code))

    def states(self) -> list[NodeState]:
        """Of all nodes."""
        return [NodeState(state) for state in self.workflow.states]

    def replayed(self) -> Workflow:
        """The workflow as its events, written and read again, make it."""
        workflow = Workflow(self.first)
        for event in self.events:
            read = decode(encode(event))
            assert isinstance(read, WorkflowEvent)
            workflow.apply(read)
        return workflow


def shown(workflow: Workflow) -> object:
    """Everything of a workflow that decides what comes next."""
    names = (
        "states attempts reruns begun_again counts parts values causes clusters orders deferred in_queue clustered by_category scripts procs "
        "halted provisioned stop stopping ended unblocked doomed settling to_defer exceeded stuck held_now"
    )
    return {
        name: msgspec.to_builtins(_plain(getattr(workflow, name)), str_keys=True) for name in names.split()
    }


def _plain(value: Any) -> Any:
    """Tables as lists of pairs, because a step is no key of JSON, and compact numbers as lists."""
    if isinstance(value, dict):
        table: dict[object, object] = dict(value.items())  # pyright: ignore[reportUnknownArgumentType] - of any table
        return [[_plain(key), _plain(each)] for key, each in table.items()]
    if isinstance(value, bytearray | array):
        return [*cast("Sequence[int]", value)]
    return value
