"""The names that the two sides of a match have, members that fail, and patterns that only others know."""

import pytest

from kettle.classad import (
    ERROR,
    NOTHING,
    UNDEFINED,
    ClassAd,
    EvaluationFailed,
    Value,
    evaluate,
    parse,
)
from kettle.testing.evaluators import ENGINES, Engine


@pytest.mark.parametrize("engine", ENGINES.values(), ids=ENGINES.keys())
@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("RIGHT.x", 2), ("LEFT.x", 1), ("TOPLEVEL.right.x", 2), ("root.left.x", 1), ("ad.x", 1), ("TARGET.right.x", 2),
        ("MY.left.x", 1), ("[a = RIGHT.x].a", 2), ("lCtx.target.x", 2), ("rCtx.target.x", 1),
        ("symmetricMatch", True), ("leftRankValue", 7), ("TARGET.back", 1), ("size(TOPLEVEL.my)", 9), (".my.x", UNDEFINED),
    ],
)  # fmt: skip
def test_the_two_sides_have_names_in_a_match(engine: Engine, text: str, value: Value) -> None:
    """As in HTCondor they stand in an ad of their own, whichever of them refers to it."""
    left = ClassAd.parse("[x = 1; Requirements = TARGET.x == 2; Rank = 7]")
    right = ClassAd.parse("[x = 2; Requirements = TARGET.x == 1; back = LEFT.x]")
    assert value == engine(parse(text), left, right, NOTHING)
    assert UNDEFINED is engine(parse("LEFT"), left, None, NOTHING)


@pytest.mark.parametrize("engine", ENGINES.values(), ids=ENGINES.keys())
def test_a_member_that_fails_is_error_where_it_is_asked_for(engine: Engine) -> None:
    """In a list an evaluation that fails is error; a function that walks the list fails with it."""
    assert engine(parse("{1, random(0)}[1]"), None, None, NOTHING) is ERROR
    with pytest.raises(EvaluationFailed):
        engine(parse("sum({1, random(0)})"), None, None, NOTHING)


@pytest.mark.parametrize(
    ("pattern", "value"),
    [(r"a\\Kb", ERROR), ("(", False), ("(?1)", ERROR), ("a" * 20_000, ERROR), ("b", True)],
)
def test_a_pattern_that_only_others_know_is_error(pattern: str, value: Value) -> None:
    """`regexpMember` does not say false where it cannot look."""
    assert value == evaluate(parse(f'regexpMember("{pattern}", {{"ab"}})'))
