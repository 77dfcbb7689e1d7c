"""
Whole tables at once against one ad after the other: the columnar evaluator says what the interpreter says.

The budget of evaluations in rows comes from KETTLE_TEST_EVALUATIONS; the default suits a suite that runs often.
"""

import math
import os
import random
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations, islice
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pytest

from kettle.classad import (
    ERROR,
    UNDEFINED,
    ClassAd,
    Context,
    EvaluationFailed,
    Value,
    interpret,
    interpret_attribute,
    is_true,
    parse,
    unparse,
)
from kettle.classad.columnar import Evaluator, Table
from kettle_wire.ads import Ad, Expr, Scalar

from .classad_tables import ATTRIBUTES, OTHERS, Tables

EVALUATIONS = int(os.environ.get("KETTLE_TEST_EVALUATIONS", "20000"))
SEEDS = 8
LARGE = 2
TOO_LONG = "the expression goes on too long"
PLENTY = Context()
ATTEMPTS = re.compile("(?i)userHome|evalInEachContext|countMatches")

Outcome: TypeAlias = "Value | EvaluationFailed"
Reference: TypeAlias = "Callable[[ClassAd, ClassAd | None], Value]"


class Question:
    """What is asked of a table, and what the interpreter answers row by row."""

    def __init__(
        self,
        tables: Tables,
        text: str,
        other: Ad | None,
        context: Context,
        rows: npt.NDArray[np.int64] | None,
        overlay: dict[str, npt.NDArray[np.int64]],
        *,
        mine: bool,
    ) -> None:
        self.node = parse(text)
        self._tables = tables
        self._text = text
        self._other = other
        self._context = context
        self._overlay = overlay
        self._mine = mine
        self.rows = list(range(len(tables.table))) if rows is None else rows.tolist()
        ad = None if other is None else ad_of(other)
        my, target = (None, ad) if mine else (ad, None)
        self.evaluator = Evaluator(
            tables.table, my=my, target=target, rows=rows, overlay=overlay, context=context
        )

    def expected(self, evaluate: Reference) -> list[Outcome]:
        """The reference's value in each row."""
        return [self._outcome(evaluate, row) for row in self.rows]

    def _ad(self, row: int) -> Ad:
        return self._tables.ads[self._tables.table.keys[row]]

    def _outcome(self, evaluate: Reference, row: int) -> Outcome:
        there = ad_of(self._ad(row))
        for key, numbers in self._overlay.items():
            there[key] = int(numbers[row])
        other = None if self._other is None else ad_of(self._other)
        my, target = (there, other) if self._mine else (other, there)
        assert my is not None, "without another ad the expressions are the rows'"
        try:
            return evaluate(my, target)
        except EvaluationFailed as failure:
            return failure

    def disagreements(self, attribute: str) -> list[str]:
        """How the answers about an expression and about an attribute differ from the reference's."""
        node = self.node
        values = self.expected(lambda my, target: interpret(node, my, target, self._context))
        stored = self.expected(lambda my, target: interpret_attribute(attribute, my, target, self._context))
        got = self.evaluator
        return [
            *self._differing("values", values, got.values(node), shown, shown),
            *self._differing("holds", values, got.holds(node), held, bool),
            *self._differing("numbers", values, got.numbers(node), number, float),
            *self._differing(f"holds {attribute}", stored, got.holds(attribute), held, bool),
            *self._differing(f"numbers {attribute}", stored, got.numbers(attribute), number, float),
            *self._differing(f"amounts {attribute}", stored, got.amounts(attribute, 0.5), amount, repr_of),
        ]

    def _differing(
        self,
        asked: str,
        values: list[Outcome],
        answers: Sequence[Any] | npt.NDArray[Any],
        expect: Callable[[Outcome], object],
        got: Callable[[Any], object],
    ) -> Iterator[str]:
        for row, value, answer in zip(self.rows, values, answers, strict=True):
            if expect(value) != got(answer) and not self._excused(row, value, answer):
                yield f"{asked}: expected {expect(value)}, got {got(answer)} in {self._ad(row)}"

    def _excused(self, row: int, value: Outcome, answer: Any) -> bool:
        """
        Whether a budget that ran out explains a difference.

        Whole columns may use more steps than one row does, or less.
        """
        steps = self._context.max_steps < PLENTY.max_steps
        if steps and (over(value) or over(answer) or isinstance(answer, np.generic)):
            return True
        return steps and ATTEMPTS.search(f"{self._text} {self._other} {self._ad(row)}") is not None


def ad_of(wire: Ad) -> ClassAd:
    """
    An ad as an evaluation sees it: text that does not parse, which cannot be written either, is the value error.
    """
    ad = ClassAd(wire)
    for key in list(ad.stored):
        if ad.find(key) is ERROR:
            ad[key] = ERROR
    return ad


def over(value: object) -> bool:
    """Whether steps ran out."""
    return isinstance(value, EvaluationFailed) and str(value) == TOO_LONG


def shown(value: Outcome) -> str:
    return "EVAL_FAIL" if isinstance(value, EvaluationFailed) else unparse(value)


def held(value: Outcome) -> bool:
    return not isinstance(value, EvaluationFailed) and is_true(value)


def number(value: Outcome) -> float:
    found = float(value) if isinstance(value, bool | int | float) else 0.0
    return 0.0 if math.isnan(found) else found


def amount(value: Outcome) -> str:
    if value is UNDEFINED:
        return repr_of(0.5)
    return repr_of(math.nan if isinstance(value, bool) or not isinstance(value, int | float) else value)


def repr_of(value: float) -> str:
    return repr(float(value))


def context_of(chance: random.Random) -> Context:
    """The world is the same in every row; one evaluation in five is short of levels, one in ten of steps."""
    depth = chance.choice((3, 6, 12, 25)) if chance.randrange(5) == 0 else 400
    steps = chance.choice((4, 15, 60, 300)) if chance.randrange(10) == 0 else Context().max_steps
    homes = {"x": "/home/x"}
    return Context(
        now=lambda: 1_767_225_600, random=lambda: 0.25, home=homes.get, max_depth=depth, max_steps=steps
    )


def questions(tables: Tables, text: str, chance: random.Random, others: Sequence[Ad]) -> Iterator[Question]:
    """The table from both sides; without another ad at times."""
    context, overlay = context_of(chance), tables.overlay()
    yield Question(tables, text, chance.choice(others), context, tables.rows(), overlay, mine=False)
    other = chance.choice([*others, None])
    yield Question(tables, text, other, context, tables.rows(), overlay, mine=True)


def fall_backs(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """
    A list that grows with each expression that is left to closures, wherever in the package that happens.
    """
    calls: list[int] = []
    package = [module for name, module in sys.modules.items() if name.startswith("kettle.classad.columnar.")]
    holders = [module for module in package if hasattr(module, "outcomes")]
    assert holders, "what is counted has another name now"
    original = holders[0].outcomes

    def counted(*arguments: Any, **more: Any) -> Any:
        calls.append(1)
        return original(*arguments, **more)

    for module in holders:
        monkeypatch.setattr(module, "outcomes", counted)
    return calls


def asked(seed: int, sizes: Sequence[int]) -> Iterator[Question]:
    """
    Questions about tables of these sizes, which change from time to time.

    The same few expressions are asked again and again: what is remembered of them must not outlive its truth.
    """
    chance = random.Random(seed)
    while True:
        tables = Tables(chance)
        tables.fill(chance.choice(sizes))
        texts = [tables.expression() for _ in range(4)] + [chance.choice(ATTRIBUTES)]
        others = [tables.other() for _ in range(3)]
        for _ in range(5):
            for text in texts:
                yield from questions(tables, text, chance, others)
            tables.change()


def differences(seed: int, sizes: Sequence[int], evaluations: int) -> list[str]:
    """What is wrong in the first question of so many evaluations that is answered wrongly."""
    chance = random.Random(seed)
    done = 0
    for question in asked(seed, sizes):
        wrong = question.disagreements(chance.choice((*ATTRIBUTES, *OTHERS)).lower())
        done += 2 * len(question.rows)
        if wrong:
            return [f"seed {seed}: {unparse(question.node)}", *wrong]
        if done >= evaluations:
            break
    return []


@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_table_answers_as_the_interpreter_does_row_by_row(seed: int) -> None:
    """
    Whatever the ads, the expression, the other side and the budget; also after changes, for rows in any order.
    """
    assert not differences(seed, (0, 1, 2, 5, 12, 40), EVALUATIONS // (2 * SEEDS))


@pytest.mark.parametrize("seed", range(LARGE))
def test_a_large_table_answers_as_the_interpreter_does(seed: int) -> None:
    """It also does so where a chain of clauses evaluates only the undecided rows."""
    assert not differences(1000 + seed, (600,), EVALUATIONS // (2 * LARGE))


def test_a_fair_part_of_what_is_compared_is_computed_in_vectors(monkeypatch: pytest.MonkeyPatch) -> None:
    """The comparison above means something: in a third of its questions no closure looks at any row."""
    calls = fall_backs(monkeypatch)
    vectors = 0
    for question in islice(asked(7, (12, 40)), 600):
        before = len(calls)
        question.evaluator.values(question.node)
        vectors += len(calls) == before
    assert vectors > 200


COLUMNS: dict[str, tuple[Scalar | None, ...]] = {
    "Cpus": (0, 1, 2, 8, 128),
    "Memory": (2**53, 2**53 + 1, 2**63 - 1, -(2**63)),
    "Load": (0.0, -0.0, 0.5, 2.0**53, math.inf, -math.inf, math.nan),
    "Idle": (False, True),
    "Arch": ("X86_64", "x86_64", "é", "É", ""),
    "Gpus": (1, 2, None, Expr("undefined"), Expr("error")),
    "Start": (Expr("TARGET.Want ?: Cpus > 1"),),
    "Rank": (1, Expr("Cpus * 2"), Expr("TARGET.Want + 1")),
}
OPERANDS = [
    "Cpus", "Memory", "Load", "Idle", "Gpus", "Rank", "nosuch", "0", "1", "2.5", "9007199254740993", "true", "Nan",
]  # fmt: skip
STRINGS = ["Arch", '"X86_64"', '"\\303\\251"', '"nowhere"', "undefined"]
OPERATORS = ["<", "<=", "==", "!=", ">=", ">", "=?=", "=!=", "&&", "||", "?:"]
TYPED = [
    *(f"{left} {op} {right}" for op in [*OPERATORS, "+", "-", "*", "/", "%"] for left, right in combinations(OPERANDS, 2)),
    *(f"{left} {op} {right}" for op in ("==", "!=", "=?=", "=!=") for left in STRINGS for right in STRINGS),
    'Cpus == 8 && Load < 1 && Gpus > 1 && Arch == "X86_64" && Rank > 2',
    "Cpus > 0 || Idle || Gpus == 1 || Start",
    "(Idle ? Cpus : Memory) / 2 > 1 && Start",
    "isUndefined(Gpus) || isError(Gpus) || !Idle",
]  # fmt: skip


def test_what_is_typed_is_left_to_no_closure(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    Comparisons, arithmetic and logic of numbers, and the equality of strings, never look at a single row, and are right.
    """
    calls = fall_backs(monkeypatch)
    chance, rows = random.Random(5), 600
    ads = [
        {name: value for name, values in COLUMNS.items() if (value := chance.choice(values)) is not None}
        for _ in range(rows)
    ]
    table = Table()
    table.put_many((str(number), ad) for number, ad in enumerate(ads))
    other = ClassAd({"Want": 1, "Nan": math.nan})
    seen = [ClassAd.from_wire(ad) for ad in ads[:: rows // 20]]
    for text in TYPED:
        node = parse(text)
        expected = [shown(interpret(node, ad, other)) for ad in seen]
        got = Evaluator(table, target=other).values(node)[:: rows // 20]
        assert (text, expected) == (text, [shown(value) for value in got])
    assert [] == calls
