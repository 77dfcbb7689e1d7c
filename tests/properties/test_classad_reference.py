"""
Evaluation against the reference implementation, on expressions and ads that nobody thought of.

The budget of evaluations comes from KETTLE_TEST_EVALUATIONS, the first seed from KETTLE_TEST_SEED; the defaults suit a
suite that runs often. A hundred thousand expressions are four times as many evaluations, one by each engine.
"""

import os
import random
import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

import hypothesis
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kettle.classad import (
    ClassAd,
    ClassAdParseError,
    Context,
    EvaluationFailed,
    evaluate,
    parse,
    unparse,
)
from kettle.testing.evaluators import ENGINES, Engine

from .classad_reference import CRASH, Case, Reference
from .classad_texts import Texts
from .classad_words import SIGNATURES

pytest.importorskip("classad2", reason="package htcondor, the reference, exists for Linux on x86-64 only")

FIRST_SEED = int(os.environ.get("KETTLE_TEST_SEED", "0"))
EVALUATIONS = int(os.environ.get("KETTLE_TEST_EVALUATIONS", "10000"))
PER_BATCH = 400
CONTEXT = Context(now=lambda: 0, random=lambda: 0.5)


class Difference(NamedTuple):
    """What is known to differ: patterns of the case, of the reference's outcome and of ours, and why."""

    case: str
    expected: str
    got: str
    why: str


MEANT = [
    Difference(
        "(?is)^.+(evalInEachContext|countMatches|unresolved)",
        "",
        "",
        "these move the reference's evaluator to another ad, and leave it there for what else is evaluated",
    ),
    Difference(
        r"\.",
        r"^\{",
        "^EVAL_FAIL$",
        "a list that selects from itself: the reference goes round in memory it has given back, and mostly dies",
    ),
    Difference(
        r"//",
        "",
        "^PARSE_ERROR$",
        "a line comment hides the rest of an ad: the reference ignores what follows the bracket that it then takes for "
        "the last one, and we refuse it",
    ),
    Difference(
        "(?i)stringListsIntersect.*(random|absTime)",
        "^error$",
        "^EVAL_FAIL$",
        "an argument fails: this one function of the reference has a value nevertheless",
    ),
    Difference(
        r"\(\?=[^)]*\)[^\"]*\?",
        r"^(false|\".*\")$",
        r"^(true|\".*\")$",
        "a look-ahead before something optional: PCRE begins its search at a place that is too late, and finds nothing",
    ),
]


def known(case: Case, expected: str, got: str) -> bool:
    text = "".join(case)
    return any(
        re.search(difference.case, text)
        and re.search(difference.expected, expected)
        and re.search(difference.got, got)
        for difference in MEANT
    )


@pytest.fixture(scope="module")
def reference() -> Iterator[Reference]:
    with Reference() as running:
        yield running


def outcome(case: Case, engine: Engine) -> str:
    try:
        node, my = parse(case.expression), ClassAd.parse(case.my or "[]")
        target = ClassAd.parse(case.target) if case.target else None
    except ClassAdParseError:
        return "PARSE_ERROR"
    try:
        return unparse(engine(node, my, target, CONTEXT))
    except EvaluationFailed:
        return "EVAL_FAIL"


def disagreements(reference: Reference, cases: list[Case]) -> list[tuple[Case, str, str, str]]:
    """
    Case, engine, what the reference says, what the engine says; where the reference dies nothing is known.
    """
    return [
        (case, name, expected, got)
        for case, expected in zip(cases, reference.outcomes(cases), strict=True)
        if expected != CRASH
        for name, engine in ENGINES.items()
        if (got := outcome(case, engine)) != expected and not known(case, expected, got)
    ]


def plain(chance: random.Random, count: int) -> list[Case]:
    texts = Texts(chance)
    return [Case("", "", texts.text(chance.choice((1, 2, 2, 3)))) for _ in range(count)]


def matched(chance: random.Random, count: int) -> list[Case]:
    """Each pair of ads serves four expressions; in every fifth there is no other side."""
    texts = Texts(chance)
    pairs = [(texts.ad(8), texts.ad(8) if chance.randrange(5) else "") for _ in range(count // 4)]
    return [Case(my, target, texts.text(chance.choice((1, 2)))) for my, target in pairs for _ in range(4)]


def called(chance: random.Random, count: int) -> list[Case]:
    """Every function as often as any other."""
    texts = Texts(chance)
    return [Case("", "", texts.call(chance.choice(tuple(SIGNATURES)), 2)) for _ in range(count)]


KINDS = [plain, matched, called]


@pytest.mark.parametrize("cases", KINDS)
@pytest.mark.parametrize(
    "seed", range(FIRST_SEED, FIRST_SEED + EVALUATIONS // (PER_BATCH * len(KINDS) * len(ENGINES)))
)
def test_every_engine_evaluates_as_the_reference_does(
    reference: Reference, cases: Callable[[random.Random, int], list[Case]], seed: int
) -> None:
    """Whatever the generator comes upon has the same value here and there."""
    found = disagreements(reference, cases(random.Random(seed), PER_BATCH))
    assert not found, min(found, key=lambda difference: len("".join(difference[0])))


@hypothesis.settings(
    max_examples=max(1, EVALUATIONS // 500),
    suppress_health_check=[hypothesis.HealthCheck.function_scoped_fixture, hypothesis.HealthCheck.too_slow],
)
@pytest.mark.parametrize("cases", KINDS)
@given(chance=st.randoms(use_true_random=False))
def test_the_smallest_expression_that_differs(
    reference: Reference, cases: Callable[[random.Random, int], list[Case]], chance: random.Random
) -> None:
    """Compare few cases at a time, from draws that can be shrunk to the simplest difference."""
    assert not disagreements(reference, cases(chance, 4))


@pytest.mark.parametrize("seed", range(FIRST_SEED, FIRST_SEED + EVALUATIONS // (10 * PER_BATCH)))
def test_a_pattern_is_found_where_the_reference_finds_it_or_is_an_error(
    reference: Reference, seed: int
) -> None:
    """What our engines cannot do is an error; nothing is found elsewhere or taken for something else."""
    texts = Texts(random.Random(seed))
    cases = [Case("", "", texts.search()) for _ in range(PER_BATCH)]
    found = [
        (case.expression, expected, got)
        for case, expected in zip(cases, reference.outcomes(cases), strict=True)
        if (got := outcome(case, evaluate)) not in {expected, "error"} and not known(case, expected, got)
    ]
    assert not found, min(found, key=lambda difference: len(difference[0]))
    assert any(outcome(case, evaluate) == "true" for case in cases)
