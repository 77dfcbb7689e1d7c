import math

import msgspec
import pytest

from kettle.classad import (
    UNDEFINED,
    ClassAd,
    ClassAdParseError,
    evaluate,
    evaluate_attribute,
    parse,
    read_long,
    unparse,
)
from kettle.classad.nodes import Literal
from kettle_wire.ads.types import Ad, Expr


def test_names_are_compared_without_case_and_keep_their_spelling() -> None:
    """The first spelling stays, no matter what is written later."""
    ad = ClassAd({"OpSys": "LINUX"})
    ad["OPSYS"] = "WINDOWS"
    assert (["OpSys"], Literal("WINDOWS")) == (list(ad), ad["opsys"])


def test_the_wire_form_survives() -> None:
    """What came over the wire goes out again unchanged, parsed or not."""
    wire: Ad = {"Cpus": 8, "Load": 0.5, "Has": True, "Arch": "X86_64", "Start": Expr('Owner  ==  "a"')}
    ad = ClassAd.from_wire(wire)
    assert wire == ad.to_wire()
    evaluate_attribute("Start", ad)
    assert {**wire, "Start": Expr('Owner == "a"')} == ad.to_wire()


def test_reading_an_ad_does_not_change_its_source() -> None:
    """An ad is a copy of what it was made from."""
    wire: Ad = {"Cpus": 8}
    ad = ClassAd.from_wire(wire)
    ad["Cpus"] = 4
    assert {"Cpus": 8} == wire


def test_what_json_cannot_say_travels_as_an_expression() -> None:
    """Undefined, infinities and octets that are no UTF-8 have no scalar of their own."""
    ad = ClassAd({"u": UNDEFINED, "inf": math.inf, "octet": parse(r'"\303"'), "list": parse("{1}")})
    expected = {"u": "undefined", "inf": 'real("INF")', "octet": r'"\303"', "list": "{ 1 }"}
    wire = ad.to_wire()
    assert {name: Expr(text) for name, text in expected.items()} == wire
    assert msgspec.json.encode(wire)


@pytest.mark.parametrize("ad", [ClassAd.parse('[ a = relTime("1:5") ]'), read_long('a = relTime("1:5")')])
def test_a_literal_duration_stays_one_until_it_is_evaluated(ad: ClassAd) -> None:
    """Its value is a real; what holds it, and what travels, is the duration."""
    assert 65.0 == evaluate_attribute("a", ad)
    assert 'relTime("01:05")' == evaluate(parse("unparse(a)"), ad)
    assert ('[ a = relTime("01:05") ]', {"a": Expr('relTime("01:05")')}) == (unparse(ad), ad.to_wire())
    assert 65.0 == evaluate_attribute("a", ClassAd.from_wire(ad.to_wire()))


@pytest.mark.parametrize("seconds", ["1.23456789", "100000000000", "59.9999999"])
def test_a_duration_whose_text_is_not_exact_travels_as_a_real(seconds: str) -> None:
    """No value changes on its way."""
    assert {"a": float(seconds)} == ClassAd.parse(f'[ a = relTime("{seconds}") ]').to_wire()


def test_the_chained_ad_shows_through_and_is_not_counted() -> None:
    """Look-up falls through to the parent, enumeration does not."""
    ad = ClassAd({"a": 1}, chained=ClassAd({"a": 0, "b": 2}))
    assert (["a"], Literal(1), Literal(2)) == (list(ad), ad["A"], ad["B"])


def test_deleting_hides_what_the_chained_ad_has() -> None:
    """The child stores an explicit undefined, so that the parent does not show through."""
    ad = ClassAd({"a": 1}, chained=ClassAd({"a": 0}))
    del ad["A"]
    assert "[ a = undefined ]" == unparse(ad)


def test_deleting_what_is_not_there_is_an_error() -> None:
    """An attribute nobody defines cannot be deleted."""
    with pytest.raises(KeyError):
        del ClassAd()["a"]


def test_collapse_needs_no_parent_any_more() -> None:
    """A collapsed ad has everything of its own, the child's word before the parent's."""
    grand = ClassAd({"a": 0, "c": 3})
    ad = ClassAd({"A": 1}, chained=ClassAd({"b": 2}, chained=grand)).collapse()
    assert ("[ A = 1; b = 2; c = 3 ]", None) == (unparse(ad), ad.chained)


def test_copies_change_alone() -> None:
    """A change of the copy leaves the original."""
    ad = ClassAd({"a": 1})
    twin = ad.copy()
    twin["a"] = 2
    assert (Literal(1), Literal(2)) == (ad["a"], twin["a"])


def test_only_an_ad_parses_as_an_ad() -> None:
    """An expression is refused."""
    with pytest.raises(ClassAdParseError, match="expected an ad"):
        ClassAd.parse("1 + 1")


def test_asking_for_an_expression_that_does_not_parse_says_so() -> None:
    """Evaluation tolerates bad text, a look at the expression does not."""
    with pytest.raises(ClassAdParseError):
        ClassAd.from_wire({"a": Expr("1 +")})["a"]


def test_ads_are_equal_if_their_expressions_are() -> None:
    """Order and case of names do not matter, types do."""
    assert ClassAd({"a": 1, "B": 2}) == ClassAd({"b": 2, "A": 1})
    assert ClassAd({"a": 1}) != ClassAd({"a": True})


@pytest.mark.parametrize(
    "text",
    [
        "{ 0.30000000000000004 }",
        "{ 1.7976931348623157e308,x }",
        '{ absTime("20-3") }',
        '{ relTime("1.23456789") }',
    ],
)
def test_what_travels_loses_no_digit(text: str) -> None:
    """People see sixteen digits, but an ad that came over the wire has the values of the one that left."""
    ad = ClassAd({"l": parse(text)})
    arrived = ClassAd.from_wire(ad.to_wire())

    assert evaluate(parse("l[0]"), ad) == evaluate(parse("l[0]"), arrived)


def test_a_sign_stays_apart_from_its_number() -> None:
    """An ad that came over the wire is written as the one that left: ``- 5`` is an operator and a number."""
    ad = ClassAd.parse("[a = - 5; b = -5; c = {- 7}]")

    assert unparse(ad) == unparse(ClassAd.from_wire(ad.to_wire()))
