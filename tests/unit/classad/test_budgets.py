"""What the expression of somebody else may take: steps, and with them memory, whatever it is made of."""

import logging
import tracemalloc
from functools import cache
from typing import Final

import pytest

from kettle.classad import (
    ERROR,
    FOREIGN_STEPS,
    ClassAd,
    Context,
    EvaluationFailed,
    List,
    Node,
    evaluate,
    evaluate_attribute,
    flatten,
    interpret,
    parse,
)
from kettle.classad.errors import BUDGETS, StepsExceeded
from kettle.classad.functions.arguments import words
from kettle.classad.functions.versions import natural_order
from kettle.runtime import Telemetry
from kettle.runtime.expression_budgets import watch_budgets
from kettle.testing.evaluators import ENGINES, Engine

CONTEXT: Final = Context(now=lambda: 0, max_steps=FOREIGN_STEPS)
LONG: Final = 100_000
"""Characters of a text that an ad may well have."""
ENOUGH: Final = 1000
"""So often does an expression that is no longer than the text ask the same."""


def often(expression: str, times: int = ENOUGH) -> str:
    """An expression that evaluates another one many times, and is not deep."""
    if times == 1:
        return expression
    return f"({often(expression, times // 2)} && {often(expression, times - times // 2)})"


def each(expression: str, times: int = ENOUGH) -> str:
    """An expression that keeps many values of another one."""
    return f"evalInEachContext({expression}, {{{','.join(['[]'] * times)}}})"


def doubling(expression: str) -> str:
    """Sixty attributes, each of which asks for the one before twice."""
    return "a0=1;" + "".join(f"a{n}={expression.replace('#', f'a{n - 1}')};" for n in range(1, 60))


TEXT: Final = f'b="{"x" * LONG}"; c="{"x" * LONG}"; i="{"a," * (LONG // 2)}"; l={{{"1," * 9_999}1}};'
GROUPS: Final = 'b="' + ("x" * 1000 + "y") * 20 + '"; g="' + r"\\1" * 20_000 + '";'
ATTACKS: Final = {
    "texts that are made": (TEXT, each("toUpper(b)")),
    "texts that are cut": (TEXT, each("substr(b, 1)")),
    "texts that are counted": (TEXT, often("stringListSize(i) > 0")),
    "texts that are split": (TEXT, each("split(i)")),
    "texts that are compared": (TEXT, often("b == c")),
    "texts that are ordered": (TEXT, often("strcmp(b, c) == 0")),
    "texts that are replaced": (TEXT, often('size(replaceAll("x", b, "xxxx")) > 0')),
    "texts that are read as numbers": (TEXT, often("isError(int(b))")),
    "texts that are evaluated": (f'b="{"1+" * LONG}1"', often("eval(b) > 0")),
    "groups that are written": (GROUPS, 'size(regexps("(.*)", b, g)) > 0'),
    "groups that are put in place": (GROUPS, 'size(replace("(.*)", b, g)) > 0'),
    "groups that are put in many places": (GROUPS, 'size(replaceAll("(x+)y", b, g)) > 0'),
    "lists that are written": (TEXT, often('string(l) != ""')),
    "ads that are written": (TEXT, often('string(MY) != ""')),
    "texts in lists that are written": (TEXT, f"size(string({each('b')}))"),
    "names in lists that are written": (f"a={{{'n' * LONG}}};", f"size(string({each('a')}))"),
    "attributes that are written": (TEXT, often('unparse(l) != ""')),
    "members that are looked at": (TEXT, often("!member(2, l)")),
    "long members": (TEXT + "m={b,b,b,b};", often('listToArgs(m) != ""')),
    "versions": (TEXT, often("versioncmp(b, c) == 0")),
    "names that nobody defines": (doubling("#+#+x"), 'unresolved(a59) != ""'),
    "sums of sums": (doubling("{sum(#), sum(#)}").replace("a0=1", "a0={1}"), "sum(a59)"),
    "texts of texts": (doubling("strcat(#, #)"), "size(a59)"),
    "contexts in contexts": (
        f"l={{{'[a=1],' * 99}[a=1]}};",
        "evalInEachContext(evalInEachContext(evalInEachContext(a, l), l), l)",
    ),
    "dates": (TEXT, each(f'formatTime(0, "{"%500d" * 2}")', 2000)),
}


@cache
def attack(name: str) -> tuple[ClassAd, Node]:
    """Its ad and its expression: to read them takes longer than to give up."""
    ad, text = ATTACKS[name]
    return ClassAd.parse(f"[{ad}]"), parse(text)


@pytest.mark.parametrize("engine", [evaluate, interpret])
@pytest.mark.parametrize("name", ATTACKS)
def test_what_costs_too_much_is_given_up(engine: Engine, name: str) -> None:
    """An expression that would do much with long texts, lists or many attributes ends with its steps."""
    my, expression = attack(name)
    with pytest.raises(StepsExceeded):
        engine(expression, my, None, CONTEXT)


@pytest.mark.parametrize("name", ["texts that are made", "texts that are split", "dates", "texts of texts"])
def test_memory_is_bounded_with_the_steps(name: str) -> None:
    """What an evaluation holds at once is bounded: here it is at most 64 MB."""
    my, expression = attack(name)
    tracemalloc.start()
    with pytest.raises(EvaluationFailed):
        evaluate(expression, my, None, CONTEXT)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 64_000_000


@pytest.mark.parametrize("engine", ENGINES.values(), ids=ENGINES.keys())
@pytest.mark.parametrize(
    "name",
    [
        "groups that are written",
        "groups that are put in place",
        "groups that are put in many places",
        "texts in lists that are written",
        "names in lists that are written",
    ],
)
def test_much_that_would_be_made_of_little_is_given_up_before(engine: Engine, name: str) -> None:
    """
    What a template or a list comes to is counted before it is made: a few megabytes are enough to give up.
    """
    my, expression = attack(name)
    tracemalloc.start()
    with pytest.raises(StepsExceeded):
        engine(expression, my, None, CONTEXT)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 10 << 20


@pytest.mark.parametrize("engine", ENGINES.values(), ids=ENGINES.keys())
@pytest.mark.parametrize("width", ["1023", "999999999", "9" * 5000, "00000000000000000001023"])
def test_a_date_has_a_longest_text(engine: Engine, width: str) -> None:
    """A date that HTCondor's buffer would not hold is error, and no memory is taken for it."""
    assert engine(parse(f'formatTime(0, "%{width}d")'), None, None, CONTEXT) is ERROR
    assert engine(parse('size(formatTime(0, "%1022d"))'), None, None, CONTEXT) == 1022
    assert engine(parse(f'formatTime(0, "{"%c" * 1000}")'), None, None, CONTEXT) is ERROR


@pytest.mark.parametrize(
    ("ad", "text"),
    [
        (doubling("[b=#].b + [b=#].b"), "a59"),
        ("a=[b=a];", "a" + ".b.a" * 10_000),
        ATTACKS["texts that are ordered"],
    ],
)
def test_partial_evaluation_has_one_budget(ad: str, text: str) -> None:
    """All that a partial evaluation evaluates on its way is paid from the same steps."""
    with pytest.raises(EvaluationFailed):
        flatten(parse(text), ClassAd.parse(f"[{ad}]"), Context(max_steps=FOREIGN_STEPS))


def test_ordinary_expressions_are_far_from_the_limit() -> None:
    """A list of a thousand names may be looked at often."""
    names = ",".join(f"machine{n}.example.org" for n in range(1000))
    ad = ClassAd.parse(f'[a="{names}"]')
    assert (
        evaluate(parse(often('stringListMember("machine7.example.org", a)', 40)), ad, None, CONTEXT) is True
    )


@pytest.mark.parametrize("shorter", ["x" * 40, "X" * 4096, "é" * 40, ""])
def test_long_texts_compare_as_far_as_it_matters(shorter: str) -> None:
    """The order of a text and a much longer one is that of their beginnings."""
    for tail in ("", "a", "é", "\udcc3"):
        longer = shorter + tail + "y" * LONG
        ad = ClassAd()
        ad["s"], ad["t"] = shorter, longer
        for engine in (evaluate, interpret):
            assert engine(parse("s < t && t > s && s != t && !(s == t)"), ad, None, CONTEXT) is True


def test_long_arguments_and_versions_are_read_once() -> None:
    """The time is proportional to the length; otherwise this would take minutes."""
    assert len(words("a " * 200_000) or []) == 200_000
    assert natural_order(b"1" * 500_000 + b"xa", b"1" * 500_000 + b"xb") < 0


def test_a_budget_that_is_exceeded_is_counted_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    """Each one counts; the log has one line for many, and names each expression once, and few of many."""
    before = BUDGETS.exceeded
    watch_budgets(Telemetry())
    try:
        with caplog.at_level(logging.WARNING):
            for _ in range(3):
                with pytest.raises(EvaluationFailed):
                    evaluate(parse(often("true")), context=Context(max_steps=10))
            for number in range(10):
                ad = ClassAd({"Start": parse(often(str(number)))})
                with pytest.raises(EvaluationFailed):
                    evaluate_attribute("start", ad, context=Context(max_steps=10))
    finally:
        BUDGETS.watch = BUDGETS.blame = None
    assert BUDGETS.exceeded == before + 13
    general, *named = [record.message for record in caplog.records]
    assert "the evaluation of an expression was given up: the expression goes on too long" == general
    assert 5 == len(named)
    assert all(line.startswith("this expression was given up: ") and len(line) < 350 for line in named)
    assert "true" in named[0]


def test_a_list_that_is_kept_has_a_budget_of_its_own() -> None:
    """Members that are asked for later are evaluated in another evaluation."""
    value = evaluate(parse("{1 + 1}"), context=CONTEXT)
    assert isinstance(value, List)
    assert value[0] == 2
