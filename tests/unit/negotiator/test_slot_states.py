"""Sums over slots that are kept slot by slot, against the same sums made from the ads alone."""

from hypothesis import given
from hypothesis import strategies as st

from kettle.classad.columnar import Table
from kettle.matchmaking import weights
from kettle_services.negotiator.domain.accountant import Use
from kettle_services.negotiator.domain.pool import Pool
from kettle_wire.ads import Ad, Expr, Scalar
from kettle_wire.ads.daemon import SlotSecret

_SLOTS = ("a.slot1", "a.slot2", "b.slot1", "b.slot2", "b.slot3")
_ADS = st.fixed_dictionaries(
    {
        "State": st.sampled_from(("Unclaimed", "Claimed", "Preempting", "Owner", "Backfill", Expr("1 + x"))),
        "Cpus": st.sampled_from((0, 1, 4, 2.5, True, "four", 10**9)),
    },
    optional={
        "SlotWeight": st.sampled_from((0, 1, 0.1, 0.2, 10**6, -1, "much", Expr("Cpus"))),
        "AccountingGroup": st.sampled_from(("ada", "bob", "", "x" * 1000)),
        "RemoteUser": st.sampled_from(("ada", "cy", 7)),
    },
)
_NEWS = st.lists(
    st.one_of(
        st.tuples(st.just("ad"), st.sampled_from(_SLOTS), st.one_of(st.none(), _ADS)),
        st.tuples(st.just("secret"), st.sampled_from(_SLOTS), st.booleans()),
        st.tuples(st.just("count"), st.sampled_from(("c.slot1_1", "c.slot1_2")), st.one_of(st.none(), _ADS)),
        st.tuples(st.just("look"), st.just(""), st.none()),
    ),
    max_size=40,
)


def _whose(ad: Ad) -> str:
    names = [value for key in ("AccountingGroup", "RemoteUser") if isinstance(value := ad.get(key), str)]
    return names[0] if names and len(names[0]) < 1000 else ""


@given(_NEWS)
def test_what_is_kept_is_what_the_ads_say(news: list[tuple[str, str, Ad | bool | None]]) -> None:
    pool = Pool()
    ads: dict[str, dict[str, Scalar]] = {}
    counted: dict[str, dict[str, Scalar]] = {}
    for what, slot, value in news:
        if what == "ad":
            ad = value if isinstance(value, dict) else None
            pool.slot(slot, ad)
            ads.pop(slot, None)
            if ad is not None:
                ads[slot] = ad
        elif what == "count":
            ad = value if isinstance(value, dict) else None
            pool.states.count(slot, None if ad is None else ad.get)
            counted.pop(slot, None)
            if ad is not None:
                counted[slot] = ad
            assert (slot in pool.states.counted) == (ad is not None)
        elif what == "secret":
            pool.secret(slot, SlotSecret(startd=slot[0], capability="c") if value else None)
        else:
            _compare(pool, ads, counted)
    _compare(pool, ads, counted)


def _compare(pool: Pool, ads: dict[str, dict[str, Scalar]], counted: dict[str, dict[str, Scalar]]) -> None:
    table, others = pool.slots, Table()
    others.put_many(counted.items())
    said = {
        key: weight
        for some in (table, others)
        for key, weight in zip(some.keys, weights(some).tolist(), strict=True)
    }
    assert abs(pool.states.weight - sum(said.values())) < 1e-9
    used: dict[str, list[float]] = {}
    for slot, ad in {**ads, **counted}.items():
        if ad["State"] in ("Claimed", "Preempting") and (user := _whose(ad)):
            used.setdefault(user, []).append(said[slot])
    found = pool.states.usage()
    assert list(found) == sorted(used)
    for user, shares in used.items():
        assert isinstance(found[user], Use)
        assert found[user].slots == len(shares)
        assert abs(found[user].weight - sum(shares)) < 1e-9
    for rows, states in (
        (pool.states.free(), ("Unclaimed", "Backfill")),
        (pool.states.claimed(), ("Claimed",)),
    ):
        wanted = [
            row for row, key in enumerate(table.keys) if key in pool.secrets and ads[key]["State"] in states
        ]
        assert rows.tolist() == wanted
