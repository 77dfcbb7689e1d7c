"""Why what others have is not taken from them: which rule protects how many slots that would suit."""

from __future__ import annotations

from collections import Counter
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from kettle.classad.columnar import Evaluator, Spending
from kettle.matchmaking import Offer, Request
from kettle_wire.events import Withheld

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from kettle.classad import ClassAd
    from kettle.matchmaking import Allocation, Tenants, Unmet
    from kettle_services.negotiator.domain.pool import Pool
    from kettle_services.negotiator.domain.preemption import GroupFigures, Preempting

    Integers = npt.NDArray[np.int64]
    Booleans = npt.NDArray[np.bool_]
    Reals = npt.NDArray[np.float64]


class PreemptionRefusals:
    """
    Looks at the slots that are in use after a cycle, for one demand after the other; they must not change meanwhile.
    """

    def __init__(self, pool: Pool, preempting: Preempting, allocation: Allocation) -> None:
        self._pool = pool
        self._preempting = preempting
        self._allocation = allocation
        self._claimed = pool.in_use_by_jobs()

    @property
    def slots(self) -> int:
        """How many slots are looked at for each demand."""
        return len(self._claimed)

    @cached_property
    def _standings(self) -> Sequence[GroupFigures]:
        return self._preempting.figures_of_groups(self._allocation, self._pool.weight)

    @cached_property
    def _tenants(self) -> Tenants:
        return self._preempting.tenants(self._pool, self._standings)

    @cached_property
    def _offer(self) -> Offer:
        return Offer(self._pool.slots, self._claimed, occupied=True)

    @cached_property
    def _open(self) -> Booleans:
        """By row of the table, whether the machine lets priorities count."""
        rows = np.zeros(len(self._pool.slots), np.bool_)
        rows[self._pool.preemptible()] = True
        return rows & self._pool.slots.truths("UserPreemption")

    def of(self, unmet: Unmet) -> list[Withheld]:
        """What protects the slots of others that would suit, the rule that protects most of them first."""
        job = self._preempting.introduced(unmet, self._standings)
        rows = self._suitable(job, unmet.demand.submitter)
        counts: Counter[str] = Counter()
        for rule, protected in self._rules(rows, job):
            counts[rule] += int(np.count_nonzero(protected))
        return [Withheld(rule=rule, slots=slots) for rule, slots in counts.most_common() if slots]

    def _suitable(self, job: ClassAd, submitter: str) -> Integers:
        """Slots of others that match both ways and are large enough."""
        offer, context = self._offer, self._preempting.context
        rows: Integers = offer.rows[
            self._tenants.users[offer.rows] != self._tenants.numbers.get(submitter, -1)
        ]
        request, spending = Request(job, context), Spending()
        if request.fault is not None or not len(rows):
            return np.zeros(0, np.int64)
        mine = Evaluator(offer.table, my=job, rows=rows, context=context, spending=spending)
        theirs = Evaluator(offer.table, target=job, rows=rows, context=context)
        asked: dict[str, float | Reals] = dict(request.fixed)
        if request.varying:
            asked |= request.of(mine)
        suits: Booleans = offer.room(rows, asked, request.custom) > 0
        suits &= mine.holds("requirements") & theirs.holds("requirements")
        suitable: Integers = rows[suits]
        return suitable

    def _rules(self, rows: Integers, job: ClassAd) -> list[tuple[str, Booleans]]:
        """Rules with the slots that each protects, every slot once: the first that protects it counts."""
        every = np.full(len(rows), fill_value=True)
        rules = self._preempting.rules
        if not rules.consider:
            return [("off", every)]
        if rules.requirements is None:
            return [("no_rule", every)]
        shut = ~self._open[rows]
        slots = Evaluator(
            self._pool.slots,
            target=job,
            rows=rows,
            overlay=self._tenants.facts,
            context=self._preempting.context,
        )
        with np.errstate(invalid="ignore"):
            ranked = ~shut & ~(slots.numbers("rank") >= self._pool.slots.numbers("CurrentRank")[rows])
        refused = ~shut & ~ranked & ~slots.holds(rules.requirements)
        return [
            ("machine", shut),
            ("rank", ranked),
            ("requirements", refused),
            ("share", every & ~shut & ~ranked & ~refused),
        ]
