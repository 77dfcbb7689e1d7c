"""
Sharing the free slots out among submitters.

Each submitter gets an equal share of the free cores first (spin by spin, the shares of those who do not need them flow to the
others), each of its autoclusters in its own order of priority, each on the slots that its jobs rank highest.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, TypeAlias

import msgspec
import numpy as np

from kettle.classad import NOTHING, ClassAd, Context
from kettle.classad.columnar import Spending
from kettle.matchmaking.candidates import Candidates, Ranking, candidates
from kettle.matchmaking.request import Amounts, Request, quantized
from kettle.matchmaking.slots import Offer

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy.typing as npt

    Integers: TypeAlias = npt.NDArray[np.int64]


_NO_LIMIT: Final = 2.0**53
"""More cores than there are."""


class Demand(msgspec.Struct, frozen=True, kw_only=True):
    """Idle jobs of one autocluster of one submitter."""

    submitter: str
    schedd: str
    autocluster: int
    count: int
    job: ClassAd
    key: str = ""
    """Whatever tells the caller from which ad it came."""


class Grant(msgspec.Struct, frozen=True, kw_only=True):
    """So many jobs of a demand may go to the slot in a row of the table, each taking `amounts` of it."""

    demand: Demand
    row: int
    count: int
    amounts: Amounts


class Unmet(msgspec.Struct, frozen=True, kw_only=True):
    """What is left of a demand; `fault` says what is wrong with the demand itself, if that is the reason."""

    demand: Demand
    count: int
    fault: str | None = None


class Allocation(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of one cycle."""

    grants: list[Grant]
    unmet: list[Unmet]


class _Open:
    """A demand that is being served."""

    def __init__(self, demand: Demand, context: Context) -> None:
        self.demand = demand
        self.request = Request(demand.job, context)
        self.left = demand.count
        self.stuck = self.request.fault is not None
        self._granted: dict[tuple[float, ...], Grant] = {}
        self._context = context
        self._spending = Spending()

    def serve(self, offer: Offer, ranking: Ranking, budget: float) -> float:
        """Take what the budget of cores allows; returns what it cost."""
        spent = 0.0
        found_by = candidates(self.demand.job, self.request, offer, ranking, self._context, self._spending)
        for found in found_by:
            spent += self._take(found, offer, budget - spent)
            if not self.left or spent >= budget:
                return spent
        self.stuck = True
        return spent

    def _take(self, found: Candidates, offer: Offer, budget: float) -> float:
        """Fill slots one after the other; the last job may exceed the budget: 'rounding up a crumb'."""
        costs = np.broadcast_to(np.maximum(quantized("Cpus", found.asked["Cpus"]), 1.0), found.room.shape)
        jobs, spent = np.cumsum(found.room), np.cumsum(found.room * costs)
        enough = (jobs >= self.left) | (spent >= budget)
        last = int(np.argmax(enough)) if enough.any() else len(enough) - 1
        counts = found.room[: last + 1].copy()
        room, cost = int(counts[last]), float(costs[last])
        counts[last] = min(
            self.left - (int(jobs[last]) - room),
            room,
            math.ceil((budget - (float(spent[last]) - room * cost)) / cost),
        )
        self._grant(found, offer, counts)
        return float((counts * costs[: last + 1]).sum())

    def _grant(self, found: Candidates, offer: Offer, counts: Integers) -> None:
        rows = found.rows[: len(counts)]
        if not self.request.varying:
            offer.take_each(rows, self.request.amounts(found.asked, 0), counts)
        for position, (row, count) in enumerate(zip(rows.tolist(), counts.tolist(), strict=True)):
            amounts = self.request.amounts(found.asked, position)
            if self.request.varying:
                offer.take(row, amounts, count)
            key = row, *amounts.asked.values()
            before = self._granted.get(key)
            total = count if before is None else before.count + count
            self._granted[key] = Grant(demand=self.demand, row=row, count=total, amounts=amounts)
        self.left -= int(counts.sum())

    @property
    def grants(self) -> Iterable[Grant]:
        """What it was given, one of each slot and amounts: another spin may find less there to ask for."""
        return self._granted.values()

    def unmet(self) -> Unmet:
        """What is left."""
        return Unmet(demand=self.demand, count=self.left, fault=self.request.failure())


def allocate(offer: Offer, demands: Iterable[Demand], context: Context = NOTHING) -> Allocation:
    """
    Share an offer (which is changed by it) among `demands`, given in each submitter's order of priority.

    What is too little to be divided goes to the submitters who come first.
    Nothing that an ad says makes it fail: what cannot be evaluated does not match.
    """
    ranking = Ranking(offer, context)
    queues: dict[str, list[_Open]] = {}
    for demand in demands:
        queues.setdefault(demand.submitter, []).append(_Open(demand, context))
    everything = [one for queue in queues.values() for one in queue]
    left = math.inf
    while hungry := [queue for queue in queues.values() if any(o.left and not o.stuck for o in queue)]:
        pie = offer.weight
        if pie <= 0:
            break
        # Jobs that take no cores leave the pie as it was: there is nothing to share, and no reason to go on by slices.
        share = pie / len(hungry) if pie < left else _NO_LIMIT
        left = pie
        for queue in hungry:
            _spin(queue, offer, ranking, share)
    return Allocation(
        grants=[grant for one in everything for grant in one.grants],
        unmet=[one.unmet() for one in everything if one.left],
    )


def _spin(queue: Iterable[_Open], offer: Offer, ranking: Ranking, share: float) -> None:
    for one in queue:
        if share <= 0:
            return
        if one.left and not one.stuck:
            share -= one.serve(offer, ranking, share)
