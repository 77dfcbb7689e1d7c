"""
Why an autocluster gets nothing: which clause of which side refuses how many slots.

Slots are looked at as if nothing ran on them, so that 'no machine can ever' and 'all are busy' are told apart.
"""

from collections.abc import Sequence
from typing import Final, Literal, TypeAlias

import msgspec

from kettle.classad import (
    NOTHING,
    ClassAd,
    Context,
    EvaluationFailed,
    Node,
    NotRepresentable,
    conjuncts,
    evaluate,
    evaluate_attribute,
    is_true,
    matches,
    unparse,
)
from kettle.matchmaking.slots import Slot

_Side: TypeAlias = Literal["job", "slot"]
_TEXT: Final = 500
"""Characters of a clause that are shown."""


class Refusal(msgspec.Struct, frozen=True, kw_only=True):
    """A conjunct of a Requirements expression and how many slots do not meet it."""

    side: _Side
    text: str
    refuses: int


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """
    How many slots could run the job if they were free, and what refuses the others, the strongest clause first.

    `fault` is why the job's Requirements have no value for any slot, if that is so.
    """

    able: int
    refusals: list[Refusal]
    fault: str | None = None


def explain(job: ClassAd, slots: Sequence[Slot], context: Context = NOTHING) -> Explanation:
    """Look at every slot from the job's side and at the job from every slot's."""
    wholes = [slot.whole for slot in slots]
    able = sum(matches(job, whole, context) for whole in wholes)
    fault = None if able else _fault(job, wholes, context)
    counts: dict[tuple[_Side, str], int] = {}
    if fault is None:
        mine = _Clauses("job", job, context)
        for whole in wholes:
            mine.count(counts, whole)
            _Clauses("slot", whole, context).count(counts, job)
    refusals = [Refusal(side=side, text=text, refuses=n) for (side, text), n in counts.items()]
    return Explanation(able=able, refusals=sorted(refusals, key=lambda r: -r.refuses), fault=fault)


def _fault(job: ClassAd, wholes: Sequence[ClassAd], context: Context) -> str | None:
    """Why Requirements have no value, not even error, for any slot."""
    reason: str | None = None
    for whole in wholes or (None,):
        try:
            evaluate_attribute("Requirements", job, whole, context)
        except EvaluationFailed as failure:
            reason = str(failure)
        else:
            return None
    return f"Requirements cannot be evaluated: {reason}"


class _Clauses:
    """The conjuncts of one ad's Requirements, with their texts."""

    def __init__(self, side: _Side, ad: ClassAd, context: Context) -> None:
        self._side: _Side = side
        self._ad = ad
        self._context = context
        stored = ad.find("requirements")
        self._clauses = (
            [(clause, _text(clause)) for clause in conjuncts(stored)]
            if isinstance(stored, Node)
            else [(None, unparse(stored) if stored is not None else "Requirements (missing)")]
        )
        self._constant = not isinstance(stored, Node) and stored is not None and is_true(stored)

    def count(self, counts: dict[tuple[_Side, str], int], target: ClassAd) -> None:
        for clause, text in self._clauses:
            if not self._met(clause, target):
                counts[self._side, text] = counts.get((self._side, text), 0) + 1

    def _met(self, clause: Node | None, target: ClassAd) -> bool:
        if clause is None:
            return self._constant
        try:
            return is_true(evaluate(clause, my=self._ad, target=target, context=self._context))
        except EvaluationFailed:
            return False


def _text(clause: Node) -> str:
    try:
        text = unparse(clause)
    except NotRepresentable:
        return "(a clause that is nested too deeply to be shown)"
    return text if len(text) <= _TEXT else text[:_TEXT] + "..."
