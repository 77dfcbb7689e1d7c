import msgspec

from kettle.classad import AdDelta, ClassAd, apply_delta, delta, unparse
from kettle_wire.ads.types import Expr

BEFORE = ClassAd.parse('[a=1; B="x"; c=x+1; d={1,2}]')


def test_only_what_differs_is_sent() -> None:
    """New and changed attributes with their values, gone ones by name; expressions are compared as trees."""
    after = ClassAd.from_wire({"a": 1.0, "B": "x", "c": Expr("x  +  1"), "new": Expr("y")})
    assert AdDelta({"a": 1.0, "new": Expr("y")}, ("d",)) == delta(BEFORE, after)


def test_the_same_ad_makes_no_delta() -> None:
    """A delta that says nothing is false."""
    assert not delta(BEFORE, BEFORE.copy())
    assert delta(BEFORE, ClassAd())


def test_booleans_and_numbers_differ() -> None:
    """Python holds true, 1 and 1.0 equal, and both zeros; an ad does not."""
    assert {"a": True} == delta(ClassAd({"a": 1}), ClassAd({"a": True})).changed
    assert "-0.0" == str(delta(ClassAd({"a": 0.0}), ClassAd({"a": -0.0})).changed["a"])


def test_names_have_no_case_but_a_spelling() -> None:
    """Another spelling is a change of the one attribute, not a second attribute."""
    change = delta(ClassAd({"Memory": 1}), ClassAd({"MEMORY": 1}))
    assert AdDelta({"MEMORY": 1}) == change
    assert ["MEMORY"] == list(apply_delta(ClassAd({"Memory": 1}), change))


def test_applying_makes_a_copy_on_the_same_chain() -> None:
    """What is removed lets the chained ad show through; the ad itself is left alone."""
    ad = ClassAd({"a": 1, "b": 2}, chained=ClassAd({"a": 0}))
    changed = apply_delta(ad, AdDelta({"c": Expr("a + 1")}, ("A", "nosuch")))
    assert "[ b = 2; c = a + 1 ]" == unparse(changed)
    assert "0" == unparse(changed["a"])
    assert "[ a = 1; b = 2 ]" == unparse(ad)


def test_a_delta_travels() -> None:
    """It is plain JSON on the wire."""
    change = delta(BEFORE, ClassAd.parse('[a="s"; e=x]'))
    assert change == msgspec.json.decode(msgspec.json.encode(change), type=AdDelta)


def test_text_that_does_not_parse_is_compared_as_text() -> None:
    """What came over the wire need not be sound."""
    bad, worse = ClassAd.from_wire({"a": Expr("1 +")}), ClassAd.from_wire({"a": Expr("2 +")})
    assert not delta(bad, bad.copy())
    assert {"a": Expr("2 +")} == delta(bad, worse).changed
