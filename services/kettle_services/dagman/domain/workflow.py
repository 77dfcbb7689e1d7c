"""A workflow as its events left it."""

from array import array
from collections.abc import Iterator
from typing import Final, assert_never

from kettle_services.dagman.domain.graph import Graph, words
from kettle_services.dagman.domain.parts import Cluster, Part, ReadyQueue, Stop, check_numbers
from kettle_wire.codes import DagStatus, HoldCode, NodeJobKind, NodePart, NodeState, NodeValue
from kettle_wire.events.workflow import (
    JobsRemovalOrdered,
    NodeChange,
    NodeJobFact,
    NodeJobsSeen,
    NodeReuse,
    NodesChanged,
    NodesRemembered,
    NodesReused,
    NodeStep,
    SavePointReached,
    ScriptsDeferred,
    ScriptsOrdered,
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
    WorkflowThrottled,
)
from kettle_wire.workflows import Deferral, unpacked

_LIVE: Final = frozenset({NodeState.PRE, NodeState.QUEUED, NodeState.POST})
_REMOVED: Final = frozenset({NodeJobKind.ABORTING, NodeJobKind.REMOVED})
_OVER: Final = frozenset({NodeJobKind.COMPLETED, NodeJobKind.REMOVED})
_TO_BE_RELEASED: Final = frozenset({
    HoldCode.Unspecified, HoldCode.UserRequest, HoldCode.JobPolicy, HoldCode.SystemPolicy,
})  # fmt: skip
"""Why a script is held that somebody, or a policy, may release, or of which an earlier version has not recorded why."""


class Workflow:
    """
    The state of one workflow. Only `apply` changes it, so that what is decided live and what is read from the log are one.

    What follows from an event without being decided (who waits for nobody any more, which part of a node is over) is put on
    lists, from which `domain.decisions` takes it; the events that it makes of it take it off.
    """

    def __init__(self, started: WorkflowStarted) -> None:  # noqa: PLR0915 - what a workflow has, one line each
        """Raises ValueError for a plan that is none."""
        self.number = started.workflow
        self.owner = started.owner
        self.started = started
        self.plan = plan = unpacked(started.plan)
        self.graph = Graph(plan)
        count = len(plan.names)
        check_numbers(plan, count)
        self.options = started.options
        self.category_limits = dict(plan.category_limits)
        self.joins_nobody: Final = frozenset(
            node for node in (plan.final, plan.provisioner, *plan.services) if node is not None
        )
        """Nodes outside of the graph."""
        self.noop: Final = frozenset(plan.noop)
        self.holds: Final = frozenset(plan.hold)
        self.save_points: Final = frozenset(plan.save_points)
        self.states = bytearray(count)
        self.attempts = array("I", bytes(4 * count))
        self.reruns = 0
        """How often nodes that have failed have begun again together."""
        self.begun_again: dict[int, int] = {}
        """By node the attempt with which it did so last."""
        self.counts = [0] * len(NodeState)
        self.counts[NodeState.WAITING] = count - len(self.joins_nobody)
        """How many nodes of the graph are in each state."""
        self.parts: dict[int, Part] = {}
        """What nodes do that have begun an attempt and not ended it."""
        self.values: dict[int, int] = {}
        """Node values other than 0 of nodes that have ended."""
        self.removals: dict[int, str] = {}
        """Of nodes of which a job was removed why that was."""
        self.refusals: dict[int, str] = {}
        """Of nodes of which something could not be submitted why that was."""
        self.causes: dict[int, int] = {}
        """Of futile nodes the one because of which they are."""
        self.clusters: dict[int, Cluster] = {}
        """Those that have jobs."""
        self.orders: dict[NodeStep, None] = {}
        """What is to be submitted, and was not seen yet, in order."""
        self.deferred: dict[int, tuple[NodeStep, int]] = {}
        """By node: the script that runs again, and when, seconds since the epoch."""
        self.hold_runs: dict[int, int] = {}
        """By node how many HOLD scripts were ordered."""
        self.held_now: dict[int, None] = {}
        """Nodes of which a job was held since HOLD scripts were last ordered."""
        self.unblocked: dict[int, None] = {}
        self.doomed: dict[int, int] = {}
        """Nodes that can never run, and because of which."""
        self.settling: dict[int, None] = {}
        """Nodes whose last part is over."""
        self.to_defer: dict[int, None] = {}
        """Nodes whose script wants to run again later."""
        self.to_remember: dict[NodeStep, None] = {}
        """Jobs of nodes that have ended well, of which is to be told what they have left."""
        self.reuses: dict[int, NodeReuse] = {}
        """Of nodes that are done without a job whose result they have."""
        self.exceeded: dict[int, None] = {}
        """Clusters of which more have failed than is tolerated."""
        self.stuck: dict[int, str] = {}
        """Clusters of scripts that are held, and not by a person, and why: they cannot be run."""
        urgency = words(plan.urgency)
        if urgency and len(urgency) != count:
            raise ValueError(f"the plan has {count} nodes, and says of {len(urgency)} how urgent they are")
        self.ready_scripts = ReadyQueue(plan.priorities, {}, urgency)
        """Nodes whose PRE script may run."""
        self.ready_jobs = ReadyQueue(plan.priorities, plan.categories, urgency)
        """Nodes whose jobs may be submitted."""
        self.ready_posts = ReadyQueue({}, {})
        self.in_queue = 0
        """Nodes that have jobs in the queue, or are to get them."""
        self.clustered = 0
        """How many of these nodes have jobs."""
        self.by_category: dict[str, int] = {}
        self.scripts = [0, 0, 0, 0]
        """Scripts that run or are to run, by part."""
        self.procs = {NodeJobKind.EVICTED: 0, NodeJobKind.STARTED: 0, NodeJobKind.HELD: 0}
        """Jobs of nodes that wait for a machine, run, are held."""
        self.submitted = 0
        self.completed = 0
        self.halted = False
        self.halted_because = ""
        self.provisioned = plan.provisioner is None
        self.stop: Stop | None = None
        self.stopping: WorkflowStopping | None = None
        self.ended: WorkflowEnded | None = None
        self.frame = started.followed
        """The last frame of the schedd's shard that had something of it."""
        for node in range(count):
            if not self.graph.waits(node) and node not in self.joins_nobody:
                self.unblocked[node] = None
        for node in plan.done:
            self._enter(node, NodeState.DONE)
            self._finished(node, well=True)

    # -- events ------------------------------------------------------------------------------------------------------

    def apply(self, event: WorkflowEvent) -> None:  # noqa: C901, PLR0912 - a case for each event
        """Take in one event, however it came about."""
        match event:
            case NodesChanged():
                for change in event.changes:
                    self.change(change)
            case NodeJobsSeen():
                self.frame = event.frame
                for fact in event.facts:
                    self._see(fact)
                for place, reason in event.reasons.items():
                    self._keep_reason(event.facts[place], reason)
            case SubmissionsFailed():
                for failure in event.failures:
                    self.refusals[failure.step.node] = failure.reason
                    self._not_submitted(failure.step)
            case ScriptsOrdered():
                for step in event.steps:
                    self._ordered_again(step)
            case ScriptsDeferred():
                for step, until in zip(event.steps, event.until, strict=True):
                    self.to_defer.pop(step.node, None)
                    self.deferred[step.node] = step, until
            case JobsRemovalOrdered():
                for cluster in event.clusters:
                    self.exceeded.pop(cluster, None)
                    self.stuck.pop(cluster, None)
                    if cluster in self.clusters:
                        self.clusters[cluster].removing = True
            case WorkflowThrottled():
                self.options, self.category_limits = event.options, dict(event.categories)
            case WorkflowHalted():
                self.halted, self.halted_because = True, event.reason
            case WorkflowResumed():
                self.halted, self.halted_because = False, ""
            case WorkflowAborted():
                status = DagStatus.ABORTED if event.exit_code else DagStatus.OK
                self.stop = self.stop or Stop(status, event.exit_code)
            case WorkflowRemoved():
                self.stop = Stop(DagStatus.REMOVED, 2)
            case WorkflowRerunBegun():
                self._begin_again(event.nodes)
            case WorkflowStopping():
                self.stopping = event
            case WorkflowEnded():
                self.ended = event
            case NodesReused():
                for reuse in event.reuses:
                    self._reused(reuse)
            case NodesRemembered():
                told = {*event.others, *(memory.node for memory in event.memories)}
                for step in [step for step in self.to_remember if step.node in told]:
                    del self.to_remember[step]
            case SavePointReached() | WorkflowStarted():
                pass
            case _:
                assert_never(event)

    def change(self, change: NodeChange) -> None:
        """One node comes into another state."""
        node, state = change.node, NodeState(change.state)
        if state not in _LIVE:
            self._leave_part(node, is_done=state == NodeState.DONE)
        self._enter(node, state)
        match state:
            case NodeState.READY:
                self.attempts[node] = change.attempt
                self.unblocked.pop(node, None)
                (self.ready_scripts if node in self.plan.pre else self.ready_jobs).push(node)
            case NodeState.PRE:
                self._begin(node, NodePart.PRE)
            case NodeState.QUEUED:
                self._begin(node, NodePart.JOB)
            case NodeState.POST:
                self._begin(node, NodePart.POST)
            case NodeState.DONE | NodeState.SKIPPED:
                self._finished(node, well=True)
            case NodeState.FAILED:
                self.values[node] = change.value
                self._finished(node, well=False)
            case NodeState.FUTILE:
                self._never_runs(node, change.value)
            case NodeState.WAITING:
                self.causes.pop(node, None)  # what it waits for begins again
            case _:
                raise AssertionError(f"a node is never recorded as {state.name}")

    # -- parts of nodes ----------------------------------------------------------------------------------------------

    def _begin(self, node: int, part: NodePart) -> None:
        """A part begins: it is ordered, unless there is nothing to submit."""
        step = NodeStep(node, self.attempts[node], part)
        now = self.parts[node] = Part(step)
        self.to_defer.pop(node, None)  # the FINAL node of an aborted workflow went on in old recordings
        if part is not NodePart.JOB:
            self.scripts[part] += 1
            self.orders[step] = None
        elif node in self.noop:
            self._part_over(node, now, 0)
        else:
            self.orders[step] = None
            self._count_in_queue(node, 1)

    def _count_in_queue(self, node: int, more: int) -> None:
        if node in self.joins_nobody:
            return
        self.in_queue += more
        if category := self.plan.categories.get(node):
            self.by_category[category] = self.by_category.get(category, 0) + more

    def _ordered_again(self, step: NodeStep) -> None:
        """A deferred script whose time has come, or a HOLD script."""
        self.scripts[step.part] += 1
        self.orders[step] = None
        if step.part == NodePart.HOLD:
            self.hold_runs[step.node] = step.run + 1
            self.held_now.pop(step.node, None)
            return
        self.deferred.pop(step.node, None)
        self.parts[step.node] = Part(step)

    def _part_over(self, node: int, part: Part, value: int) -> None:
        """
        A part came to a value: where the node goes from there. That is fixed by the plan; whether it may go there is decided.
        """
        part.value = value
        kind = part.step.part
        if kind == NodePart.JOB:
            if node not in self.noop:
                self._count_in_queue(node, -1)
        else:
            self.scripts[kind] -= 1
            rule = self.deferral(part.step)
            if rule is not None and rule.status == value and self.may_wait(node):
                self.to_defer[node] = None
                return
        if kind == NodePart.PRE and value == 0 and not self._aborts(node, value):
            self.ready_jobs.push(node)
        elif self._post_follows(node, kind, value):
            self.ready_posts.push(node)
        else:
            self.settling[node] = None

    def _post_follows(self, node: int, kind: int, value: int) -> bool:
        """Whether a POST script comes after a part that is over."""
        if node not in self.plan.post or (self.stop is not None and node != self.plan.final):
            return False
        if kind == NodePart.JOB:
            return True
        skipped = value and value == self.plan.pre_skip.get(node)
        return (
            kind == NodePart.PRE
            and self.options.always_run_post
            and not skipped
            and not self._aborts(node, value)
        )

    def _aborts(self, node: int, value: int) -> bool:
        rule = self.plan.aborts.get(node)
        return rule is not None and rule.value == value and self.stop is None

    def may_wait(self, node: int) -> bool:
        """
        Whether a node may wait for a script that wants to run again: when the workflow stops only the FINAL node, unless it is removed.
        """
        if self.stop is None:
            return True
        return node == self.plan.final and self.stop.status != DagStatus.REMOVED

    def deferral(self, step: NodeStep) -> Deferral | None:
        """When the script of a step wants to run again later."""
        match step.part:
            case NodePart.PRE:
                return self.plan.pre.get(step.node)
            case NodePart.POST:
                return self.plan.post.get(step.node)
            case _:
                return None

    def _leave_part(self, node: int, *, is_done: bool) -> None:
        """The attempt is over; if the node is done by its job, what this has left may be used again."""
        part = self.parts.pop(node, None)
        is_asked = is_done and self.options.memo and node not in self.joins_nobody
        if is_asked and part is not None and part.cluster and part.step.part == NodePart.JOB:
            self.to_remember[part.step] = None
        self.settling.pop(node, None)
        self.to_defer.pop(node, None)
        self.deferred.pop(node, None)

    # -- jobs --------------------------------------------------------------------------------------------------------

    def _see(self, fact: NodeJobFact) -> None:
        """Something happened to a job of a node."""
        if fact.kind == NodeJobKind.SUBMITTED:
            self._submitted(fact)
            return
        cluster = self.clusters.get(fact.cluster)
        if cluster is None:
            return
        if fact.kind == NodeJobKind.PROVISIONED:
            self.provisioned = self.provisioned or fact.step.node == self.plan.provisioner
            return
        if fact.kind == NodeJobKind.UNMADE:
            self._gone(fact.cluster, cluster, fact.value)
            self._count_procs(cluster, NodeJobKind.EVICTED, -fact.value)
            return
        before = cluster.procs.get(fact.proc, NodeJobKind.EVICTED)
        if before in _OVER:
            return
        if fact.kind == NodeJobKind.EVICTED and before != NodeJobKind.STARTED:
            return  # what was held or removed meanwhile stays so
        now = NodeJobKind.EVICTED if fact.kind == NodeJobKind.RELEASED else NodeJobKind(fact.kind)
        cluster.procs[fact.proc] = now
        self._count_procs(cluster, before, -1)
        self._count_procs(cluster, now, 1)
        if now == NodeJobKind.HELD:
            self._held(fact, cluster)
        else:
            self.stuck.pop(fact.cluster, None)
        if now in _OVER:
            self._job_over(fact, cluster)

    def _keep_reason(self, fact: NodeJobFact, reason: str) -> None:
        if fact.kind in _REMOVED:
            self.removals[fact.step.node] = reason
        elif fact.cluster in self.stuck:
            self.stuck[fact.cluster] = reason

    def _held(self, fact: NodeJobFact, cluster: Cluster) -> None:
        if fact.step.part == NodePart.JOB:
            if fact.step.node in self.holds:
                self.held_now[fact.step.node] = None
        elif fact.value not in _TO_BE_RELEASED and not cluster.removing:
            self.stuck[fact.cluster] = ""

    def _count_procs(self, cluster: Cluster, kind: int, more: int) -> None:
        kind = NodeJobKind.STARTED if kind == NodeJobKind.ABORTING else NodeJobKind(kind)
        if cluster.step.part == NodePart.JOB and kind in self.procs:
            self.procs[kind] += more

    def _submitted(self, fact: NodeJobFact) -> None:
        self.orders.pop(fact.step, None)
        cluster = self.clusters[fact.cluster] = Cluster(
            step=fact.step, live=fact.value, total=fact.value, procs={}
        )
        self._count_procs(cluster, NodeJobKind.EVICTED, fact.value)
        if fact.step.part == NodePart.JOB:
            self.submitted += fact.value
            self.clustered += fact.step.node not in self.joins_nobody
        part = self.parts.get(fact.step.node)
        if part is not None and part.step == fact.step:
            part.cluster = fact.cluster

    def _job_over(self, fact: NodeJobFact, cluster: Cluster) -> None:
        value = int(NodeValue.REMOVED) if fact.kind == NodeJobKind.REMOVED else fact.value
        if fact.step.part == NodePart.JOB:
            self.completed += 1
        if value:
            cluster.value = cluster.value or value
            cluster.failed += 1
            rule = self.plan.tolerances.get(cluster.step.node)
            waits = rule is not None and rule.wait
            if self._fails(cluster) and cluster.live > 1 and not waits and not cluster.removing:
                self.exceeded[fact.cluster] = None
        self._gone(fact.cluster, cluster, 1)

    def _fails(self, cluster: Cluster) -> bool:
        rule = self.plan.tolerances.get(cluster.step.node)
        if rule is None or cluster.step.part != NodePart.JOB:
            return cluster.failed > 0
        return not rule.covers(cluster.failed, cluster.total)

    def _gone(self, number: int, cluster: Cluster, count: int) -> None:
        """Jobs of a cluster have ended, or will never be; with the last one its part is over."""
        cluster.live -= count
        if cluster.live > 0:
            return
        del self.clusters[number]
        self.exceeded.pop(number, None)
        self.stuck.pop(number, None)
        step = cluster.step
        self.clustered -= step.part == NodePart.JOB and step.node not in self.joins_nobody
        if step.part == NodePart.HOLD:
            self.scripts[NodePart.HOLD] -= 1
            return
        part = self.parts.get(step.node)
        if part is not None and part.step == step and part.value is None:
            self._part_over(step.node, part, cluster.value if self._fails(cluster) else 0)

    def _not_submitted(self, step: NodeStep) -> None:
        if self.orders.pop(step, False) is False:
            return
        if step.part == NodePart.HOLD:
            self.scripts[NodePart.HOLD] -= 1
            return
        part = self.parts.get(step.node)
        if part is not None and part.step == step:
            self._part_over(step.node, part, NodeValue.SUBMIT_FAILED)

    def _reused(self, reuse: NodeReuse) -> None:
        """A node has the result of another one: its job is over before it was submitted."""
        if self.orders.pop(reuse.step, False) is False:
            return
        part = self.parts.get(reuse.step.node)
        if part is not None and part.step == reuse.step:
            self.reuses[reuse.step.node] = reuse
            self._part_over(reuse.step.node, part, 0)

    # -- nodes -------------------------------------------------------------------------------------------------------

    def _enter(self, node: int, state: NodeState) -> None:
        if node not in self.joins_nobody:
            self.counts[self.states[node]] -= 1
            self.counts[state] += 1
        self.states[node] = state

    def _begin_again(self, nodes: list[int]) -> None:
        """
        These have failed and are as if they had never run: the graph is counted once more, by those that have ended well.
        """
        self.reruns += 1
        self.graph = Graph(self.plan)
        for node in nodes:
            self.begun_again[node] = self.attempts[node] + 1
        for node, state in enumerate(self.states):
            if state in {NodeState.DONE, NodeState.SKIPPED} and node not in self.joins_nobody:
                for _ in self.graph.finished(node, well=True):
                    pass  # those behind it are done, too, have failed, or wait for one that has

    def _finished(self, node: int, *, well: bool) -> None:
        self.unblocked.pop(node, None)
        self.doomed.pop(node, None)
        for other, free in self.graph.finished(node, well=well):
            if not free:
                self._doom(other, node)
            elif self.states[other] == NodeState.WAITING:
                self.unblocked[other] = None

    def _never_runs(self, node: int, cause: int) -> None:
        self.doomed.pop(node, None)
        self.causes[node] = cause
        for other, _ in self.graph.never_ran(node):
            self._doom(other, node)

    def _doom(self, node: int, cause: int) -> None:
        if self.states[node] == NodeState.WAITING:
            self.doomed[node] = self.causes.get(cause, cause)

    @property
    def idle_jobs(self) -> int:
        """Jobs that wait for a machine, and those that are to be submitted, each for one."""
        ordered = self.in_queue - self.clustered
        return self.procs[NodeJobKind.EVICTED] + ordered

    def parts_of_graph(self) -> Iterator[Part]:
        """What the nodes of the graph do."""
        return (part for node, part in self.parts.items() if node not in self.joins_nobody)

    def state(self, node: int) -> NodeState:
        """What people call the state of a node."""
        state = NodeState(self.states[node])
        part = self.parts.get(node)
        if state is NodeState.QUEUED and part is not None and part.cluster in self.clusters:
            procs = self.clusters[part.cluster].procs.values()
            if NodeJobKind.STARTED in procs:
                return NodeState.RUNNING
        return state
