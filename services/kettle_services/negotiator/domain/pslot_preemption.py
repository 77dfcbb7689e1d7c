"""
Parts of one partitionable slot whose jobs make room together, for one job that none of them has room for.

What such a slot could give a job is what is left of it, and what those of its parts have that would make room for this job.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import numpy as np

from kettle.classad.columnar import Evaluator
from kettle.matchmaking import Allocation, Amounts, Grant, Offer, Tenants, Unmet, gives_way
from kettle.matchmaking.request import RESOURCES

if TYPE_CHECKING:
    import numpy.typing as npt

    from kettle.classad import ClassAd, Context
    from kettle_services.negotiator.domain.pool import Pool

    Integers = npt.NDArray[np.int64]


class PslotPreemption:
    """
    What may be gathered in one cycle. Each slot is gathered once, and only if nothing of it was given in this cycle, or is on
    its way: what is left of it is not known before its next ad.
    """

    def __init__(
        self, pool: Pool, rows: Integers, given: Allocation, tenants: Tenants | None, context: Context
    ) -> None:
        """`rows` are those of slots that may have to make room, as `tenants` say."""
        dynamic = rows[pool.slots.truths("DynamicSlot")[rows]]
        parents = np.array([pool.parent_of(row) for row in dynamic.tolist()], np.int64)
        spoken_for = [*pool.rows_given(), *(grant.row for grant in given.grants)]
        fresh = (parents >= 0) & ~np.isin(parents, spoken_for)
        self._parts, self._parents = dynamic[fresh], parents[fresh]
        self._occupied = Offer(pool.slots, self._parts, occupied=True, tenants=tenants)
        self._left = Offer(pool.slots, np.union1d(self._parents, self._parts))
        self._current = pool.slots.numbers("CurrentRank")
        self._context = context
        self._willing: dict[int, list[int]] = {}

    def offer(self, job: ClassAd, submitter: str) -> Offer | None:
        """What slots could give the job after preemption; None: no slot can."""
        occupied = self._occupied
        rows, parents = self._parts, self._parents
        if not len(rows):
            return None
        gives = gives_way(rows, job, occupied, submitter, self._context)
        rows, parents = rows[gives], parents[gives]
        if not len(rows):
            return None
        order = self._order(rows, job)
        self._willing = {}
        for row, parent in zip(rows[order].tolist(), parents[order].tolist(), strict=True):
            self._willing.setdefault(parent, []).append(row)
        tenants = occupied.tenants
        return Offer(occupied.table, np.unique(parents), tenants=tenants, parts=(rows, parents))

    def _order(self, rows: Integers, job: ClassAd) -> Integers:
        """The least preferred slots are preempted first, and of these those that the pool ranks first."""
        keys = [self._current[rows]]
        tenants = self._occupied.tenants
        if tenants is not None and tenants.rank is not None:
            slots = Evaluator(
                self._occupied.table,
                target=job,
                rows=rows,
                overlay=self._occupied.overlay,
                context=self._context,
            )
            keys.insert(0, -slots.numbers(tenants.rank))
        return np.lexsort(keys)

    def chosen(self, offer: Offer, allocation: Allocation, unmet: Unmet) -> Allocation:
        """The allocation of such an offer, one job for each slot, with those who make room for it."""
        grants: list[Grant] = []
        for grant in allocation.grants:
            parts = self._needed(grant.row, grant.amounts)
            if parts:
                grants.append(msgspec.structs.replace(grant, count=1, instead=tuple(parts)))
                self._spent(grant.row)
        left = unmet.count - len(grants)
        paid = {grant.demand.submitter: 0.0 for grant in grants}
        for grant in grants:
            cores = np.array([grant.amounts.quantized("Cpus")])
            paid[grant.demand.submitter] += float(offer.costs(np.array([grant.row]), cores)[0])
        remaining = [msgspec.structs.replace(one, count=left) for one in allocation.unmet] if left else []
        if left and not remaining:
            remaining = [msgspec.structs.replace(unmet, count=left)]
        return Allocation(grants=grants, unmet=remaining, taken=paid)

    def _needed(self, parent: int, amounts: Amounts) -> list[int]:
        """
        The fewest that suffice of those who make room, from the least liked on; none: all of them are not enough.
        """
        parts: list[int] = []
        for row in self._willing[parent]:
            if self._suffice(parent, parts, amounts):
                break
            parts.append(row)
        if not parts or not self._suffice(parent, parts, amounts):
            return []
        for row in reversed(parts[:-1]):
            fewer = [each for each in parts if each != row]
            if self._suffice(parent, fewer, amounts):
                parts = fewer
        return parts

    def _suffice(self, parent: int, parts: list[int], amounts: Amounts) -> bool:
        sources = [parent, *parts]
        left = self._left
        enough = all(
            sum(int(left.free[name][row]) for row in sources) >= amounts.quantized(name) for name in RESOURCES
        )
        return enough and all(
            sum(int(left.custom[name][row]) for row in sources) >= count
            for name, count in amounts.custom.items()
            if name in left.custom
        )

    def _spent(self, parent: int) -> None:
        others = self._parents != parent
        self._parts, self._parents = self._parts[others], self._parents[others]
