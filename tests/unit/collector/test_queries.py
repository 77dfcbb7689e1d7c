"""Pages of what a query selects, beside a look at every ad."""

from itertools import count

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from kettle.classad import FOREIGN_STEPS, ClassAd, Context, EvaluationFailed, Node, evaluate, is_true, parse
from kettle_services.collector.domain.ads import Adverts
from kettle_services.collector.domain.queries import MOST_BYTES, MOST_SECONDS, Query, page
from kettle_wire.ads.types import Ad, Expr, Scalar

NOW = 1000.0
NAMES = ("A", "B", "Memory", "MyCurrentTime", "TARGET")
SAID: st.SearchStrategy[Scalar] = st.one_of(
    st.integers(-3, 3),
    st.booleans(),
    st.sampled_from(["a", "A", "b"]),
    st.floats(allow_nan=False, width=16),
    st.sampled_from(
        [Expr(text) for text in ("TARGET.A", "MY.B + 1", "B", "Missing", "1 +", "{1, 2}", "error")]
    ),
)
ADS = st.lists(st.dictionaries(st.sampled_from(NAMES), SAID), max_size=8)
CONSTRAINTS = st.sampled_from(
    (
        "A", "A > 1", "A == B", "TARGET.A =?= MY.A", "MY.A == 1", "Memory > 0 || B", "isUndefined(A)",
        'eval("A") == 1', "TARGET.A + MY.B > 0", "MyCurrentTime >= 1000", "time() == 1000", "!(A < B)", 'A == "a"',
        "A =!= undefined && TARGET.B =!= undefined", "TARGET", "size(A) == 2", "Missing == 1", 'MY["A"] == 1',
    )
)  # fmt: skip


def told(ads: list[Ad]) -> Adverts:
    adverts = Adverts(lifetime=900.0)
    for number, ad in enumerate(ads):
        kind = "Machine" if number % 3 else "Generic"
        wire: Ad = {"Name": f"n{number % 5}", "LastHeardFrom": 1, **ad}
        adverts.put(f"{kind}.{number}", msgspec.msgpack.encode(wire), NOW)
    return adverts


def paged(
    adverts: Adverts, constraint: Node | None, *, most_bytes: int = MOST_BYTES, tick: float = 0.0
) -> list[Ad]:
    """All pages, one behind the other; each look at the clock takes `tick` seconds."""
    query = Query(constraint=constraint)
    found: list[Ad] = []
    clock = count(step=tick).__next__
    while True:
        one = page(adverts, query, NOW, clock, most_bytes=most_bytes)
        found += one.ads
        if one.rest is None:
            return found
        query = msgspec.structs.replace(query, after=one.rest)


def meets(ad: Ad, constraint: Node) -> bool:
    candidate = ClassAd.from_wire(ad)
    try:
        return is_true(
            evaluate(constraint, candidate, candidate, Context(now=lambda: 1000, max_steps=FOREIGN_STEPS))
        )
    except EvaluationFailed:
        return False


@given(ads=ADS, text=CONSTRAINTS)
def test_what_is_selected_is_what_meets_the_constraint(ads: list[Ad], text: str) -> None:
    """
    In columns or one by one: exactly those ads in which the constraint is true, with the ad on both sides.
    """
    constraint, adverts = parse(text), told(ads)
    assert [ad for ad in paged(adverts, None) if meets(ad, constraint)] == paged(adverts, constraint)


@given(ads=ADS, most_bytes=st.integers(1, 100), tick=st.sampled_from([0.0, MOST_SECONDS / 2, 1.0]))
def test_pages_are_the_whole(ads: list[Ad], most_bytes: int, tick: float) -> None:
    """However small the pages are, every ad is in one of them, once, in the order of the names."""
    adverts, constraint = told(ads), parse('eval("A") =!= 77')
    whole = paged(adverts, constraint)
    assert whole == paged(adverts, constraint, most_bytes=most_bytes, tick=tick)
    assert len(ads) == len(whole)
    assert sorted(str(ad["Name"]) for ad in whole) == [ad["Name"] for ad in whole]


def test_what_is_dear_is_looked_at_in_small_portions() -> None:
    """A constraint that takes more than all ads of a page may take is answered all the same, and truly."""
    adverts = told([{"A": number % 2} for number in range(40)])
    dear = " && ".join(f'regexp("z{number}", strcat(Name, A)) =?= false' for number in range(100))
    assert 40 == len(paged(adverts, parse(dear)))
    assert 20 == len(paged(adverts, parse(f"A == 1 && {dear}"), tick=MOST_SECONDS))


def test_ads_stay_in_order_while_they_come_and_go() -> None:
    """Also those that change their name."""
    adverts = told([{}, {}, {}])
    assert ["n0", "n1", "n2"] == [ad["Name"] for ad in paged(adverts, None)]
    for key, name in (("Generic.0", "n9"), ("Machine.7", "n0"), ("Machine.8", "n5")):
        adverts.put(key, msgspec.msgpack.encode({"Name": name}), NOW)
    adverts.drop("Machine.1")
    assert ["n0", "n2", "n5", "n9"] == [ad["Name"] for ad in paged(adverts, None)]


def test_a_page_goes_on_behind_an_ad_that_went() -> None:
    """The place where a page ended may be of an ad that is not there any more."""
    adverts = told([{}, {}, {}, {}])
    places = [place for shelf in adverts.of_type("") for place in shelf.after(None)]
    second = sorted(places)[1]
    adverts.drop(second[1])
    assert ["n2", "n3"] == [ad["Name"] for ad in page(adverts, Query(after=second), NOW, lambda: 0.0).ads]


def test_expressions_come_as_they_were_written() -> None:
    """Their text is not changed on the way; what is no expression is the value error."""
    (ad,) = paged(told([{"A": Expr("TARGET . x>1"), "B": Expr("1 +")}]), None)
    assert {"A": Expr("TARGET . x>1"), "B": Expr("error")} == {name: ad[name] for name in ("A", "B")}
