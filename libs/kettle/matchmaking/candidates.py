"""
Which slots a job may go to, in the order in which the pool and the job like them.

First counts what the pool says of a slot and a job (NEGOTIATOR_PRE_JOB_RANK), then the job's Rank, then what the pool says
after that (NEGOTIATOR_POST_JOB_RANK), then the order of the slots.
Slots are looked at from the best-liked on, in pieces that grow, because nearly always the first few suffice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

import msgspec
import numpy as np

from kettle.classad import Node, references
from kettle.classad.columnar import Evaluator, Spending
from kettle.classad.columnar.column import Tag
from kettle.classad.reference_analysis import hides

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
"""
So many orders are kept, each of eight octets a slot; a table remembers the values of no more expressions.
"""


class Candidates(msgspec.Struct, frozen=True):
    """Slots that match, with what the job asks of each and how many such jobs fit."""

    rows: Integers
    asked: dict[str, float | Reals]
    room: Integers


class Ranks(msgspec.Struct, frozen=True):
    """
    What the pool says of a slot (MY) and a job (TARGET) besides the job's own Rank; None: the same of all.
    """

    before: Node | None = None
    """NEGOTIATOR_PRE_JOB_RANK."""
    after: Node | None = None
    """NEGOTIATOR_POST_JOB_RANK."""


NO_RANKS: Final = Ranks()


class Ranking:
    """
    The orders in which jobs and the pool like the slots of an offer.

    Where a Rank looks at nothing but slots, all jobs with that Rank have the same order, which is kept; if the pool's own
    ranks look at nothing else either.
    """

    def __init__(self, offer: Offer, context: Context, ranks: Ranks = NO_RANKS) -> None:
        self._offer = offer
        self._context = context
        self._nodes = (ranks.before, ranks.after, None if offer.tenants is None else offer.tenants.rank)
        self._constant = all(node is None or self._same_for_all(node) for node in self._nodes)
        """The pool's ranks are the same for all jobs, whatever was given away."""
        self._known_ranks: list[Reals | None] | None = None
        self._orders: dict[int, tuple[Node, Integers]] = {}
        self._unranked = offer.rows
        self._exhausted = 0

    def order(self, job: ClassAd, spending: Spending | None = None) -> Integers:
        """
        The offered rows, those that the job ranks highest first, equal ones in the order of their numbers.
        """
        self._prune()
        rank = job.find("rank")
        if not isinstance(rank, Node):
            return self._by_pool(job, None)
        known = self._orders.get(id(rank))
        if known is not None and known[0] is rank and self._shared(rank, job):
            return known[1]
        offer = self._offer
        slots = Evaluator(
            offer.table, my=job, overlay=offer.overlay, context=self._context, spending=spending
        )
        order = self._by_pool(job, slots.numbers("rank"))
        if self._shared(rank, job):
            if len(self._orders) >= _ORDERS:
                self._orders.clear()
            self._orders[id(rank)] = (rank, order)
        return order

    def _by_pool(self, job: ClassAd, liked: Reals | None) -> Integers:
        """The rows by what the pool says, with what the job says in the middle of it."""
        before, after, last = self._of_pool(job)
        keys = [-numbers[self._unranked] for numbers in (last, after, liked, before) if numbers is not None]
        return self._unranked[np.lexsort(keys)] if keys else self._unranked

    def _of_pool(self, job: ClassAd) -> list[Reals | None]:
        if self._known_ranks is not None:
            return self._known_ranks
        offer = self._offer
        slots = Evaluator(offer.table, target=job, overlay=offer.overlay, context=self._context)
        found = [None if node is None else slots.numbers(node) for node in self._nodes]
        if self._constant:
            self._known_ranks = found
        return found

    def _same_for_all(self, node: Node) -> bool:
        """
        Whether an expression of slots names nothing but plain values of theirs, all of which have all of them.
        """
        names = references(node).external
        table = self._offer.table
        for name in {name.lower().removeprefix("my.") for name in names}:
            column = table.columns.get(name)
            if column is None or name in self._offer.overlay:
                return False
            tags = column.tags[: len(table)]
            if bool(((tags == Tag.EXPRESSION) | (tags == Tag.ABSENT)).any()):
                return False
        return not hides(node)

    def _shared(self, rank: Node, job: ClassAd) -> bool:
        if not self._constant:
            return False
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


def candidates(
    job: ClassAd,
    request: Request,
    offer: Offer,
    ranking: Ranking,
    context: Context,
    spending: Spending | None = None,
    *,
    submitter: str = "",
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
        found = _matching(piece, job, request, offer, submitter, context, spending)
        if len(found.rows):
            yield found


def gives_way(
    rows: Integers, job: ClassAd, offer: Offer, submitter: str, context: Context
) -> npt.NDArray[np.bool_]:
    """On which of the occupied slots in `rows` what runs has to make room for the job."""
    slots = Evaluator(offer.table, target=job, rows=rows, overlay=offer.overlay, context=context)
    liked, current = slots.numbers("rank"), offer.table.numbers("CurrentRank")[rows]
    tenants = offer.tenants
    if tenants is None:
        return liked > current
    others = tenants.users[rows] != tenants.numbers.get(submitter, -1)
    as_much: npt.NDArray[np.bool_] = (liked >= current) & others
    return as_much & slots.holds(tenants.requirements)


def _matching(
    rows: Integers,
    job: ClassAd,
    request: Request,
    offer: Offer,
    submitter: str,
    context: Context,
    spending: Spending | None,
) -> Candidates:
    """The rows among `rows` that match in both directions and have room."""
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
        keep[left] = gives_way(rows[left], job, offer, submitter, context)
    for name in request.varying:
        asked[name] = np.asarray(asked[name])[keep]
    return Candidates(rows[keep], asked, room[keep])
