"""What a workflow consists of while it runs: parts of nodes, their jobs, who waits for a turn."""

from collections.abc import Callable, Sequence
from heapq import heappop, heappush

import msgspec

from kettle_wire.codes import DagStatus
from kettle_wire.events.workflow import NodeStep
from kettle_wire.workflows import Plan


class Cluster(msgspec.Struct):
    """The jobs that were submitted for one step of a node."""

    step: NodeStep
    live: int
    """Jobs that have not ended."""
    total: int
    failed: int = 0
    value: int = 0
    """Of the first job that failed."""
    removing: bool = False
    """What is left of it is to be removed."""
    procs: dict[int, int] = {}
    """The last fact of each job that is not just waiting."""


class Part(msgspec.Struct):
    """What a node does now: one part of one attempt."""

    step: NodeStep
    cluster: int = 0
    """0: nothing is submitted (yet)."""
    value: int | None = None
    """What it came to; None: it is under way."""


class Stop(msgspec.Struct, frozen=True):
    """Why the nodes of a workflow stop before all of them have run."""

    status: DagStatus
    exit_code: int


class ReadyQueue:
    """
    Nodes that wait for their turn: by priority, then by urgency, then by when they came.

    Those of one category stand together, so that a category that is full is passed over at once. A node that has gone
    elsewhere may still be there.
    """

    def __init__(
        self, priorities: dict[int, int], categories: dict[int, str], urgency: Sequence[int] = ()
    ) -> None:
        self._priorities = priorities
        self._urgency = urgency
        self._categories = categories
        self._heaps: dict[str, list[tuple[int, int, int, int]]] = {}
        self._count = 0

    def push(self, node: int) -> None:
        """Add a node."""
        self._count += 1
        heap = self._heaps.setdefault(self._categories.get(node, ""), [])
        urgency = self._urgency[node] if self._urgency else 0
        heappush(heap, (-self._priorities.get(node, 0), -urgency, self._count, node))

    def pop(self, may_begin: Callable[[str], bool] = lambda _category: True) -> int | None:
        """The first node of the categories of which one may begin; None: there is none."""
        firsts = [(heap[0], name) for name, heap in self._heaps.items() if heap and may_begin(name)]
        if not firsts:
            return None
        _, name = min(firsts)
        return heappop(self._heaps[name])[-1]


def check_numbers(plan: Plan, count: int) -> None:
    """Raises ValueError if there is a rule for a node that does not exist."""
    named = [
        *plan.noop,
        *plan.done,
        *plan.services,
        *plan.hold,
        *plan.save_points,
        *(each for each in (plan.final, plan.provisioner) if each is not None),
    ]
    for table in (
        plan.priorities,
        plan.retries,
        plan.pre,
        plan.post,
        plan.pre_skip,
        plan.aborts,
        plan.tolerances,
        plan.categories,
    ):
        named += list(table)
    if named and max(named) >= count:
        raise ValueError(f"the plan speaks of node {max(named)}, and has {count}")
