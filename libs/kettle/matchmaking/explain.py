"""
Why an autocluster gets nothing: which clause of which side refuses how many slots.

Slots are looked at as if nothing ran on them, so that 'no machine can ever' and 'all are busy' are told apart.
"""

from collections.abc import Sequence
from typing import Literal

import msgspec

from kettle.classad import ClassAd, conjuncts, evaluate, is_true, matches, unparse
from kettle.matchmaking.slots import Slot


class Refusal(msgspec.Struct, frozen=True, kw_only=True):
    """A conjunct of a Requirements expression and how many slots do not meet it."""

    side: Literal["job", "slot"]
    text: str
    refuses: int


def explain(job: ClassAd, slots: Sequence[Slot]) -> tuple[int, list[Refusal]]:
    """How many slots could run the job if they were free, and what refuses the others, the strongest clause first."""
    wholes = [slot.whole for slot in slots]
    able = sum(matches(job, whole) for whole in wholes)
    counts: dict[tuple[Literal["job", "slot"], str], int] = {}
    for whole in wholes:
        _count(counts, "job", job, whole)
        _count(counts, "slot", whole, job)
    refusals = [Refusal(side=side, text=text, refuses=n) for (side, text), n in counts.items() if n]
    return able, sorted(refusals, key=lambda r: -r.refuses)


def _count(
    counts: dict[tuple[Literal["job", "slot"], str], int],
    side: Literal["job", "slot"],
    my: ClassAd,
    target: ClassAd,
) -> None:
    requirements = my.get("Requirements")
    if requirements is None:
        return
    for clause in conjuncts(requirements):
        if not is_true(evaluate(clause, my=my, target=target)):
            key = (side, unparse(clause))
            counts[key] = counts.get(key, 0) + 1
