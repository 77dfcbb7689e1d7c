"""
What follows from what happened to a workflow: a pure function from its state, facts and a time to events.

Facts come in any order and number; what is decided is applied at once, so that the next decision sees it, and is returned as
the events that are to be recorded. Nothing of it may be done before they are.
"""

from collections.abc import Sequence
from typing import Final

from kettle_services.dagman.domain.parts import Part, Stop
from kettle_services.dagman.domain.workflow import Workflow
from kettle_wire.codes import DagStatus, NodePart, NodeState
from kettle_wire.events.workflow import (
    JobsRemovalOrdered,
    NodeChange,
    NodesChanged,
    NodeStep,
    SavePointReached,
    ScriptsDeferred,
    ScriptsOrdered,
    WorkflowAborted,
    WorkflowEnded,
    WorkflowEvent,
    WorkflowRerunBegun,
    WorkflowStopping,
)

ORDERS: Final = 1_000
"""So many jobs are ordered at a time: more would not be submitted sooner, and could not be taken back."""
CHANGES: Final = 10_000
"""So many changes are one event."""
_REASON_CHARS: Final = 1_000
"""Of why a script cannot be run."""
_EXIT_CODES: Final = range(256)
_LARGE: Final = 100
"""A limit that is reached in steps of a quarter; small ones in steps of one."""


def react(workflow: Workflow, facts: Sequence[WorkflowEvent], now: float) -> list[WorkflowEvent]:
    """
    The facts, and all that follows from them now, in the order in which it is to be recorded; it is applied already.

    `now`: seconds since the epoch, for scripts that wait for a time.
    """
    deciding = _Deciding(workflow, now)
    for fact in facts:
        deciding.record(fact)
    deciding.proceed()
    return deciding.events


def next_time(workflow: Workflow) -> float | None:
    """
    When the next thing is to be decided although nothing happens; None: never. What is over, or somebody changes, is decided about then:
    a time that has passed, and for which nothing may be done before that, is none.
    """
    times = (
        until
        for step, until in workflow.deferred.values()
        if _may_run(workflow, step) and _script_room(workflow, step.part)
    )
    return min(times, default=None)


def may_be_reused(workflow: Workflow, step: NodeStep) -> bool:
    """Whether the job of a step that is to be submitted may be left out for a result that is there."""
    return (
        workflow.options.memo
        and workflow.stop is None
        and step in workflow.orders
        and step.part == NodePart.JOB
        and step.node not in workflow.joins_nobody
    )


class _Deciding:
    """One reaction."""

    def __init__(self, workflow: Workflow, now: float) -> None:
        self.events: list[WorkflowEvent] = []
        self._workflow = workflow
        self._now = now
        self._changes: list[NodeChange] = []
        self._made = 0

    def record(self, event: WorkflowEvent) -> None:
        """Decide an event."""
        self._flush()
        self._workflow.apply(event)
        self.events.append(event)
        self._made += 1

    def _change(self, node: int, state: NodeState, value: int = 0, *, attempt: int | None = None) -> None:
        workflow = self._workflow
        change = NodeChange(node, state, workflow.attempts[node] if attempt is None else attempt, value)
        workflow.change(change)
        self._changes.append(change)
        self._made += 1
        if len(self._changes) >= CHANGES:
            self._flush()

    def _flush(self) -> None:
        if self._changes:
            self.events.append(NodesChanged(changes=self._changes))
            self._changes = []

    def proceed(self) -> None:
        """Decide until nothing more follows."""
        workflow = self._workflow
        before = -1
        while workflow.ended is None and self._made != before:
            before = self._made
            self._settle_nodes()
            self._defer_scripts()
            self._give_up_futile()
            self._remove_jobs()
            self._run_deferred()
            if workflow.stop is None and workflow.stopping is None:
                self._begin_services()
                self._free_nodes()
                self._begin_scripts()
                self._begin_jobs()
            self._begin_posts()
            self._begin_hold_scripts()
            if self._made == before:
                self._finish()
        self._flush()

    # -- ends of parts -----------------------------------------------------------------------------------------------

    def _settle_nodes(self) -> None:
        workflow = self._workflow
        while workflow.settling:
            for node in list(workflow.settling):
                self._settle(node, workflow.parts[node])
        if workflow.stop is not None:
            self._settle_waiting()

    def _settle_waiting(self) -> None:
        """
        The workflow stops: nodes that wait for a POST script, or to run a script again, have ended, except for the FINAL node.
        """
        workflow = self._workflow
        while (node := workflow.ready_posts.pop()) is not None:
            part = workflow.parts.get(node)
            if part is None or part.value is None or part.step.part == NodePart.POST:
                continue
            if node == workflow.plan.final:
                self._change(node, NodeState.POST, part.value)
            else:
                self._settle(node, part)
        for node in [*workflow.deferred, *workflow.to_defer]:
            if not workflow.may_wait(node):
                self._settle(node, workflow.parts[node])

    def _settle(self, node: int, part: Part) -> None:
        """The last part of a node's attempt is over."""
        workflow, value = self._workflow, part.value
        assert value is not None, f"node {node} has not ended"
        of_pre = part.step.part == NodePart.PRE
        if of_pre and value and value == workflow.plan.pre_skip.get(node):
            self._change(node, NodeState.SKIPPED)
            return
        well = value == 0 and not of_pre
        rule = workflow.plan.aborts.get(node)
        if rule is not None and rule.value == value and workflow.stop is None:
            code = value if rule.exit_code is None else rule.exit_code
            self.record(
                WorkflowAborted(
                    node=node, value=value, exit_code=code if code in _EXIT_CODES else int(bool(code))
                )
            )
        elif not well and self._may_retry(node, value):
            self._change(node, NodeState.READY, attempt=workflow.attempts[node] + 1)
            return
        self._change(node, NodeState.DONE if well else NodeState.FAILED, value)
        if node == workflow.plan.provisioner and not workflow.provisioned and workflow.stop is None:
            self.record(WorkflowAborted(node=node, value=value, exit_code=1))

    def _may_retry(self, node: int, value: int) -> bool:
        rule = self._workflow.plan.retries.get(node)
        if rule is None or self._workflow.stop is not None or value == rule.unless:
            return False
        return self._workflow.attempts[node] - self._workflow.begun_again.get(node, 0) < rule.most

    def _defer_scripts(self) -> None:
        workflow = self._workflow
        if not workflow.to_defer:
            return
        steps = [workflow.parts[node].step for node in workflow.to_defer]
        until = [int(self._now) + self._seconds(step) for step in steps]
        self.record(ScriptsDeferred(steps=steps, until=until))

    def _seconds(self, step: NodeStep) -> int:
        rule = self._workflow.deferral(step)
        return rule.seconds if rule is not None else 0

    def _give_up_futile(self) -> None:
        workflow = self._workflow
        while workflow.doomed:
            for node, cause in list(workflow.doomed.items()):
                self._change(node, NodeState.FUTILE, cause)

    def _remove_jobs(self) -> None:
        """
        Scripts that cannot be run are removed, and so have failed; when the workflow stops all its jobs are, else those of nodes of which too
        many have failed.
        """
        workflow = self._workflow
        stuck: dict[str, list[int]] = {}
        for number, why in workflow.stuck.items():
            stuck.setdefault(f"the script cannot be run: {why}"[:_REASON_CHARS], []).append(number)
        for reason, clusters in stuck.items():
            self.record(JobsRemovalOrdered(clusters=clusters, reason=reason))
        clusters = list(workflow.exceeded)
        reason = "more jobs of the node have failed than is tolerated"
        if workflow.stop is not None:
            reason = (
                "the workflow is removed"
                if workflow.stop.status == DagStatus.REMOVED
                else "the workflow is aborted"
            )
            clusters = [
                number
                for number, cluster in workflow.clusters.items()
                if not cluster.removing and cluster.step.node != workflow.plan.final
            ]
        if clusters:
            self.record(JobsRemovalOrdered(clusters=clusters, reason=reason))

    # -- beginnings --------------------------------------------------------------------------------------------------

    def _begin(self, node: int) -> None:
        """The first part of a node."""
        workflow = self._workflow
        if node in workflow.save_points and not workflow.attempts[node]:
            self.record(SavePointReached(node=node))
        self._change(node, NodeState.PRE if node in workflow.plan.pre else NodeState.QUEUED)

    def _begin_services(self) -> None:
        """What runs beside the graph, or must be there before it."""
        workflow = self._workflow
        provisioner = workflow.plan.provisioner
        for node in (*workflow.plan.services, *(() if provisioner is None else (provisioner,))):
            if workflow.states[node] == NodeState.WAITING:
                self._begin(node)
            part = workflow.parts.get(node)
            if workflow.states[node] == NodeState.PRE and part is not None and part.value == 0:
                self._change(node, NodeState.QUEUED)

    def _free_nodes(self) -> None:
        """Nodes that wait for nobody are ready."""
        workflow = self._workflow
        if not workflow.provisioned:
            return
        for node in list(workflow.unblocked):
            if workflow.states[node] == NodeState.WAITING:
                self._change(node, NodeState.READY, attempt=0)
            else:
                del workflow.unblocked[node]

    def _run_deferred(self) -> None:
        """Scripts whose time has come, those first that wait longest, as far as there is room for them."""
        workflow = self._workflow
        due = [
            (until, step)
            for step, until in workflow.deferred.values()
            if until <= self._now and _may_run(workflow, step)
        ]
        due.sort(key=lambda each: each[0])
        again: list[NodeStep] = []
        for part in (NodePart.PRE, NodePart.POST):
            steps = [step for _, step in due if step.part == part][: _script_room(workflow, part)]
            again += [NodeStep(step.node, step.attempt, part, step.run + 1) for step in steps]
        if again:
            self.record(ScriptsOrdered(steps=again))

    def _begin_scripts(self) -> None:
        workflow = self._workflow
        most = workflow.options.max_pre
        while not workflow.halted and _below(workflow.scripts[NodePart.PRE], most) and self._has_room:
            node = workflow.ready_scripts.pop()
            if node is None:
                return
            if workflow.states[node] == NodeState.READY:
                self._begin(node)

    def _begin_jobs(self) -> None:
        workflow = self._workflow
        if self._enough_waits():
            return
        while not workflow.halted and self._may_submit():
            node = workflow.ready_jobs.pop(self._category_has_room)
            if node is None:
                return
            part = workflow.parts.get(node)
            if workflow.states[node] == NodeState.READY:
                self._begin(node)
            elif (
                workflow.states[node] == NodeState.PRE
                and part is not None
                and part.value == 0
                and node not in workflow.joins_nobody
            ):
                self._change(node, NodeState.QUEUED)

    def _may_submit(self) -> bool:
        workflow = self._workflow
        return (
            self._has_room
            and _below(workflow.in_queue, workflow.options.max_jobs)
            and _below(workflow.idle_jobs, workflow.options.max_idle)
        )

    def _enough_waits(self) -> bool:
        """
        Whether so many jobs wait for a machine that more are ordered later, many at once: they would not run sooner now.
        """
        workflow, options = self._workflow, self._workflow.options
        waiting = workflow.idle_jobs
        return _is_near(waiting, options.max_idle) or _is_near(
            min(waiting, workflow.in_queue), options.max_jobs
        )

    def _category_has_room(self, category: str) -> bool:
        most = self._workflow.category_limits.get(category)
        return most is None or self._workflow.by_category.get(category, 0) < most

    @property
    def _has_room(self) -> bool:
        return len(self._workflow.orders) < ORDERS

    def _begin_posts(self) -> None:
        """POST scripts go on when the workflow is halted."""
        workflow = self._workflow
        while _below(workflow.scripts[NodePart.POST], workflow.options.max_post) and self._has_room:
            node = workflow.ready_posts.pop()
            if node is None:
                return
            part = workflow.parts.get(node)
            if part is not None and part.value is not None and part.step.part != NodePart.POST:
                self._change(node, NodeState.POST, part.value)

    def _begin_hold_scripts(self) -> None:
        workflow = self._workflow
        if workflow.stop is not None:
            return
        room = (
            workflow.options.max_hold - workflow.scripts[NodePart.HOLD]
            if workflow.options.max_hold
            else ORDERS
        )
        steps = [
            NodeStep(node, workflow.attempts[node], NodePart.HOLD, workflow.hold_runs.get(node, 0))
            for node in list(workflow.held_now)[: max(0, room)]
        ]
        if steps:
            self.record(ScriptsOrdered(steps=steps))

    # -- the end -----------------------------------------------------------------------------------------------------

    def _finish(self) -> None:
        """Nothing follows any more: the end is near if nothing runs either."""
        workflow = self._workflow
        if workflow.stopping is None:
            if not self._at_rest():
                return
            if self._may_begin_again():
                self._begin_again()
                return
            if services := [n for n, each in workflow.clusters.items() if not each.removing]:
                self.record(JobsRemovalOrdered(clusters=services, reason="the workflow is at its end"))
            if workflow.clusters or workflow.orders:
                return
            stop = self._result()
            self.record(WorkflowStopping(status=stop.status, exit_code=stop.exit_code))
        self._run_final()

    def _at_rest(self) -> bool:
        """Whether nothing of the graph runs or may begin."""
        workflow, outside = self._workflow, self._workflow.joins_nobody
        if any(step.node not in outside for step in workflow.orders):
            return False
        if any(cluster.step.node not in outside for cluster in workflow.clusters.values()):
            return False
        if workflow.stop is not None:
            return True
        if workflow.to_remember:
            return False
        if any(part.value is None or part.step.part == NodePart.JOB for part in workflow.parts_of_graph()):
            return False  # a POST script waits for its turn
        if workflow.halted:
            waits = (step for step, _ in workflow.deferred.values() if step.node not in outside)
            return not any(_may_run(workflow, step) for step in waits)
        counts = workflow.counts
        live = (NodeState.READY, NodeState.PRE, NodeState.QUEUED, NodeState.POST)
        return not any(counts[state] for state in live) and not workflow.unblocked

    def _may_begin_again(self) -> bool:
        workflow = self._workflow
        return (
            workflow.reruns < workflow.options.reruns
            and workflow.stop is None
            and not workflow.halted
            and self._result().status == DagStatus.NODE_FAILED
        )

    def _begin_again(self) -> None:
        """What has failed begins again, and what could never run because of it waits."""
        workflow = self._workflow
        of_graph = [node for node in range(len(workflow.states)) if node not in workflow.joins_nobody]
        failed = [node for node in of_graph if workflow.states[node] == NodeState.FAILED]
        futile = [node for node in of_graph if workflow.states[node] == NodeState.FUTILE]
        self.record(WorkflowRerunBegun(nodes=failed))
        for node in futile:
            self._change(node, NodeState.WAITING)
        for node in failed:
            self._change(node, NodeState.READY, attempt=workflow.attempts[node] + 1)

    def _result(self) -> Stop:
        workflow, counts = self._workflow, self._workflow.counts
        if workflow.stop is not None:
            return workflow.stop
        if counts[NodeState.FAILED] or counts[NodeState.FUTILE]:
            return Stop(DagStatus.NODE_FAILED, 1)
        if not counts[NodeState.READY] + counts[NodeState.WAITING] + counts[NodeState.PRE]:
            return Stop(DagStatus.OK, 0)
        return Stop(DagStatus.HALTED if workflow.halted else DagStatus.CYCLE, 1)

    def _run_final(self) -> None:
        """The FINAL node, whose result alone counts, except for a workflow that was removed."""
        workflow, node = self._workflow, self._workflow.plan.final
        assert workflow.stopping is not None, "the last node comes after all others"
        result = Stop(DagStatus(workflow.stopping.status), workflow.stopping.exit_code)
        if workflow.stop is not None and workflow.stop.status == DagStatus.REMOVED:
            result = workflow.stop
        if node is not None:
            part = workflow.parts.get(node)
            match NodeState(workflow.states[node]):
                case NodeState.WAITING:
                    self._begin(node)
                    return
                case NodeState.PRE if part is not None and part.value == 0 and node not in workflow.deferred:
                    self._change(node, NodeState.QUEUED)
                    return
                case NodeState.DONE | NodeState.SKIPPED if result.status != DagStatus.REMOVED:
                    result = Stop(DagStatus.OK, 0)
                case NodeState.FAILED if result.status != DagStatus.REMOVED:
                    result = Stop(DagStatus.NODE_FAILED, 1)
                case NodeState.PRE | NodeState.QUEUED | NodeState.POST:
                    return
                case _:
                    pass
        self.record(WorkflowEnded(status=result.status, exit_code=result.exit_code))


def _may_run(workflow: Workflow, step: NodeStep) -> bool:
    """
    Whether a script that waits may run again when its time has come: at the end only one of the FINAL node, and no PRE script while the
    workflow is halted.
    """
    if workflow.stopping is not None:
        return step.node == workflow.plan.final
    return not (workflow.halted and step.part == NodePart.PRE)


def _script_room(workflow: Workflow, part: int) -> int:
    """How many more scripts of a part may run."""
    most = workflow.options.max_pre if part == NodePart.PRE else workflow.options.max_post
    return max(0, most - workflow.scripts[part]) if most else len(workflow.states)


def _below(count: int, most: int) -> bool:
    """Whether one more may begin; 0: there is no limit."""
    return not most or count < most


def _is_near(count: int, most: int) -> bool:
    """Whether less than a quarter is left of a large limit; 0: there is none."""
    return most >= _LARGE and count > most - most // 4
