"""What makes the engines different inside must not show outside."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kettle.classad import (
    ERROR,
    UNDEFINED,
    ClassAd,
    Context,
    EvaluationFailed,
    List,
    Node,
    Value,
    evaluate,
    evaluate_attribute,
    evaluate_within,
    interpret,
    interpret_attribute,
    parse,
)
from kettle.classad.cost import extent_of

ENGINES = {"closures": evaluate, "interpreter": interpret}
Engine = Callable[[Node, ClassAd | None, ClassAd | None, Context], Value]


@pytest.fixture(params=list(ENGINES.values()), ids=list(ENGINES))
def engine(request: pytest.FixtureRequest) -> Engine:
    chosen: Engine = request.param
    return chosen


def value_of(
    engine: Engine, text: str, my: str = "[]", target: str | None = None, context: Context | None = None
) -> Value:
    other = None if target is None else ClassAd.parse(target)
    return engine(parse(text), ClassAd.parse(my), other, context or Context())


def called_deep_down(frames: int, action: Callable[[], Value]) -> Value:
    return action() if frames == 0 else called_deep_down(frames - 1, action)


@pytest.mark.parametrize(
    "text",
    ["true || 1+1+1+1+1 > 0", "false && -(-(-(-1)))", "true ? 1 : ((((2))))", "1 ?: f(f(f(1)))[0].a.b.c.d"],
)
def test_a_branch_that_is_not_taken_may_be_too_deep(engine: Engine, text: str) -> None:
    """Only levels that the evaluation goes down count, however high the expression is as a whole."""
    assert value_of(engine, text) == value_of(engine, text, context=Context(max_depth=2))


def test_a_branch_that_is_taken_is_as_deep_as_it_is(engine: Engine) -> None:
    """Five levels are enough for an expression of five, four are not."""
    text = "ifThenElse(x, 0, -(-(-(-1))))"
    assert 1 == value_of(engine, text, "[x=false]", context=Context(max_depth=9))
    assert 0 == value_of(engine, text, "[x=true]", context=Context(max_depth=1))
    with pytest.raises(EvaluationFailed, match="too deeply"):
        value_of(engine, text, "[x=false]", context=Context(max_depth=4))


@pytest.mark.parametrize("doomed", ["random(0)", "absTime(0, -1)", "n.b", "sum({random(0)})"])
def test_what_would_fail_harms_nobody_who_does_not_ask(engine: Engine, doomed: str) -> None:
    """
    Operators that decide by one side, and lists and ads that nobody looks into, leave the other side alone.
    """
    my = "[n=[b=random(0)]]"
    assert [False, True, 1, 2, 3] == [
        value_of(engine, text.format(doomed), my)
        for text in (
            "false && {}",
            "true || {}",
            "1 ?: ({})",
            "true ? 2 : {}",
            "size({{1, 2, {}}})",
        )
    ]
    with pytest.raises(EvaluationFailed):
        value_of(engine, f"true && {doomed}", my)


def test_the_first_error_or_decision_of_a_chain_wins(engine: Engine) -> None:
    """Clauses are looked at from left to right, whatever the parentheses; undefined waits for the others."""
    texts = ["u && (true && error)", "(u && false) && error", "u && (5 && 1.0)", "true && (x && (y))"]
    assert [ERROR, False, UNDEFINED, True] == [value_of(engine, text, "[x=2;y=true]") for text in texts]
    texts = ["(z || true) && true", "(true && z) || true", "(true || error) && z", "(z && error) || z"]
    assert [True, True, False, False] == [value_of(engine, text, "[z=false]") for text in texts]
    texts = ["u || (false || error)", "(u || true) || error", "u || (0 || 0.0)", "false || (z || (y))"]
    assert [ERROR, True, UNDEFINED, True] == [value_of(engine, text, "[z=0;y=1]") for text in texts]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('TARGET.Arch == "x86_64" && "X86_64" == TARGET.Arch', True),
        ('TARGET.Arch >= "y"', False),
        ('"y" > TARGET.Arch', True),
        ('TARGET.Accented == "\\303\\211"', False),
        ('TARGET.Kelvin == "k"', False),
        ("TARGET.Memory >= Want && Want <= TARGET.Memory && MY.Want < TARGET.Memory", True),
        ("TARGET.Memory > 4096 || 4096 > TARGET.Memory", False),
        ("TARGET.Load < 1 && 0.25 < TARGET.Load", True),
        ("TARGET.Memory == 4096.0", True),
        ('TARGET.Memory == "4096"', ERROR),
        ("TARGET.Half >= Want", True),
        ("TARGET.Want >= Half", UNDEFINED),
        ("TARGET.Down == true", ERROR),
        ("TARGET.Up =?= true && TARGET.nosuch =?= undefined && TARGET.Arch =!= undefined", True),
        ("Memory + Want * 2 - 1", 6143),
        ("TARGET.Memory * 9007199254740992", -9223372036854775808 + 9223372036854775808),
        ("TARGET.Big + 1", -9223372036854775808),
        ("TARGET.Huge * TARGET.Huge", ERROR),
        ("TARGET.Huge - TARGET.Load * 2.0", 1e308),
    ],
)  # fmt: skip
def test_operators_that_look_into_both_ads(engine: Engine, text: str, expected: Value) -> None:
    """
    Attributes as numbers, strings, expressions, text, or not there: short ways and long ways give the same.
    """
    target = ClassAd.parse(
        '[Arch="X86_64"; Memory=4096; Load=0.5; Huge=1.0e308; Half=TARGET.Want+Memory/2; Up=MY.Memory > 1; Down="a"; Big=9223372036854775807;'
        ' Accented="\\303\\251"]'
    )
    target["Kelvin"] = "\N{KELVIN SIGN}"
    value = engine(parse(text), ClassAd({"Want": 1024}), target, Context())
    assert (type(expected), expected) == (type(value), value)


def test_members_of_a_list_see_who_walks_it(engine: Engine) -> None:
    """A subscript evaluates where the list was written, a function where it was called."""
    my = "[o=[x=3; l={x,x+1}]; x=9]"
    assert [4, 19, 3] == [value_of(engine, text, my) for text in ("o.l[1]", "sum(o.l)", "o.l[0]")]


def test_circles_end_wherever_they_are_entered(engine: Engine) -> None:
    """
    An attribute that comes back to itself is undefined there: over both ads, a list, a nested ad, a text.
    """
    my = '[a=TARGET.b; c={c, 1}[0] ?: 2; d=[e=d.e ?: 3]; f=eval("f") ?: 4; h=sum({h, 5})]'
    expected = [7, 2, 3, 4, 5]
    assert expected == [
        value_of(engine, text, my, "[b=TARGET.a ?: 7]") for text in ("a", "c", "d.e", "f", "h")
    ]


@pytest.mark.parametrize("name", ["MY", "target"])
def test_an_attribute_may_hide_a_side(engine: Engine, name: str) -> None:
    """
    `MY` and `TARGET` are names like others: who defines one means that one, however it came into the ad.
    """
    text = parse(f"{name}.x")
    slot = ClassAd({"x": 20})
    hiding = ClassAd.parse(f"[{name}=[x=1]; x=10]")
    late = ClassAd({"x": 10})
    late[name] = parse("[x=1]")
    chained = ClassAd({"x": 10}, chained=hiding)
    ads = [hiding, late, chained, hiding.copy(), chained.collapse(), ClassAd.from_wire(hiding.to_wire())]
    assert [1] * len(ads) == [engine(text, ad, slot, Context()) for ad in ads]


FORMS = {
    "a name": "{}",
    "MY": "MY.{}",
    "operator": "{} + 0",
    "comparison": "{} >= 1 ? 1 : 0",
    "chain": "({} && true) ? 1 : 0",
    "strict function": "int({})",
    "lazy function": "countMatches({} + 0, {{[]}})",
    "choice": "ifThenElse(true, {}, 0)",
    "list": "{{{}}}[0]",
    "list that is walked": "sum({{{}}})",
    "selection": "[y={}].y",
    "selection from a list": "{{[y={}]}}.y[0]",
    "text": 'eval("{}")',
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS.keys())
def test_all_levels_fit_a_caller_who_is_deep_down_himself(engine: Engine, form: str) -> None:
    """
    What gives up, gives up at the same level as at the top of the stack: never is it Python's stack that ends.
    """
    chain = ClassAd.parse(
        "[" + ";".join(f"a{n}={form.format(f'a{n - 1}')}" for n in range(1, 410)) + ";a0=1]"
    )

    def outcome(number: int) -> Value | EvaluationFailed:
        try:
            return engine(parse(f"a{number}"), chain, None, Context())
        except EvaluationFailed as failure:
            return failure

    def reached() -> int:
        return next(number for number in range(0, 410, 3) if outcome(number) != 1)

    level = reached()
    assert level == called_deep_down(100, reached)
    assert level > 45


@pytest.mark.parametrize("engine_of_name", [evaluate_attribute, interpret_attribute])
def test_a_stack_that_is_used_up_is_a_failure_of_the_evaluation(
    engine_of_name: Callable[[str, ClassAd], Value],
) -> None:
    """A caller near the end of Python's stack gets the error that all evaluations may raise."""
    chain = ClassAd.parse("[" + ";".join(f"a{n}=-a{n - 1}" for n in range(1, 180)) + ";a0=1]")
    with pytest.raises(EvaluationFailed, match="too deeply"):
        called_deep_down(800, lambda: engine_of_name("a179", chain))


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        ("1 + 1", 3),
        ("x", 1 + 3),
        ("x + x", 3 + 2 * 3),
        ("false && 1 + 1 > x", 7),
        ("(1)", 2),
        ("{1, 2, 3}", 1),
        ("{1, 1 + 1}[1]", 3 + 3),
        ("sum({1, 1 + 1})", 2 + 2 + 3),
        ('eval("1 + 1")', 2 + 3),
        ("y", 1 + 1),
        ("[a = 1 + 1; b = 2].a", 2 + 2 + 3),
        ("nofunc(1 + 1)", 1),
    ],
)
def test_an_expression_costs_its_size_whenever_it_is_entered(engine: Engine, text: str, steps: int) -> None:
    """So many steps are enough, one less is not."""
    my = "[x=1+1; y=y; z=3]"
    value_of(engine, text, my, context=Context(max_steps=steps))
    with pytest.raises(EvaluationFailed, match="too long"):
        value_of(engine, text, my, context=Context(max_steps=steps - 1))


@pytest.mark.parametrize(
    ("text", "levels"),
    [
        ("-x", 3),
        ("-(MY.x)", 4),
        ('n["k"]', 4),
        ("n.k", 3),
        ("-{-x}[0]", 5),
        ("(({x}.y))", 7),
        ("-sum({x})", 7),
        ("true && (true && x > 1)", 6),
        ("TARGET.t", 3),
    ],
)
def test_levels_are_counted_where_an_expression_is_left(engine: Engine, text: str, levels: int) -> None:
    """So many levels are enough, one less is not."""
    my, target = "[x=1+1; n=[k=-(-1)]]", "[t=TARGET.x]"
    value_of(engine, text, my, target, Context(max_depth=levels))
    with pytest.raises(EvaluationFailed, match="too deeply"):
        value_of(engine, text, my, target, Context(max_depth=levels - 1))


def test_the_other_ad_is_asked_last(engine: Engine) -> None:
    """A bare name is looked for in the chained ad and in the ads around first; so is TARGET itself."""
    other = ClassAd({"y": 2})
    above = ClassAd({"y": 1})
    inner = ClassAd({"z": 3}, parent=ClassAd.parse("[y=4; target=[y=5]]"))
    assert [1, 4, 5, 2] == [
        engine(parse("y"), ClassAd(chained=above), other, Context()),
        engine(parse("y"), inner, other, Context()),
        engine(parse("TARGET.y"), inner, other, Context()),
        engine(parse("y"), ClassAd(chained=ClassAd()), other, Context()),
    ]


def test_a_failure_that_is_caught_leaves_nothing_behind(engine: Engine) -> None:
    """A function that goes on after a failure finds no attribute marked as being evaluated."""
    my = "[bad=random(0)]"
    assert 0 == value_of(engine, "countMatches(bad + 0, {[x=1]})", my)
    with pytest.raises(EvaluationFailed, match="random"):
        value_of(engine, "countMatches(bad + 0, {[x=1]}) == 0 && isUndefined(bad)", my)


def test_an_expression_is_compiled_once() -> None:
    """Thousands of ads with the same Requirements share one closure."""
    text = 'TARGET.Memory > 17 && Owner == "once"'
    ads = [ClassAd({"Requirements": parse(text), "Owner": owner}) for owner in ("once", "twice")]
    slot = ClassAd({"Memory": 18})
    assert [True, False] == [evaluate_attribute("Requirements", ad, slot) for ad in ads]
    code = extent_of(parse(text)).code
    assert code is not None
    assert True is evaluate(parse(text), ads[0], slot)
    assert code is extent_of(parse(text)).code


def test_trees_deeper_than_pythons_stack_are_no_danger(engine: Engine) -> None:
    """What is never gone into may be as deep as it likes; what is, is too deep."""
    deep = "+".join(["1"] * 20_000)
    assert True is value_of(engine, f"true || ({deep})")
    with pytest.raises(EvaluationFailed, match="too deeply"):
        value_of(engine, deep)


def test_a_list_can_be_read_when_the_evaluation_is_over(engine: Engine) -> None:
    """
    A list that was kept evaluates its members in both ads of the match, also within an ad of the evaluation.
    """
    values = value_of(engine, "n.l", "[n=[l={x, y, TARGET.y, MY.x}; x=1]]", "[y=2]")
    assert isinstance(values, List)
    assert [1, UNDEFINED, 2, 1] == list(values)


def test_selecting_the_other_side_goes_on_from_either_side(engine: Engine) -> None:
    """`MY.TARGET` is the other ad, and so is what `TARGET.TARGET` is to that."""
    texts = ["MY.TARGET.x", "TARGET.TARGET.x", "self.other.x", "n.target.x"]
    assert [2, 1, 2, 2] == [value_of(engine, text, "[x=1;n=[]]", "[x=2]") for text in texts]


def test_around_a_match_is_an_ad_of_both_sides(engine: Engine) -> None:
    """`parent` of a matched ad is an ad that names the two, from whichever side one looks."""
    texts = [
        "parent.my.x",
        "parent.target.x",
        "TARGET.y",
        "parent.ad.x + parent.other.x",
        "!parent",
        ".LEFT.x",
        ".x",
    ]
    values = [value_of(engine, text, "[x=1]", "[x=2;y=parent.my.x*10+parent.target.x]") for text in texts]
    assert [1, 2, 21, 3, ERROR, 1, UNDEFINED] == values
    assert UNDEFINED is value_of(engine, "parent", "[x=1]")


def test_indices_have_32_bits(engine: Engine) -> None:
    """The upper half of an index is not looked at."""
    texts = [
        "{5}[4294967296]",
        "{5,6}[4294967297]",
        "{5}[-9223372036854775808]",
        "{5}[-4294967297]",
        "{5}[true]",
    ]
    assert [5, 6, 5, ERROR, ERROR] == [value_of(engine, text) for text in texts]


@pytest.mark.parametrize(
    "text",
    [
        "{} ? random(0) : 1",
        "{} ? 1 : random(0)",
        "{} && random(0)",
        "{} || random(0)",
        "({} && random(0)) && false",
        "true && ({} || random(0))",
    ],
)
@pytest.mark.parametrize("what", ['"a"', "[]", "relTime(1)"])
def test_what_is_no_boolean_decides_nothing(engine: Engine, text: str, what: str) -> None:
    """The rest is evaluated, and may fail; after an error or undefined, and by ifThenElse, it is not."""
    with pytest.raises(EvaluationFailed):
        value_of(engine, text.format(what))
    assert ERROR is value_of(engine, text.format("error"))
    assert ERROR is value_of(engine, text.format(what).replace("random(0)", "2"))
    assert ERROR is value_of(engine, f"ifThenElse({what}, random(0), random(0))")
    assert ERROR is value_of(engine, f"{what} && 1 && random(0)")
    assert ERROR is value_of(engine, f"true && {what} && random(0)")


def test_an_evaluation_can_start_on_its_way() -> None:
    """What is being evaluated further up ends circles, and what has been gone down is gone."""
    my, slot = ClassAd.parse("[a = b ?: 5; b = a ?: 6; c = TARGET.d]"), ClassAd.parse("[d = TARGET.a]")
    name = parse("c")
    assert 6 == evaluate_within(name, my, slot)[0]
    assert 5 == evaluate_within(name, my, slot, path=[(my, "b")])[0]
    assert UNDEFINED is evaluate_within(name, my, slot, path=[(slot, "d")], depth=390)[0]
    assert 6 == evaluate_within(name, my, slot, Context(max_depth=10), depth=4)[0]
    for depth in (5, 11):
        with pytest.raises(EvaluationFailed, match="too deeply"):
            evaluate_within(name, my, slot, Context(max_depth=10), depth=depth)
    _, steps = evaluate_within(name, my, slot, steps=100)
    assert evaluate_within(name, my, slot)[1] + 100 == steps
    with pytest.raises(EvaluationFailed, match="too long"):
        evaluate_within(name, my, slot, Context(max_steps=steps - 1), steps=100)
