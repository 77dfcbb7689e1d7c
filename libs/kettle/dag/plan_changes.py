"""
How the DAG of a workflow differs from the one with which the workflow has begun.

Nodes are numbers to the service that decides: if the process of the DAG job counts them in another way, it runs one for another.
"""

from collections.abc import Iterator
from typing import Final

import msgspec

from kettle.dag.edges import Adjacency, Edges
from kettle_wire.workflows import Plan

_LISTS: Final = ("noop", "done", "services", "hold", "save_points")
_TABLES: Final = (
    "priorities", "retries", "pre", "post", "pre_skip", "aborts", "tolerances", "categories",
)  # fmt: skip
_ONE: Final = ("final", "provisioner")


class PlanChanges(msgspec.Struct, frozen=True):
    """What is different."""

    nodes: tuple[str, ...]
    """The nodes that are new, that are there no longer, or of which something else is said, in the order of their names."""
    order: bool
    """Whether nodes have other numbers."""
    limits: bool
    """Whether categories have other limits."""

    def __bool__(self) -> bool:
        return bool(self.nodes or self.order or self.limits)


_NOTHING: Final = object()
"""A script without a deferral is None in its table."""


def plan_changes(before: Plan, now: Plan) -> PlanChanges:
    """What is different; how urgent nodes are is worked out each time, and counts for nothing."""
    if msgspec.structs.replace(before, urgency=b"") == msgspec.structs.replace(now, urgency=b""):
        return PlanChanges((), order=False, limits=False)
    said, is_said = dict(_said(before)), dict(_said(now))
    differ = {name for name in said.keys() | is_said.keys() if said.get(name) != is_said.get(name)}
    return PlanChanges(
        tuple(sorted(differ)),
        order=before.names != now.names,
        limits=before.category_limits != now.category_limits,
    )


def _said(plan: Plan) -> Iterator[tuple[str, object]]:
    """What is said of each node, whatever its number is."""
    parents = Edges(len(plan.names), plan.joins, plan.starts, plan.ends, plan.weak).parents()
    tables = [getattr(plan, name) for name in _TABLES]
    lists = [frozenset(getattr(plan, name)) for name in _LISTS]
    ones = [getattr(plan, name) for name in _ONE]
    for node, name in enumerate(plan.names):
        yield (
            name,
            (
                frozenset(_waits_for(plan, parents, node)),
                *(table.get(node, _NOTHING) for table in tables),
                *(node in each for each in lists),
                *(node == each for each in ones),
            ),
        )


def _waits_for(plan: Plan, parents: Adjacency, vertex: int) -> Iterator[tuple[str, int]]:
    """The parents of a node, seen through joins, each with whether that edge is weak."""
    for parent, weak in zip(parents.of(vertex), parents.weakness_of(vertex), strict=True):
        if parent < len(plan.names):
            yield plan.names[parent], weak
        else:
            yield from _waits_for(plan, parents, parent)
