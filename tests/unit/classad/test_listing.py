"""Listings of ads: the same text as one by one, whatever is in them."""

from hypothesis import given
from hypothesis import strategies as st

from kettle.classad import ClassAd, write_json
from kettle.classad.listing import LONG, json_listing
from kettle.classad.long_form import list_long
from kettle_wire.ads.types import Ad, Expr

_NAMES = st.text("abAB1é=. %'", min_size=1, max_size=3)
_TEXTS = st.text('a"\\\n\r\x00\x7fé\u2028%', max_size=5)
_EXPRESSIONS = st.sampled_from(
    [Expr("x + 1"), Expr('"\\\\" == b'), Expr('{ 1, "b", [ c = { } ] }'), Expr("true")]
)
_VALUES = st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats() | _TEXTS | _EXPRESSIONS
_ADS = st.dictionaries(_NAMES, _VALUES, max_size=6)


@given(st.lists(_ADS, max_size=3))
def test_the_long_form_is_that_of_each_ad(ads: list[Ad]) -> None:
    """Names that it cannot carry are left out, and values have their escapes, as in `list_long`."""
    assert [list_long(ClassAd.from_wire(ad)) for ad in ads] == [LONG.members(ad) for ad in ads]


@given(st.lists(_ADS, max_size=3))
def test_members_of_json_are_those_of_each_ad(ads: list[Ad]) -> None:
    """In the order that was asked for."""
    listing = json_listing(", ", order=lambda name: (len(name), name.lower()))
    assert [write_json(ClassAd.from_wire(ad)) for ad in ads] == [f"{{{listing.members(ad)}}}" for ad in ads]


def test_equal_values_of_other_kinds_are_not_mixed_up() -> None:
    """True, 1 and 1.0 are equal, and so are both zeros, but they are written in different ways."""
    values = (True, 1, 1.0, "1", 0.0, -0.0, False, 0)
    assert ["true", "1", "1.0", '"1"', "0.0", "-0.0", "false", "0"] == [
        LONG.members({"A": value}).removeprefix("A = ").strip() for value in values
    ]
