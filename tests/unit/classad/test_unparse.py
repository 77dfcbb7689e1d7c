import math
from collections.abc import Callable

import pytest

from kettle.classad import (
    ERROR,
    UNDEFINED,
    AbsTime,
    ClassAd,
    List,
    RelTime,
    Value,
    parse,
    unparse,
)
from kettle.classad.nodes import Node, Parentheses
from kettle.classad.printing import unparse_indented, unparse_long


@pytest.mark.parametrize(
    "text",
    [
        "a + b * -3",
        "( -x)",
        " !x && y",
        "a is undefined || b isnt error",
        "c ? a : b",
        "a ?: b",
        "f(a,b,{ 1,2 })",
        "[ a = 1; bb = { 'is' } ]",
        "{  }",
        "[  ]",
        ".a.b[0].c",
        r'"\a\b\f\n\r\t\v\\\"\001\303\251"',
        r"'a b'",
        "1.500000000000000E+00",
        'relTime("1+01:01:1.25")',
    ],
)
def test_one_line_form_is_a_fixed_point(text: str) -> None:
    """Text in canonical form is written back as it was."""
    assert text == unparse(parse(text))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (UNDEFINED, "undefined"),
        (ERROR, "error"),
        (True, "true"),
        (-3, "-3"),
        (0.0, "0.0"),
        (-0.0, "-0.0"),
        (1e100, "1.000000000000000E+100"),
        (math.inf, 'real("INF")'),
        (-math.inf, 'real("-INF")'),
        (math.nan, 'real("NaN")'),
        ("é", r'"\303\251"'),
        (AbsTime(0, -3600), 'absTime("1969-12-31T23:00:00-01:00")'),
        (RelTime(90_061.5), 'relTime("1+01:01:01")'),
        (List(("a", 1)), '{ "a",1 }'),
        (ClassAd({"bb": 1, "A": "x"}), '[ A = "x"; bb = 1 ]'),
    ],
)
def test_values_are_written_as_expressions(value: Value, expected: str) -> None:
    """Every value has a text in new syntax."""
    assert expected == unparse(value)


def test_the_long_form_spells_operators_and_reals_the_old_way() -> None:
    """Identity is written =?=, reals as short as they can be, and only the quote is escaped."""
    node = parse(r'a is 1.5 && b isnt 2.0 && c == "x\\y\"z" && d < 1e100')
    assert r'a =?= 1.5 && b =!= 2.0 && c == "x\y\"z" && d < 1E+100' == unparse_long(node)


def test_the_indented_form_gives_members_lines_of_their_own() -> None:
    """Lists step in by three, ads by four, twice each."""
    expected = "\n    [\n        a = 1; \n        b = \n           {\n              1,\n              2\n           }\n    ]"
    assert expected == unparse_indented(parse("[a=1;b={1,2}]"))


def test_a_tree_deeper_than_pythons_stack_is_written() -> None:
    """Any tree can be written, no matter how it was made."""
    deep: Node = parse("a")
    for _ in range(5000):
        deep = Parentheses(deep)
    assert "(" * 5000 + "a" + ")" * 5000 == unparse(deep)


@pytest.mark.parametrize("text", ["'parent'", "x.parent", ".'parent'", "'parent'.x", "x.'a b'", "x.'true'"])
def test_a_selected_parent_needs_no_quotes(text: str) -> None:
    """A name that means something on its own is in quotes, unless it is selected from something."""
    assert text == unparse(parse(text))


def test_a_chain_longer_than_pythons_stack_is_written() -> None:
    """Ten thousand clauses are text like any other."""
    text = " && ".join(["a"] * 10_000)
    assert text == unparse(parse(text))


@pytest.mark.parametrize("write", [unparse, unparse_long, unparse_indented])
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('RELTIME("5")', 'relTime("05")'),
        ('relTime("")', 'relTime("00")'),
        ('-relTime("1:1.5")', ' -relTime("01:1.5")'),
        ('relTime("-1d")', 'relTime("-1+00:00:00")'),
        ('relTime("1.23456789")', 'relTime("1.23457")'),
    ],
)
def test_a_literal_duration_is_written_as_one(text: str, expected: str, write: Callable[[Node], str]) -> None:
    """What evaluates to a real is still written as the duration that it was, in any layout."""
    assert expected == write(parse(text))
