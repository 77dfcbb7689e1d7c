"""Why a node is where it is, in one sentence, by what its workflow's events say."""

from typing import Final

from kettle.dag.edges import Adjacency, Edges
from kettle.dag.reuse import reused
from kettle.dag.view.run_view import RunView
from kettle.dag.view.steps import Phase
from kettle_wire.codes import NodePart, NodeState, NodeValue
from kettle_wire.workflows import Plan

_SHOWN: Final = 3
"""Parents that are named."""
_FINISHED: Final = frozenset({NodeState.DONE, NodeState.SKIPPED, NodeState.FAILED})


def edges_of(plan: Plan) -> Edges:
    """The edges of a plan."""
    vertices = len(plan.names) + plan.joins
    starts = plan.starts or bytes(4 * (vertices + 1))
    return Edges(len(plan.names), plan.joins, starts, plan.ends, plan.weak)


class Reasons:
    """Says them for the nodes of one workflow."""

    def __init__(self, view: RunView) -> None:
        self._view = view
        self._parents: Adjacency = edges_of(view.plan).parents()

    def of(self, node: int) -> str:
        """Empty for a node that has run well."""
        view = self._view
        said = view.said.get(node, "")
        match view.state(node):
            case NodeState.WAITING:
                return self._waiting(node)
            case NodeState.READY:
                return self._turn()
            case NodeState.PRE | NodeState.POST as state:
                part = NodePart[state.name]
                job = next((each for each in view.jobs_now(node) if each.part == part), None)
                return f"its {state.name} script {f'is job {job.cluster}.0' if job else 'is to be run'}"
            case NodeState.QUEUED:
                return _queued(view.phase(node), said)
            case NodeState.RUNNING:
                return ""
            case NodeState.DONE:
                reuse = view.reuses.get(node)
                return "" if reuse is None else f"it was not run: {reused(reuse)}"
            case NodeState.FAILED:
                words = words_of_value(view.values.get(node, 0))
                return f"{words}: {said}" if said else words
            case NodeState.FUTILE:
                cause = view.plan.names[view.values.get(node, 0)]
                return f"it can never run, because {cause} has failed"
            case NodeState.SKIPPED:
                return "its PRE script said that nothing is to be done"

    def waits_for(self, node: int) -> list[str]:
        """The names of nodes that come before it and have not finished."""
        view = self._view
        return [
            view.plan.names[each]
            for each in self._parents.nodes_of(node)
            if view.states[each] not in _FINISHED
        ]

    def _waiting(self, node: int) -> str:
        view = self._view
        if view.ended is not None:
            return "the workflow is over; it has not run"
        left = self.waits_for(node)
        if not left:
            return (
                "it comes last, when nothing else runs" if node == view.plan.final else "it is about to begin"
            )
        more = f" and {len(left) - _SHOWN} more" if len(left) > _SHOWN else ""
        return f"it waits for {', '.join(left[:_SHOWN])}{more}"

    def _turn(self) -> str:
        view = self._view
        if view.ended is not None:
            return "the workflow is over; it has not run"
        if view.halted:
            because = f": {view.halted_because}" if view.halted_because else ""
            return f"the workflow is halted{because}"
        most, there = view.options.max_jobs, view.counts[NodeState.QUEUED] + view.counts[NodeState.RUNNING]
        if most and there >= most:
            return f"it waits for its turn: {there:,} nodes have jobs, and that is the most (maxjobs)"
        return "all that it waits for has finished; it waits for its turn"


def _queued(phase: Phase, said: str) -> str:
    match phase:
        case Phase.MACHINE:
            return "its jobs wait for a machine"
        case Phase.HELD:
            return f"its jobs are on hold{f': {said}' if said else ''}"
        case Phase.RUNNING:
            return "its jobs have ended"
        case _:
            return "its jobs are to be submitted"


def words_of_value(value: int) -> str:
    """What a node value means, or how a job has ended."""
    match value:
        case NodeValue.SUBMIT_FAILED:
            return "its jobs could not be submitted"
        case NodeValue.REMOVED:
            return "a job of it was removed"
        case NodeValue.PRE_FAILED:
            return "its PRE script has failed"
        case _ if value < 0:
            return f"signal {-value}"
        case _:
            return f"exit code {value}"
