"""
The language's conformance vectors: each row is an expression and what it evaluates to.

`classad-vectors.tsv` is evaluated in an empty ad, `classad-match-vectors.tsv` in a match of two given ads.
Values are compared in their one-line form; PARSE_ERROR and EVAL_FAIL stand for having none.
Every engine has to give them all.
"""

import random
from pathlib import Path

import pytest

from kettle.classad import (
    ClassAd,
    ClassAdParseError,
    Context,
    EvaluationFailed,
    parse,
    unparse,
)
from kettle.classad.functions import FUNCTIONS
from kettle.classad.nodes import Call
from kettle.classad.reference_analysis import children
from kettle.testing.evaluators import ENGINES, Engine

DATA = Path(__file__).parent / "data"
CONTEXT = Context(now=lambda: 1_767_225_600, random=random.Random(0).random, home={"root": "/root"}.get)


# Functions that the vectors use and the library does not have yet.
NOT_YET = frozenset[str]()


def rows(name: str) -> list[list[str]]:
    text = (DATA / name).read_text(encoding="utf-8")
    return [line.split("\t") for line in text.split("\n")[1:] if line]


def functions_of(text: str) -> set[str]:
    """The functions that an expression calls, `nofunc`, which is meant to be unknown, aside."""
    try:
        pending = [parse(text)]
    except ClassAdParseError:
        return set()
    names: set[str] = set()
    while pending:
        node = pending.pop()
        names |= {node.key} if isinstance(node, Call) else set[str]()
        pending.extend(children(node))
    return names - {"nofunc", "length"}


@pytest.fixture(params=list(ENGINES.values()), ids=list(ENGINES))
def engine(request: pytest.FixtureRequest) -> Engine:
    chosen: Engine = request.param
    return chosen


def outcome(engine: Engine, expression: str, my: ClassAd | None = None, target: ClassAd | None = None) -> str:
    try:
        node = parse(expression)
    except ClassAdParseError:
        return "PARSE_ERROR"
    try:
        return unparse(engine(node, my, target, CONTEXT))
    except EvaluationFailed:
        return "EVAL_FAIL"


def report(failures: list[tuple[str, str, str]]) -> str:
    lines = (f"{row}\n    expected {expected}\n    but got  {got}" for row, expected, got in failures)
    return f"{len(failures)} rows differ\n" + "\n".join(lines)


def test_each_expression_has_its_value(engine: Engine) -> None:
    """An expression in an empty ad evaluates to what HTCondor makes of it."""
    selected = [row for row in rows("classad-vectors.tsv") if functions_of(row[0]) <= FUNCTIONS.keys()]
    failures = [
        (text, expected, got) for text, expected in selected if (got := outcome(engine, text)) != expected
    ]
    assert not failures, report(failures)
    assert len(selected) >= 1_600


def test_each_expression_has_its_value_in_a_match(engine: Engine) -> None:
    """MY, TARGET and bare names mean in a match what they mean to HTCondor."""
    failures: list[tuple[str, str, str]] = []
    for my, target, text, expected in rows("classad-match-vectors.tsv"):
        got = outcome(engine, text, ClassAd.parse(my), ClassAd.parse(target) if target else None)
        if got != expected:
            failures.append((text, expected, got))
    assert not failures, report(failures)


def test_functions_that_are_missing_are_known() -> None:
    """The vectors use no function the library lacks but those listed as not yet written."""
    used = {name for row in rows("classad-vectors.tsv") for name in functions_of(row[0])}
    used |= {name for row in rows("classad-match-vectors.tsv") for name in functions_of(row[2])}
    assert NOT_YET == used - FUNCTIONS.keys()


@pytest.mark.parametrize("text", ["(" * 160 + "1" + ")" * 160, "+".join(["1"] * 401)])
def test_limits_are_not_reached_early(engine: Engine, text: str) -> None:
    """What HTCondor still evaluates, we evaluate."""
    assert outcome(engine, text) in {"1", "401"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("(" * 200 + "1" + ")" * 200, "PARSE_ERROR"),
        ("!" * 500 + "1", "PARSE_ERROR"),
        ("a ? b : " * 498 + "c", "PARSE_ERROR"),
        ("a ? b : " * 497 + "c", "undefined"),
        ("+".join(["1"] * 402), "EVAL_FAIL"),
    ],
)
def test_limits_are_kept(engine: Engine, text: str, expected: str) -> None:
    """Nesting beyond the limits is refused, at parsing or at evaluation."""
    assert expected == outcome(engine, text)
