"""
Which slots a job may go to, in the order in which it likes them.

Slots are looked at from the best-liked on, in pieces that grow, because nearly always the first few suffice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

import msgspec
import numpy as np

from kettle.classad import Node
from kettle.classad.columnar import Evaluator, Spending

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from kettle.classad import ClassAd, Context
    from kettle.matchmaking.request import Request
    from kettle.matchmaking.slots import Offer

    Integers: TypeAlias = npt.NDArray[np.int64]
    Reals: TypeAlias = npt.NDArray[np.float64]

_PIECE: Final = 512
_GROWTH: Final = 4
_FULL: Final = 4
"""When one in so many slots has been filled, the filled ones are left out of the orders."""
_ORDERS: Final = 64
"""So many orders are kept, each of eight octets a slot; a table remembers the values of no more expressions."""


class Candidates(msgspec.Struct, frozen=True):
    """Slots that match, with what the job asks of each and how many such jobs fit."""

    rows: Integers
    asked: dict[str, float | Reals]
    room: Integers


class Ranking:
    """
    The orders in which jobs like the slots of an offer.

    Where a Rank looks at nothing but slots, all jobs with that Rank have the same order, which is kept.
    """

    def __init__(self, offer: Offer, context: Context) -> None:
        self._offer = offer
        self._context = context
        self._orders: dict[int, tuple[Node, Integers]] = {}
        self._unranked = offer.rows
        self._exhausted = 0

    def order(self, job: ClassAd, spending: Spending | None = None) -> Integers:
        """The offered rows, those that the job ranks highest first, equal ones in the order of their numbers."""
        self._prune()
        rank = job.find("rank")
        if not isinstance(rank, Node):
            return self._unranked
        known = self._orders.get(id(rank))
        if known is not None and known[0] is rank and self._shared(rank, job):
            return known[1]
        offer = self._offer
        slots = Evaluator(
            offer.table, my=job, overlay=offer.overlay, context=self._context, spending=spending
        )
        order = _falling(self._unranked, slots.numbers("rank"))
        if self._shared(rank, job):
            if len(self._orders) >= _ORDERS:
                self._orders.clear()
            self._orders[id(rank)] = (rank, order)
        return order

    def _shared(self, rank: Node, job: ClassAd) -> bool:
        known = self._offer.table.recall(rank, "rank", mine=False)
        if known is None or not self._offer.overlay.keys() <= known.overlaid:
            return False
        return all(job.find(name) is None for name in known.absent)

    def _prune(self) -> None:
        offer = self._offer
        if (offer.exhausted - self._exhausted) * _FULL <= len(self._unranked):
            return
        self._exhausted = offer.exhausted
        cores = offer.free["Cpus"]
        self._unranked = self._unranked[cores[self._unranked] > 0]
        self._orders = {key: (rank, rows[cores[rows] > 0]) for key, (rank, rows) in self._orders.items()}


def _falling(rows: Integers, ranks: Reals) -> Integers:
    return rows[np.argsort(-ranks[rows], kind="stable")]


def candidates(
    job: ClassAd,
    request: Request,
    offer: Offer,
    ranking: Ranking,
    context: Context,
    spending: Spending | None = None,
) -> Iterator[Candidates]:
    """
    The slots that match a job and have room for it, the best-liked first, as they are asked for.

    What the job's own expressions take is counted in `spending`.
    """
    order = ranking.order(job, spending)
    start, size = 0, _PIECE
    while start < len(order):
        piece = order[start : start + size]
        start, size = start + size, size * _GROWTH
        found = _matching(piece, job, request, offer, context, spending)
        if len(found.rows):
            yield found


def _matching(
    rows: Integers, job: ClassAd, request: Request, offer: Offer, context: Context, spending: Spending | None
) -> Candidates:
    """Those of `rows` that suit and are suited, and have room."""
    table, overlay = offer.table, offer.overlay
    asked: dict[str, float | Reals] = dict(request.fixed)
    if request.varying:
        asked |= request.of(
            Evaluator(table, my=job, rows=rows, overlay=overlay, context=context, spending=spending)
        )
    room = offer.room(rows, asked, request.custom)
    keep = room > 0
    left = np.flatnonzero(keep)
    mine = Evaluator(table, my=job, rows=rows[left], overlay=overlay, context=context, spending=spending)
    keep[left] = mine.holds("requirements")
    left = np.flatnonzero(keep)
    theirs = Evaluator(table, target=job, rows=rows[left], overlay=overlay, context=context)
    keep[left] = theirs.holds("requirements")
    if offer.occupied:
        left = np.flatnonzero(keep)
        liking = Evaluator(table, target=job, rows=rows[left], overlay=overlay, context=context)
        keep[left] = liking.numbers("rank") > table.numbers("CurrentRank")[rows[left]]
    for name in request.varying:
        asked[name] = np.asarray(asked[name])[keep]
    return Candidates(rows[keep], asked, room[keep])
