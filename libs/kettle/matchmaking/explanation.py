"""
Why an autocluster gets nothing: which clause of which side refuses how many slots.

Slots are evaluated as if nothing ran on them, so that 'no machine can ever' and 'all are busy' are distinguished.
A request that is larger than all slots that match refuses like a clause.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Literal, TypeAlias

import msgspec
import numpy as np

from kettle.classad import (
    NOTHING,
    ClassAd,
    Context,
    EvaluationFailed,
    Node,
    conjuncts,
    evaluate_attribute,
    is_true,
    unparse,
)
from kettle.classad.columnar import Evaluator, Spending
from kettle.classad.columnar.column import Column
from kettle.matchmaking.machine_conditions import conditions
from kettle.matchmaking.request import RESOURCES, Request
from kettle.matchmaking.slot_demands import MISSING, Demand, SlotDemands, text_of
from kettle.matchmaking.slots import Offer, unclaimed, whole_amounts

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    import numpy.typing as npt

    from kettle.classad.columnar import Table
    from kettle.matchmaking.machine_conditions import MachineCondition

    Booleans: TypeAlias = npt.NDArray[np.bool_]
    Integers: TypeAlias = npt.NDArray[np.int64]
    Reals: TypeAlias = npt.NDArray[np.float64]

_Side: TypeAlias = Literal["job", "slot"]


class Refusal(msgspec.Struct, frozen=True, kw_only=True):
    """A conjunct of a Requirements expression, or a request, and how many slots do not meet it."""

    side: _Side
    text: str
    refuses: int


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """
    How many slots could run the job if they were free, and what refuses the others, the strongest clause first.

    `fault` is why the job's requests are no amounts or its Requirements have no value for any slot, if that is so.
    """

    able: int
    refusals: list[Refusal]
    fault: str | None = None


class Condition(msgspec.Struct, frozen=True, kw_only=True):
    """What one side demands of the other: a conjunct of its Requirements, and where it holds."""

    side: _Side
    text: str
    clause: Node | None
    """None: whatever the other says it is refused."""
    places: Integers
    """Of which slots it is demanded, as places among the rows that are looked at."""
    holds: Booleans
    """At each of these."""
    changing: Booleans
    """Where it may be met later if it is not now, by what changes by itself."""

    @property
    def refuses(self) -> int:
        """How many slots do not meet it."""
        return len(self.holds) - int(np.count_nonzero(self.holds))


class Explainer:
    """
    Looks at the slots in `rows` of a table on behalf of one job after the other; the table must not change.
    """

    def __init__(
        self, table: Table, rows: Integers, context: Context = NOTHING, *, policies: bool = False
    ) -> None:
        """`policies`: take what owners of machines demand apart, as an answer does and a record does not."""
        self.table = table
        self.rows = rows
        self.context = context
        self._wholes = whole_amounts(table)
        self.overlay: Mapping[str, Integers | Column] = {**unclaimed(table), **self._wholes}
        """What stands in the place of the slots' attributes, because nothing is thought to run there."""
        self._demands = SlotDemands(table, rows, self.overlay, policies=policies)
        self._of_each_slot = self._demands.all()
        self._spending = Spending()

    def explain(self, job: ClassAd) -> Explanation:
        """Look at every slot from the job's side and at the job from every slot's."""
        matching, request, small = self._looked_at(job)
        able = int(np.count_nonzero(matching & ~np.logical_or.reduce(list(small.values()))))
        fault = None if able else self._fault(job) or self._request_fault(request)
        counts: dict[tuple[_Side, str], int] = {}
        if fault is None:
            for one in self.conditions(job):
                _count(counts, one.side, one.text, one.refuses)
            if not able and matching.any():
                for name, slots in small.items():
                    _count(counts, "job", does_not_fit(job, request, name), int(np.count_nonzero(slots)))
        refusals = [Refusal(side=side, text=text, refuses=n) for (side, text), n in counts.items() if n]
        return Explanation(able=able, refusals=sorted(refusals, key=lambda r: -r.refuses), fault=fault)

    def able(self, job: ClassAd) -> Booleans:
        """Which slots could run the job if they were free."""
        matching, _, small = self._looked_at(job)
        able: Booleans = matching & ~np.logical_or.reduce(list(small.values()))
        return able

    def later(self, job: ClassAd) -> Booleans:
        """
        Which slots could not run the job now if they were free, and could when what changes by itself is otherwise.
        """
        closed = np.zeros(len(self.rows), np.bool_)
        expressions: dict[int, Node] = {}
        stored = job.find("requirements")
        of_job = (
            (self._demands.of_job(clause, job) for clause in conjuncts(stored))
            if isinstance(stored, Node)
            else ()
        )
        for demand in (*self._of_each_slot, *chain.from_iterable(of_job)):
            closed[demand.places] |= demand.closed
            expressions |= {id(one): one for one in demand.behind if demand.changing}
        matching, _, small = self._looked_at(job)
        fits = ~np.logical_or.reduce(list(small.values()))
        found = np.zeros(len(self.rows), np.bool_)
        for condition in conditions(expressions.values()):
            mine, theirs = self._under(condition, job)
            found |= fits & mine.holds("requirements") & (theirs.holds("requirements") | closed)
        later: Booleans = found & ~(matching & fits)
        return later

    def _under(self, condition: MachineCondition, job: ClassAd) -> tuple[Evaluator, Evaluator]:
        """The job's and the slots' view of each other under a condition of all machines."""
        count = len(self.table)
        overlay: dict[str, Integers | Column] = dict(self.overlay)
        for name, value in condition.values.items():
            whole = value == int(value)
            overlay[name] = (
                np.full(count, int(value)) if whole else Column.of_reals(name, np.full(count, value))
            )
        context, now = self.context, self.context.now
        if condition.delay and now is not None:
            context = msgspec.structs.replace(context, now=lambda: now() + condition.delay)
        mine = Evaluator(self.table, my=job, rows=self.rows, overlay=overlay, context=context)
        return mine, Evaluator(self.table, target=job, rows=self.rows, overlay=overlay, context=context)

    def _changing(self, demands: Iterable[Demand]) -> Booleans:
        found = np.zeros(len(self.rows), np.bool_)
        for demand in demands:
            found[demand.places] = demand.changing
        return found

    def free(self, job: ClassAd) -> int:
        """How many slots that nobody has claimed have room for one such job as they are now."""
        unclaimed_now = self.table.says("State", "Unclaimed") | self.table.says("State", "Backfill")
        offer = Offer(self.table, self.rows[unclaimed_now[self.rows]])
        request = Request(job, self.context)
        if request.fault is not None or not len(offer.rows):
            return 0
        rows, overlay, context = offer.rows, offer.overlay, self.context
        mine = Evaluator(
            self.table, my=job, rows=rows, overlay=overlay, context=context, spending=self._spending
        )
        theirs = Evaluator(self.table, target=job, rows=rows, overlay=overlay, context=context)
        suits = mine.holds("requirements") & theirs.holds("requirements")
        asked: dict[str, float | Reals] = {**request.fixed, **(request.of(mine) if request.varying else {})}
        return int(np.count_nonzero(suits & (offer.room(offer.rows, asked, request.custom) > 0)))

    def conditions(self, job: ClassAd) -> Iterator[Condition]:
        """What the job demands of slots, and they of it; what is demanded twice comes twice."""
        yield from self._of_job(job)
        yield from self._of_slots(job)

    def too_small(self, job: ClassAd, request: Request) -> dict[str, Booleans]:
        """
        Which slots have not as much of each resource as is asked of them, and be it that none can be asked.
        """
        if request.fault is not None:
            return dict.fromkeys(RESOURCES, np.full(len(self.rows), fill_value=True))
        asked = self.asked(job, request)
        whole = self.table.truths("PartitionableSlot")[self.rows]
        small: dict[str, Booleans] = {}
        for name in RESOURCES:
            amounts = self._wholes[name.lower()][self.rows]
            small[name] = np.isnan(asked[name]) | (whole & (amounts < asked[name]))
            if name == "Cpus":
                small[name] |= amounts == 0  # such a slot is never offered
        return small

    def asked(self, job: ClassAd, request: Request) -> dict[str, float | Reals]:
        """What is asked of the slots by resource: of all the same, or of each something, if that varies."""
        return {**request.fixed, **(request.of(self._mine(job)) if request.varying else {})}

    def _looked_at(self, job: ClassAd) -> tuple[Booleans, Request, dict[str, Booleans]]:
        """Which slots suit the job and are suited by it, what it asks of them, and which have not as much."""
        self._spending = Spending()
        matching = self._mine(job).holds("requirements") & self._theirs(job)
        request = Request(job, self.context)
        return matching, request, self.too_small(job, request)

    def _mine(self, job: ClassAd) -> Evaluator:
        return Evaluator(
            self.table,
            my=job,
            rows=self.rows,
            overlay=self.overlay,
            context=self.context,
            spending=self._spending,
        )

    def _theirs(self, job: ClassAd) -> npt.NDArray[np.bool_]:
        return self._slots(self.rows, job).holds("requirements")

    def _slots(self, rows: Integers, job: ClassAd) -> Evaluator:
        return Evaluator(self.table, target=job, rows=rows, overlay=self.overlay, context=self.context)

    def _request_fault(self, request: Request) -> str | None:
        return request.failure() if len(self.rows) else request.fault

    def _fault(self, job: ClassAd) -> str | None:
        """Why Requirements have no value, not even error, for any slot."""
        reason: str | None
        if len(self.rows):
            reason = self._mine(job).failure("requirements")
        else:
            try:
                evaluate_attribute("Requirements", job, None, self.context)
            except EvaluationFailed as failure:
                reason = str(failure)
            else:
                reason = None
        return None if reason is None else f"Requirements cannot be evaluated: {reason}"

    def _of_job(self, job: ClassAd) -> Iterator[Condition]:
        stored, places = job.find("requirements"), np.arange(len(self.rows))
        if not isinstance(stored, Node):
            if stored is None or not is_true(stored):
                text = MISSING if stored is None else unparse(stored)
                yield _never("job", text, places)
            return
        slots = self._mine(job)
        for clause in conjuncts(stored):
            yield Condition(
                side="job",
                text=text_of(clause),
                clause=clause,
                places=places,
                holds=slots.holds(clause),
                changing=self._changing(self._demands.of_job(clause, job)),
            )

    def _of_slots(self, job: ClassAd) -> Iterator[Condition]:
        for demand in self._of_each_slot:
            places, clause = demand.places, demand.clause
            holds = (
                np.zeros(len(places), np.bool_)
                if clause is None
                else self._slots(self.rows[places], job).holds(clause)
            )
            yield Condition(
                side="slot",
                text=demand.text,
                clause=clause,
                places=places,
                holds=holds,
                changing=np.full(len(places), demand.changing or demand.closed),
            )


class PatientExplainer(Explainer):
    """
    For this one those slots are able as well that would match when what changes by itself was otherwise.
    """

    def able(self, job: ClassAd) -> Booleans:
        """Which slots could run the job, now or later, if they were free."""
        able: Booleans = super().able(job) | self.later(job)
        return able


def _never(side: _Side, text: str, places: Integers) -> Condition:
    none = np.zeros(len(places), np.bool_)
    return Condition(side=side, text=text, clause=None, places=places, holds=none, changing=none)


def _count(counts: dict[tuple[_Side, str], int], side: _Side, text: str, refuses: int) -> None:
    counts[side, text] = counts.get((side, text), 0) + refuses


def does_not_fit(job: ClassAd, request: Request, name: str) -> str:
    """How a request that slots have no room for is named, as if it were a clause."""
    stored = job.find(f"request{name.lower()}")
    if name in request.varying and isinstance(stored, Node):
        return f"Request{name} = {text_of(stored)} does not fit"
    return f"Request{name} = {request.fixed[name]:.15g} does not fit"
