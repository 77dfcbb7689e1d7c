"""
Why an autocluster gets nothing: which clause of which side refuses how many slots.

Slots are looked at as if nothing ran on them, so that 'no machine can ever' and 'all are busy' are told apart.
A request that is larger than all slots that match refuses like a clause.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import msgspec
import numpy as np

from kettle.classad import (
    NOTHING,
    ClassAd,
    Context,
    EvaluationFailed,
    Node,
    NotRepresentable,
    conjuncts,
    evaluate_attribute,
    is_true,
    unparse,
)
from kettle.classad.columnar import Evaluator, Spending
from kettle.matchmaking.request import RESOURCES, Request
from kettle.matchmaking.slots import unclaimed, whole_amounts

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    from kettle.classad.columnar import Table
    from kettle.classad.columnar.column import Column

    Booleans: TypeAlias = npt.NDArray[np.bool_]
    Integers: TypeAlias = npt.NDArray[np.int64]
    Reals: TypeAlias = npt.NDArray[np.float64]

_Side: TypeAlias = Literal["job", "slot"]
_TEXT: Final = 500
"""Characters of a clause that are shown."""
_MISSING: Final = "Requirements (missing)"


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


class Explainer:
    """Looks at the slots in `rows` of a table on behalf of one job after the other; the table must not change."""

    def __init__(self, table: Table, rows: Integers, context: Context = NOTHING) -> None:
        self._table = table
        self._rows = rows
        self._context = context
        self._wholes = whole_amounts(table)
        self._overlay: Mapping[str, Integers | Column] = {**unclaimed(table), **self._wholes}
        self._slot_clauses = self._requirements_of_slots()
        self._spending = Spending()

    def explain(self, job: ClassAd) -> Explanation:
        """Look at every slot from the job's side and at the job from every slot's."""
        self._spending = Spending()
        matching = self._mine(job).holds("requirements") & self._theirs(job)
        request = Request(job, self._context)
        small = self._too_small(job, request)
        able = int(np.count_nonzero(matching & ~np.logical_or.reduce(list(small.values()))))
        fault = None if able else self._fault(job) or self._request_fault(request)
        counts: dict[tuple[_Side, str], int] = {}
        if fault is None:
            self._count_mine(job, counts)
            self._count_theirs(job, counts)
            if not able and matching.any():
                for name, slots in small.items():
                    _count(counts, "job", _does_not_fit(job, request, name), int(np.count_nonzero(slots)))
        refusals = [Refusal(side=side, text=text, refuses=n) for (side, text), n in counts.items() if n]
        return Explanation(able=able, refusals=sorted(refusals, key=lambda r: -r.refuses), fault=fault)

    def _mine(self, job: ClassAd) -> Evaluator:
        return Evaluator(
            self._table,
            my=job,
            rows=self._rows,
            overlay=self._overlay,
            context=self._context,
            spending=self._spending,
        )

    def _theirs(self, job: ClassAd) -> npt.NDArray[np.bool_]:
        return self._slots(self._rows, job).holds("requirements")

    def _slots(self, rows: Integers, job: ClassAd) -> Evaluator:
        return Evaluator(self._table, target=job, rows=rows, overlay=self._overlay, context=self._context)

    def _request_fault(self, request: Request) -> str | None:
        return request.failure() if len(self._rows) else request.fault

    def _too_small(self, job: ClassAd, request: Request) -> dict[str, Booleans]:
        """Which slots have not as much of each resource as is asked of them, and be it that none can be asked."""
        if request.fault is not None:
            return dict.fromkeys(RESOURCES, np.full(len(self._rows), fill_value=True))
        asked: dict[str, float | Reals] = dict(request.fixed)
        if request.varying:
            asked |= request.of(self._mine(job))
        whole = self._table.truths("PartitionableSlot")[self._rows]
        small: dict[str, Booleans] = {}
        for name in RESOURCES:
            amounts = self._wholes[name.lower()][self._rows]
            small[name] = np.isnan(asked[name]) | (whole & (amounts < asked[name]))
            if name == "Cpus":
                small[name] |= amounts == 0  # such a slot is never offered
        return small

    def _fault(self, job: ClassAd) -> str | None:
        """Why Requirements have no value, not even error, for any slot."""
        reason: str | None
        if len(self._rows):
            reason = self._mine(job).failure("requirements")
        else:
            try:
                evaluate_attribute("Requirements", job, None, self._context)
            except EvaluationFailed as failure:
                reason = str(failure)
            else:
                reason = None
        return None if reason is None else f"Requirements cannot be evaluated: {reason}"

    def _count_mine(self, job: ClassAd, counts: dict[tuple[_Side, str], int]) -> None:
        stored = job.find("requirements")
        if not isinstance(stored, Node):
            if stored is None or not is_true(stored):
                text = _MISSING if stored is None else unparse(stored)
                counts["job", text] = len(self._rows)
            return
        slots = self._mine(job)
        for clause in conjuncts(stored):
            _count(counts, "job", _text(clause), slots.count - int(np.count_nonzero(slots.holds(clause))))

    def _count_theirs(self, job: ClassAd, counts: dict[tuple[_Side, str], int]) -> None:
        for rows, clauses, text in self._slot_clauses:
            if text is not None:
                _count(counts, "slot", text, len(rows))
            slots = self._slots(rows, job)
            for clause in clauses:
                refused = slots.count - int(np.count_nonzero(slots.holds(clause)))
                _count(counts, "slot", _text(clause), refused)

    def _requirements_of_slots(self) -> list[tuple[Integers, list[Node], str | None]]:
        """Slots by what they require: its clauses, or the text of what refuses every job."""
        column = self._table.columns.get("requirements")
        if column is None:
            return [(self._rows, [], _MISSING)] if len(self._rows) else []
        classes = column.classes(len(self._table)).of[self._rows]
        groups: list[tuple[Integers, list[Node], str | None]] = []
        for number in np.unique(classes):
            rows = self._rows[classes == number]
            stored = self._table.stored(column, int(rows[0]))
            if isinstance(stored, Node):
                groups.append((rows, conjuncts(stored), None))
            elif stored is None or not is_true(stored):
                groups.append((rows, [], _MISSING if stored is None else unparse(stored)))
        return groups


def _count(counts: dict[tuple[_Side, str], int], side: _Side, text: str, refuses: int) -> None:
    counts[side, text] = counts.get((side, text), 0) + refuses


def _does_not_fit(job: ClassAd, request: Request, name: str) -> str:
    stored = job.find(f"request{name.lower()}")
    if name in request.varying and isinstance(stored, Node):
        return f"Request{name} = {_text(stored)} does not fit"
    return f"Request{name} = {request.fixed[name]:.15g} does not fit"


def _text(clause: Node) -> str:
    try:
        text = unparse(clause)
    except NotRepresentable:
        return "(a clause that is nested too deeply to be shown)"
    return text if len(text) <= _TEXT else text[:_TEXT] + "..."
