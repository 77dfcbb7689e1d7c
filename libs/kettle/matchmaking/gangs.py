"""
Slots for jobs that need several at the same time: as many as one job needs or takes, in the order of its rank, or none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from kettle.jobs.nodes import GROUP

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy.typing as npt

    from kettle.matchmaking.candidates import Candidates
    from kettle.matchmaking.concurrency_limits import Uses
    from kettle.matchmaking.slots import Offer

    Integers: TypeAlias = npt.NDArray[np.int64]


class Place(NamedTuple):
    """How many nodes go to each of some slots."""

    found: Candidates
    uses: Uses
    counts: Integers


class Places:
    """Collects the slots of one job: of any machines, or of machines that are near each other."""

    def __init__(self, nodes: int, *, near: bool) -> None:
        """`near`: all are to have the same ParallelSchedulingGroup, and one."""
        self._nodes = nodes
        self._near = near
        self._missing: dict[str, int] = {}
        self._picked: dict[str, list[Place]] = {}

    @property
    def are_whole(self) -> bool:
        """Whether there are enough."""
        return not all(self._missing.values())

    @property
    def most(self) -> list[Place]:
        """As many as there are together."""
        return self._picked[min(self._missing, key=self._missing.__getitem__)] if self._missing else []

    @property
    def there(self) -> int:
        """How many nodes have a place among those."""
        return self._nodes - min(self._missing.values(), default=self._nodes)

    def add(self, found: Candidates, uses: Uses, most: int, offer: Offer) -> bool:
        """Some more slots, of which at most so many may be used; whether there are enough."""
        for group, room in self._by_group(found, offer):
            picked = self._picked.setdefault(group, [])
            used = sum(int(place.counts.sum()) for place in picked if place.uses == uses)
            missing = min(self._missing.setdefault(group, self._nodes), most - used)
            before = np.cumsum(room) - room
            counts = np.clip(missing - before, 0, room)
            taken = int(counts.sum())
            if taken:
                picked.append(Place(found, uses, counts))
                self._missing[group] -= taken
            if not self._missing[group]:
                return True
        return False

    def _by_group(self, found: Candidates, offer: Offer) -> Iterable[tuple[str, Integers]]:
        if not self._near:
            return [("", found.room)]
        names = [offer.table.value(row, GROUP) for row in found.rows.tolist()]
        known = dict.fromkeys(name for name in names if isinstance(name, str) and name)
        return [(name, found.room * np.array([each == name for each in names])) for name in known]
