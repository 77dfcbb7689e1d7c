"""Laws of the ClassAd language that hold for every expression, not only for those someone thought of."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kettle.classad import (
    ERROR,
    UNDEFINED,
    ClassAd,
    Context,
    EvaluationFailed,
    Exceptional,
    NotRepresentable,
    Value,
    conjuncts,
    evaluate,
    is_true,
    parse,
    read_long,
    references,
    unparse,
    write_long,
)
from kettle.classad.nodes import Literal

SLOT = ClassAd.parse(
    '[Arch="X86_64"; Memory=4096; GPUs={[c=4.0],[c=8.6]}; Up=TARGET.Down; x=TARGET.x; n=[y=x]]'
)
JOB = ClassAd.parse("[Memory=MY.Want*2; Want=1024; Down=TARGET.Up; x=y; y=x; l={x,Memory}]")
CONTEXT = Context(now=lambda: 0, random=lambda: 0.5, max_steps=10_000)

INTEGERS = st.integers(-(1 << 63), (1 << 63) - 1)
NAMES = st.sampled_from(
    ["x", "Memory", "MY.x", "TARGET.Memory", "nosuch", "l", "GPUs", "n.y", "'a b'", "CurrentTime"]
)
TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=6)
LITERALS = st.one_of(
    st.sampled_from(
        ["true", "false", "undefined", "error", '""', "0", "-1", "1.5", "-0.0", "absTime(0)", "relTime(5)"]
    ),
    st.integers(0, 99).map(str),
    TEXTS.map(unparse),
)
BINARY = [
    "+",
    "-",
    "*",
    "/",
    "%",
    "<",
    "<=",
    "==",
    "!=",
    "=?=",
    "isnt",
    "&",
    "|",
    "^",
    "<<",
    ">>",
    ">>>",
    "&&",
    "||",
    "?:",
]
CALLS = [
    "size",
    "string",
    "int",
    "isError",
    "toUpper",
    "sum",
    "strcat",
    "member",
    "ifThenElse",
    "regexp",
    "nofunc",
    "min",
]


def grown(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Larger expressions out of smaller ones."""
    return st.one_of(
        st.tuples(inner, st.sampled_from(BINARY), inner).map(
            lambda part: f"({part[0]}) {part[1]} ({part[2]})"
        ),
        st.tuples(st.sampled_from("-+!~"), inner).map(lambda part: f"{part[0]}({part[1]})"),
        st.tuples(inner, inner, inner).map(lambda part: "({}) ? {} : {}".format(*part)),
        st.tuples(inner, inner).map(lambda part: "({})[{}]".format(*part)),
        inner.map(lambda text: f"({text}).x"),
        st.lists(inner, max_size=3).map(lambda texts: "{" + ",".join(texts) + "}"),
        st.lists(inner, max_size=3).map(
            lambda texts: "[" + ";".join(f"a{n}={t}" for n, t in enumerate(texts)) + "]"
        ),
        st.tuples(st.sampled_from(CALLS), st.lists(inner, max_size=3)).map(
            lambda part: f"{part[0]}({','.join(part[1])})"
        ),
    )


EXPRESSIONS = st.recursive(LITERALS | NAMES, grown, max_leaves=12)


def value_of(text: str) -> Value:
    return evaluate(parse(text), JOB, SLOT, CONTEXT)


def outcome(text: str) -> str:
    try:
        return unparse(value_of(text))
    except EvaluationFailed:
        return "EVAL_FAIL"


@given(EXPRESSIONS)
def test_what_is_written_reads_back_as_the_same_tree(text: str) -> None:
    """Parsing what was written gives what was written."""
    node = parse(text)
    assert node == parse(unparse(node))


@given(EXPRESSIONS)
def test_an_evaluation_ends_in_a_value_or_says_that_it_failed(text: str) -> None:
    """No expression raises anything but EvaluationFailed, and asking twice gives the same answer."""
    assert outcome(text) == outcome(text)


@given(EXPRESSIONS)
def test_analysis_covers_every_expression(text: str) -> None:
    """References are found in whatever parses, and none is both the ad's own and open."""
    found = references(parse(text), JOB)
    assert not {name.lower() for name in found.internal} & {name.lower() for name in found.external}


@given(st.lists(EXPRESSIONS, min_size=1, max_size=4))
def test_a_conjunction_holds_if_all_its_conjuncts_do(texts: list[str]) -> None:
    """What explains a failed requirement, clause by clause, agrees with the requirement."""
    whole = " && ".join(f"({text})" for text in texts)
    try:
        holds = is_true(value_of(whole))
        clauses = [is_true(evaluate(clause, JOB, SLOT, CONTEXT)) for clause in conjuncts(parse(whole))]
    except EvaluationFailed:
        return
    assert holds == all(clauses)


TRUTH: list[Exceptional | bool] = [True, False, UNDEFINED, ERROR]


def both(left: Exceptional | bool, right: Exceptional | bool) -> Exceptional | bool:
    """`&&` as the specification's table has it, read row by row."""
    if left is ERROR or left is False:
        return left
    if right is ERROR or right is False:
        return right
    return UNDEFINED if UNDEFINED in {left, right} else True


def negated(value: Exceptional | bool) -> Exceptional | bool:
    return value if isinstance(value, Exceptional) else not value


@pytest.mark.parametrize("left", TRUTH)
@pytest.mark.parametrize("right", TRUTH)
def test_the_tables_of_and_and_or(left: Exceptional | bool, right: Exceptional | bool) -> None:
    """`&&` follows its table, and `||` is its mirror image."""
    texts = unparse(left), unparse(right)
    assert both(left, right) == value_of("{} && {}".format(*texts))
    assert negated(both(negated(left), negated(right))) == value_of("{} || {}".format(*texts))


@pytest.mark.parametrize("other", ['"true"', "{true}", "[a=1]", "absTime(0)", "relTime(1)"])
@pytest.mark.parametrize("left", TRUTH)
def test_what_is_no_boolean_is_an_error_where_it_matters(left: Exceptional | bool, other: str) -> None:
    """A string beside a logical operator is an error unless the left side has decided."""
    assert (False if left is False else ERROR) == value_of(f"{unparse(left)} && {other}")
    assert (True if left is True else ERROR) == value_of(f"{unparse(left)} || {other}")
    assert ERROR is value_of(f"{other} && {unparse(left)}")


@given(INTEGERS, INTEGERS)
def test_integers_are_a_ring_of_64_bits(left: int, right: int) -> None:
    """Addition, subtraction and multiplication wrap; division and remainder fit together."""
    ad = ClassAd({"a": left, "b": right})
    for op, exact in (("+", left + right), ("-", left - right), ("*", left * right)):
        value = evaluate(parse(f"a {op} b"), ad)
        assert isinstance(value, int)
        assert -(1 << 63) <= value < 1 << 63
        assert (value - exact) % (1 << 64) == 0
    if right:
        assert left == evaluate(parse("a / b * b + a % b"), ad) or (left, right) == (-(1 << 63), -1)


@given(st.floats(), st.floats())
def test_reals_never_reach_positive_infinity(left: float, right: float) -> None:
    """Arithmetic that would is an error; everything else is what IEEE says."""
    ad = ClassAd({"a": left, "b": right})
    for op in "+-*/":
        assert math.inf != evaluate(parse(f"a {op} b"), ad)


@given(TEXTS, TEXTS)
def test_comparison_is_an_order(left: str, right: str) -> None:
    """Exactly one of <, == and > holds between two strings."""
    ad = ClassAd({"a": left, "b": right})
    assert [True] == [value for op in ("<", "==", ">") if (value := evaluate(parse(f"a {op} b"), ad))]


@given(TEXTS)
def test_every_string_survives_new_syntax(text: str) -> None:
    """A literal reads back as the string it was made of."""
    assert Literal(text) == parse(unparse(text))


@given(st.dictionaries(st.sampled_from(["a", "B", "Long_Name"]), EXPRESSIONS | TEXTS.map(unparse)))
def test_every_ad_survives_the_wire_and_the_long_form_or_is_refused(texts: dict[str, str]) -> None:
    """The long form reads back as the ad, or refuses to be written."""
    ad = ClassAd({name: parse(text) for name, text in texts.items()})
    assert ad == ClassAd.from_wire(ad.to_wire())
    try:
        written = write_long(ad)
    except NotRepresentable:
        return
    assert ad == read_long(written)
