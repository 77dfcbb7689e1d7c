"""
An ad in new syntax taken apart at its semicolons is the ad that the parser reads, or is left to the parser.
"""

import random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kettle.classad import ClassAd, ClassAdParseError, parse
from kettle.classad.new_form import read_new
from kettle.classad.nodes import AdLiteral, Node

from .classad_texts import Texts

NAMES = st.sampled_from(
    [
        "a",
        "A",
        "b",
        "Cpus",
        "cpus",
        "_x1",
        "is",
        "TRUE",
        "error",
        "parent",
        "'a'",
        "'b c'",
        "",
        "1",
        "MY",
        "a.b",
    ]
)
EQUALS = st.sampled_from(["=", " = ", "=\n", "= ", "==", "=?=", "=!=", "= =", "", "=-", "= - ", "=/**/"])
RIGHT_SIDES = st.one_of(
    st.sampled_from([
        "1", "-1", "007", "-0", "1.5", "-.5", "1e9", "9223372036854775808", "true", "Undefined", '"s"', '"s;]"', r'"\";"', '"a" "b"', '"a"; "b"',
        "f(1;2)", "f(1,2;3)", "(1;2)", "{1,2}", "{1;2}", "{[a=1;b=2],3}", "[x=1;y=[z=2]]", "[]", "x[0]", "x[f(1;2)]", "((((((1))))))", "(((((((1)))))))",
        "1/2", "1//2", "1/ /2", "1/*;]*/", "'q' + 1", "'q;]'", "a is b", "a isnt b", "a ? b : c", "a ?: b", "- 5", "- - - 5", "!x", "x.y", ".x", "..5",
        "1 +", "(", ")", "[", "]", "{", "}", "(]", "[a=1)", '"', "'", "\\", "", " ", "#", "1 2", '"\0"', '"\ud800"', '"é"', "é", 'relTime("5")',
        'absTime("x")', '"\\351"', "\x1c", "x\u00a0",
    ]),
    st.randoms(use_true_random=False).map(lambda chance: Texts(chance).expression(chance.choice((0, 1, 2)))),
)  # fmt: skip
BETWEEN = st.sampled_from(
    [";", ";", ";", ";", " ; ", ";\n", ";;", "; ;", ",", "", "]", ";// c\n", ";/* ] */"]
)
ATTRIBUTES = st.tuples(NAMES, EQUALS, RIGHT_SIDES, BETWEEN).map("".join)
ENDS = st.sampled_from(["]", "]", "]", "]", " ]\n", "", ";]", "]]", "] // c", "] + 1", ".a]", "].a"])
ADS = st.tuples(
    st.sampled_from(["[", "[", "[", "[", " [ ", "", "/**/[", "[;", "[[", "\u00a0["]), st.lists(ATTRIBUTES, max_size=5).map("".join), ENDS
).map("".join)  # fmt: skip
PLAIN = st.lists(
    st.tuples(
        st.sampled_from(["a", "A", "bc", "BC", "d"]),
        st.randoms(use_true_random=False).map(lambda chance: Texts(chance).expression(2)),
    ).map(" = ".join)
).map(lambda attributes: f"[ {'; '.join(attributes)} ]")


def read(text: str) -> ClassAd:
    """As the parser reads it."""
    node = parse(text)
    if not isinstance(node, AdLiteral):
        raise ClassAdParseError("expected an ad, found an expression", text=text, at=0)
    return ClassAd.from_literal(node)


def seen(ad: ClassAd) -> tuple[list[tuple[str, Node]], list[tuple[str, type]], bool]:
    """Spellings, expressions, order, what is held of each, and what evaluators look at."""
    held = [(key, type(value)) for key, value in ad.stored.items()]
    return [(name, ad[name]) for name in ad], held, ad.hides_sides


def refused(error: ClassAdParseError) -> tuple[Any, ...]:
    return str(error), error.text, error.at, error.line, error.column


def outcome(text: str, *, by_parser: bool) -> object:
    try:
        return seen(read(text) if by_parser else ClassAd.parse(text))
    except ClassAdParseError as error:
        return refused(error)


@given(st.one_of(ADS, PLAIN))
def test_an_ad_is_what_the_parser_makes_of_it(text: str) -> None:
    """An ad has the same attributes in the same order and spelling, or the same refusal at the same place."""
    assert outcome(text, by_parser=True) == outcome(text, by_parser=False)


@given(st.one_of(ADS, PLAIN), st.randoms(use_true_random=False))
def test_so_it_is_after_an_accident(text: str, chance: random.Random) -> None:
    """Also with one character too many or too few."""
    text = Texts(chance).damaged(text)
    assert outcome(text, by_parser=True) == outcome(text, by_parser=False)


@given(st.integers(480, 500), st.sampled_from(["-", "!", "x ?: ", "x ? y : ", "x ? "]))
def test_levels_count_from_the_ad_on(levels: int, prefix: str) -> None:
    """An expression that is nested too deeply within an ad is refused, however it is read."""
    text = f"[ a = {prefix.replace('-', '- ') * levels}x{' : y' * levels if prefix == 'x ? ' else ''} ]"
    assert outcome(text, by_parser=True) == outcome(text, by_parser=False)


def test_shared_right_sides_do_not_tie_ads_together() -> None:
    """A change of one ad leaves another of the same text as it was."""
    first, second = (ClassAd.parse("[ A = b + 1; l = { 1 }; n = [ x = 1 ] ]") for _ in range(2))
    before = seen(second)
    first["a"] = "changed"
    del first["l"]
    assert before == seen(second)


def test_what_programs_write_is_read_without_the_parser() -> None:
    """Nested ads, lists, calls, subscripts and strings with anything in them are no reason to go slowly."""
    text = '[ Name = "slot1;]@[host"; A = x[0] + f(1; 2); gpus = [ Id = "a"; Cc = 8.6 ]; L = { 1,{ 2 } }; B = -x / 2 ]\n'
    found = read_new(text)
    assert found is not None
    assert seen(read(text)) == seen(ClassAd.from_keys(*found))
    assert ["Name", "A", "gpus", "L", "B"] == list(found[0].values())
