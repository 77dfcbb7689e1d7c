import pytest

from kettle.classad import (
    ERROR,
    UNDEFINED,
    ClassAd,
    Context,
    EvaluationFailed,
    List,
    Value,
    evaluate,
    evaluate_attribute,
    is_true,
    parse,
    unparse,
)
from kettle_wire.ads.types import Expr


def value_of(text: str, my: str = "[]", target: str | None = None, context: Context | None = None) -> Value:
    other = None if target is None else ClassAd.parse(target)
    return evaluate(parse(text), ClassAd.parse(my), other, context or Context())


def test_undefined_and_error_have_no_truth() -> None:
    """Python must not decide three-valued logic by accident."""
    for exceptional in (UNDEFINED, ERROR):
        with pytest.raises(TypeError, match="neither true nor false"):
            bool(exceptional)


@pytest.mark.parametrize(
    ("value", "expected"),
    [(True, True), (2, True), (0.5, True), (0, False), (UNDEFINED, False), (ERROR, False), ("true", False)],
)
def test_only_true_and_numbers_hold(value: Value, expected: bool) -> None:
    """A requirement holds if it is true or a number other than zero."""
    assert expected is is_true(value)


def test_a_list_is_evaluated_where_it_was_written() -> None:
    """
    Members are computed when asked for, with the ad and the target of the evaluation that made the list.
    """
    values = value_of("{ a, TARGET.b, 1/0, {c} }", "[a=1;c=3]", "[b=2]")
    assert isinstance(values, List)
    assert [1, 2, ERROR] == values[:3]
    inner = values[3]
    assert isinstance(inner, List)
    assert [3] == list(inner)


def test_an_attribute_of_the_target_sees_the_match_from_its_side() -> None:
    """MY and TARGET swap when an attribute of the other ad is evaluated."""
    assert 11 == value_of("TARGET.Sum", "[x=1]", "[x=10;Sum=MY.x+TARGET.x]")


def test_a_bare_name_falls_back_to_the_target_and_my_does_not() -> None:
    """`Memory` finds the slot's, `MY.Memory` only the job's own; a nested ad has no fallback."""
    target = "[Memory=5]"
    assert [5, UNDEFINED, UNDEFINED] == [
        value_of("Memory", "[]", target),
        value_of("MY.Memory", "[]", target),
        value_of("n.m", "[n=[m=Memory]]", target),
    ]


def test_chained_attributes_are_evaluated_in_the_child() -> None:
    """A cluster's expression sees the attributes of the job it is evaluated for."""
    cluster = ClassAd({"Doubled": parse("x * 2"), "x": 1})
    assert 14 == evaluate_attribute("Doubled", ClassAd({"x": 7}, chained=cluster))


def test_circles_end_in_undefined() -> None:
    """An attribute that refers to itself, alone or across the match, is undefined."""
    assert UNDEFINED is value_of("a", "[a=TARGET.a]", "[a=TARGET.a]")
    assert 1 == value_of("a", "[a = a ?: 1]")
    assert 7 == value_of("a.b", "[a=[b=a.c;c=7]]")


@pytest.mark.parametrize(
    ("text", "my"),
    [("a401", "chain"), ('[s="eval(s)";a=eval(s)].a', ""), ("random(0)", ""), ("absTime(0,-1)", "")],
)
def test_an_evaluation_can_fail(text: str, my: str) -> None:
    """Too deep, endless, or asked for the impossible: there is no value, not even error."""
    chain = "[" + ";".join(f"a{n}=a{n - 1}" for n in range(1, 402)) + ";a0=1]"
    with pytest.raises(EvaluationFailed):
        value_of(text, chain if my else "[]")


def test_four_hundred_levels_are_not_too_deep() -> None:
    """A chain of references as long as the limit has a value."""
    chain = "[" + ";".join(f"a{n}=a{n - 1}" for n in range(1, 400)) + ";a0=1]"
    assert 1 == value_of("a399", chain)


def test_steps_are_limited() -> None:
    """Sixty attributes that each double the work of the one before do not stop the negotiator."""
    doubling = "[" + ";".join(f"a{n}=a{n - 1}+a{n - 1}" for n in range(1, 60)) + ";a0=1]"
    with pytest.raises(EvaluationFailed, match="too long"):
        value_of("a59", doubling, context=Context(max_steps=1000))


def test_text_that_does_not_parse_is_an_error_not_an_exception() -> None:
    """One bad ad must not stop code that processes thousands."""
    assert ERROR is evaluate_attribute("Rank", ClassAd.from_wire({"Rank": Expr("1 +")}))


def test_one_evaluation_sees_one_instant() -> None:
    """Two readings of the clock in one expression agree."""
    ticks = iter([100, 200])
    assert True is value_of("time() == CurrentTime", context=Context(now=lambda: next(ticks)))


def test_what_the_context_lacks_is_undefined() -> None:
    """Without a clock and without chance the library invents neither."""
    asked = [
        "time()",
        "CurrentTime",
        "random()",
        "random(5)",
        "formatTime()",
        "dayTime()",
        'userHome("root")',
    ]
    assert [UNDEFINED] * len(asked) == [value_of(text) for text in asked]


def test_a_root_reference_has_no_root_in_a_match() -> None:
    """`.x` starts at the outermost ad, which in a match is neither of the two."""
    assert [1, UNDEFINED] == [value_of(".x", "[x=1]"), value_of(".x", "[x=1]", "[x=2]")]


def test_a_selection_from_a_list_gives_a_list() -> None:
    """`list.name` selects from each member."""
    assert "{ 1,undefined,error }" == unparse(value_of("{[a=1],[b=2],3}.a"))
