"""The file with which a DAG is run again: a partial DAG file that says what counts as done."""

from collections.abc import Iterator, Mapping, Sequence

from kettle.dag.files.rescue import RescueNode, rescue, rescue_heading
from kettle.dag.rerun import Rerun
from kettle_wire.codes import NodeState
from kettle_wire.workflows import Plan


def rerun_lines(
    dag_files: Sequence[str], plan: Plan, found: Rerun, states: Mapping[str, int], at: float
) -> Iterator[str]:
    """Its lines; `states` are those in which the earlier run has left its nodes, `at` is now."""
    done = set(found.done)
    nodes = [
        RescueNode(name, done=node in done, failed=states.get(name) == NodeState.FAILED)
        for node, name in enumerate(plan.names)
    ]
    return rescue(rescue_heading(dag_files), at, nodes, total=len(nodes), keep_retries=False)
