"""The two engines are one language: whatever the expression, the ads and the budget, both say the same."""

import random
from collections.abc import Callable
from functools import partial

from hypothesis import given
from hypothesis import strategies as st

from kettle.classad import (
    ClassAd,
    Context,
    EvaluationFailed,
    List,
    Value,
    evaluate,
    evaluate_attribute,
    interpret,
    interpret_attribute,
    parse,
    unparse,
)

ATTRIBUTES = ["a", "b", "c", "l", "n", "Memory", "Requirements"]
SIDES = ["MY", "TARGET", "my", "other", "self", "parent", "root"]
NAMES = st.one_of(
    st.sampled_from(ATTRIBUTES),
    st.tuples(st.sampled_from(SIDES), st.sampled_from(ATTRIBUTES)).map(".".join),
    st.sampled_from(
        [*SIDES, "CurrentTime", ".a", "n.a", "TARGET.n.b", "MY.TARGET.a", "nosuch", "TARGET.nosuch"]
    ),
)
LITERALS = st.sampled_from([
    "true", "false", "undefined", "error", "0", "1", "-7", "9223372036854775807", "2.5", "1.0e308", '"a"', '"A"',
    '"\\303\\251"', '"b"', '"a + 1"', '"MY.b"', "{}", "[]", "relTime(5)", 'relTime("5")', "absTime(0)",
])  # fmt: skip
OPERATORS = [
    "+", "-", "*", "/", "%", "<", "<=", ">", ">=", "==", "!=", "=?=", "=!=", "&", ">>", "&&", "||", "?:",
]  # fmt: skip
CALLS = {
    1: ["isUndefined", "sum", "size", "eval", "int", "unparse", "nofunc", "debug", "min"],
    2: ["member", "countMatches", "evalInEachContext", "join", "regexp", "strcat", "quantize", "userHome", "size"],
    3: ["ifThenElse", "anyCompare", "strcat", "substr", "ifThenElse"],
}  # fmt: skip


def grown(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Larger expressions out of smaller ones."""
    call = st.sampled_from([(name, count) for count, names in CALLS.items() for name in names]).flatmap(
        lambda drawn: st.tuples(*[inner] * drawn[1]).map(lambda given: f"{drawn[0]}({','.join(given)})")
    )
    return st.one_of(
        st.tuples(inner, st.sampled_from(OPERATORS), inner).map(lambda part: "({})".format(" ".join(part))),
        st.tuples(NAMES, st.sampled_from(OPERATORS), LITERALS | NAMES).map(" ".join).map("({})".format),
        st.lists(inner, min_size=2, max_size=4).map(" && ".join).map("({})".format),
        st.lists(inner, min_size=2, max_size=4).map(" || ".join).map("({})".format),
        st.tuples(st.sampled_from("-+!~"), inner).map(lambda part: f"({part[0]}({part[1]}))"),
        st.tuples(inner, inner, inner).map(lambda part: "(({}) ? {} : {})".format(*part)),
        st.tuples(inner, inner).map(lambda part: "({})[{}]".format(*part)),
        st.tuples(inner, st.sampled_from(["a", "x", "TARGET", "MY"])).map(
            lambda part: "({}).{}".format(*part)
        ),
        st.lists(inner, max_size=3).map(lambda texts: "{" + ",".join(texts) + "}"),
        st.tuples(inner, inner).map(lambda part: "[a={};x={}]".format(*part)),
        call,
    )


EXPRESSIONS = st.recursive(LITERALS | NAMES, grown, max_leaves=10)
ADS = st.dictionaries(
    st.one_of(
        st.sampled_from(ATTRIBUTES), st.sampled_from(ATTRIBUTES), st.sampled_from(["MY", "Target", "x"])
    ),
    LITERALS | EXPRESSIONS,
    max_size=6,
)
BUDGETS = st.tuples(st.integers(0, 12) | st.just(400), st.integers(0, 60) | st.just(20_000))


def ad_of(texts: dict[str, str], chained: ClassAd | None = None) -> ClassAd:
    return ClassAd({name: parse(text) for name, text in texts.items()}, chained=chained)


def context_of(budget: tuple[int, int]) -> Context:
    chance = random.Random(0)
    homes = {"a": "/home/a"}
    return Context(
        now=lambda: 5, random=chance.random, home=homes.get, max_depth=budget[0], max_steps=budget[1]
    )


def outcome(evaluated: Callable[[], Value]) -> tuple[str, ...]:
    """The value, and what the members are if it is a list; or that there is none, and why."""
    try:
        value = evaluated()
        members = tuple(unparse(member) for member in value) if isinstance(value, List) else ()
    except EvaluationFailed as failure:
        return "EVAL_FAIL", str(failure)
    return unparse(value), *members


@given(EXPRESSIONS, ADS, ADS, ADS | st.none(), BUDGETS)
def test_engines_agree(
    text: str,
    my: dict[str, str],
    above: dict[str, str],
    target: dict[str, str] | None,
    budget: tuple[int, int],
) -> None:
    """Same value, or same failure at the same limit, chained ads and a match or none."""
    node = parse(text)
    mine, theirs = ad_of(my, ad_of(above) if above else None), None if target is None else ad_of(target)
    expected = outcome(partial(interpret, node, mine, theirs, context_of(budget)))
    assert expected == outcome(partial(evaluate, node, mine, theirs, context_of(budget)))


@given(ADS, ADS, BUDGETS)
def test_engines_agree_about_attributes(
    my: dict[str, str], target: dict[str, str], budget: tuple[int, int]
) -> None:
    """
    An attribute that is asked for by name is on its own path: it ends in circles where it comes back to itself.
    """
    mine, theirs = ad_of(my), ad_of(target)
    for name in my:
        expected = outcome(partial(interpret_attribute, name, mine, theirs, context_of(budget)))
        assert expected == outcome(partial(evaluate_attribute, name, mine, theirs, context_of(budget))), name
