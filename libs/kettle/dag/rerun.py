"""
Which nodes a new run of a DAG runs, after one that is over: what has succeeded counts as done, or only some nodes run again.

Pure, and by names: the DAG may have other nodes by now.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from kettle.dag.edges import Edges
from kettle.terminal.nearest_names import did_you_mean
from kettle_wire.codes import NodeState
from kettle_wire.workflows import Plan

_SUCCEEDED = frozenset({NodeState.DONE, NodeState.SKIPPED})


class RerunError(ValueError):
    """These nodes cannot be run again; the message says which, and why."""


class Rerun(msgspec.Struct, frozen=True):
    """What a new run does; nodes are places in the names of its plan."""

    done: tuple[int, ...]
    """Those that count as done."""
    runs: tuple[int, ...]
    """The others, in the order of the plan; those beside the graph, as FINAL, are among them."""
    assumed: tuple[int, ...] = ()
    """Of `done` those that have never succeeded: `only` says that they are not wanted."""


def rerun(
    plan: Plan, states: Mapping[str, int], *, after: Sequence[str] = (), only: Sequence[str] = ()
) -> Rerun:
    """
    What runs when the DAG of `plan` is run again after a run that left its nodes in these states (`NodeState`).

    Nodes that have not succeeded run, and so do new ones.  `after`: these, and all that descend from them, run also where they
    have succeeded.  `only`: these run and no others.  `plan.done`: what the DAG itself marks as done, without what counted as
    done in the earlier run only.
    Raises `RerunError`.
    """
    outside = {node for node in (plan.final, plan.provisioner, *plan.services) if node is not None}
    succeeded = {node for node, name in enumerate(plan.names) if states.get(name) in _SUCCEEDED} - outside
    if only:
        runs = set(_named(only, plan, outside))
    else:
        again = set(_with_descendants(plan, _named(after, plan, outside)))
        runs = {node for node in range(len(plan.names)) if node not in succeeded or node in again} - outside
    fixed = runs.intersection(plan.done)
    if named := fixed.intersection(_named([*after, *only], plan, outside)):
        name = plan.names[min(named)]
        raise RerunError(
            f"node {name} is marked as DONE in the DAG file: take the word off its line to run it again"
        )
    runs -= fixed
    done = [node for node in range(len(plan.names)) if node not in runs and node not in outside]
    return Rerun(
        done=tuple(done),
        runs=tuple(sorted(runs | outside)),
        assumed=tuple(node for node in done if node not in succeeded and node not in plan.done),
    )


def _named(names: Iterable[str], plan: Plan, outside: set[int]) -> list[int]:
    wanted = list(names)
    if not wanted:
        return []
    places = {name: node for node, name in enumerate(plan.names)}
    found: list[int] = []
    for name in wanted:
        if name not in places:
            raise RerunError(f"the DAG has no node {name}{did_you_mean(name, plan.names)}")
        if places[name] in outside:
            raise RerunError(f"node {name} is beside the graph: it runs in every run")
        found.append(places[name])
    return found


def _with_descendants(plan: Plan, nodes: Sequence[int]) -> Iterator[int]:
    """The nodes themselves and all that wait for them, directly or not."""
    if not nodes:
        return
    children = Edges(len(plan.names), plan.joins, plan.starts, plan.ends, plan.weak).children()
    seen = set(nodes)
    stack = list(nodes)
    while stack:
        vertex = stack.pop()
        if vertex < len(plan.names):
            yield vertex
        new = [child for child in children.of(vertex) if child not in seen]
        seen.update(new)
        stack += new
