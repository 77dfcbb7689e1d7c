"""Ads as rows of a table: what is told to it, what it gives back, what it forgets."""

import math
import tracemalloc
from collections.abc import Mapping

import numpy as np
import pytest

from kettle.classad import ERROR, UNDEFINED, ClassAd, parse
from kettle.classad.columnar import Evaluator, Table
from kettle_wire.ads import Ad, Expr, Scalar

EVERYTHING: Ad = {
    "Name": "slot1@host",
    "Cpus": 8,
    "Least": -(2**63),
    "Load": 0.25,
    "Nothing": -0.0,
    "Endless": math.inf,
    "Idle": False,
    "City": "Z\u00fcrich",
    "Empty": "",
    "Undefined": Expr("undefined"),
    "Error": Expr("error"),
    "Start": Expr("TARGET.Want <= Cpus"),
    "List": Expr("{ 1,Cpus }"),
    "Nested": Expr("[ a = 1; b = MY.a ]"),
}


def table_of(*ads: Mapping[str, Scalar]) -> Table:
    table = Table()
    table.put_many((f"key {number}", ad) for number, ad in enumerate(ads))
    return table


def size(table: Table) -> tuple[int, int]:
    """How many strings and expressions a table knows."""
    return len(table.strings), len(table.expressions)


@pytest.mark.parametrize("many", [True, False])
def test_an_ad_comes_back_as_it_was_put(many: bool) -> None:
    """Every kind of value, with names as they were spelled and in their order; literals are themselves."""
    table = Table()
    if many:
        table.put_many([("key", EVERYTHING)])
    else:
        table.put("key", EVERYTHING)
    ad = table.ad(0)
    assert ClassAd.from_wire(EVERYTHING) == ad
    assert list(ClassAd.from_wire(EVERYTHING).to_wire().items()) == list(ad.to_wire().items())
    assert -1 == math.copysign(1, float(str(ad["Nothing"].value)))  # type: ignore[attr-defined]


def test_text_that_is_a_literal_is_its_value_and_text_that_is_nothing_is_an_error() -> None:
    """What came as an expression is kept as the interpreter would see it."""
    table = table_of({"Five": Expr("5"), "Text": Expr('"x"'), "Broken": Expr("1 +")})
    assert [5, "x", ERROR] == [table.value(0, name) for name in ("Five", "Text", "Broken")]
    assert (1, 0) == size(table)


@pytest.mark.parametrize("cpus", [8, 4, "many", Expr("x + 1")])
def test_some_attributes_of_an_ad_are_changed_as_if_all_were_put(cpus: Scalar) -> None:
    """Whatever their spelling; where nothing is new, it is no news."""
    some, whole = table_of(EVERYTHING), table_of(EVERYTHING)
    before = some.news
    some.change(some.keys[0], {"CPUS": cpus})
    whole.put(whole.keys[0], {**EVERYTHING, "Cpus": cpus})
    assert list(whole.ad(0).to_wire().items()) == list(some.ad(0).to_wire().items())
    assert (some.news == before) == (cpus == EVERYTHING["Cpus"])


def test_a_part_of_an_ad_is_named_by_keys() -> None:
    """An ad of some attributes has those of them that are there."""
    part = table_of(EVERYTHING).ad(0, ["cpus", "city", "nosuch"])
    assert {"cpus": 8, "city": "Z\u00fcrich"} == part.to_wire()


@pytest.mark.parametrize("first", [1, 2.5, "x", True, Expr("a + 1"), Expr("undefined"), Expr("error"), None])
@pytest.mark.parametrize(
    "second", [1, 2, 2.5, -0.0, "x", "X", False, Expr("a + 1"), Expr("b"), Expr("error"), None]
)
def test_a_value_takes_the_place_of_any_other(first: Scalar | None, second: Scalar | None) -> None:
    """The ad says what was put last, and nothing of what was there is kept."""
    table = table_of({"z": "stays"})
    for value in (first, second):
        table.put("key", {} if value is None else {"a": value})
    expected: Ad = {} if second is None else {"a": second}
    assert repr(expected) == repr(table.ad(table.row("key")).to_wire())
    table.remove("key")
    assert (1, 0) == size(table)


@pytest.mark.parametrize("value", [2**63, 2**64 - 1, -(2**63) - 1, 2**70])
@pytest.mark.parametrize("others", [0, 1])
def test_an_integer_beyond_64_bits_wraps_around(value: int, others: int) -> None:
    """It is what the interpreter computes with, however it came."""
    ad: Ad = {"a": value}
    expected = (value + 2**63) % 2**64 - 2**63
    table = table_of(*[{"a": 1}] * others, ad)
    table.put("again", ad)
    assert [expected] * 2 == [table.value(row, "a") for row in (others, others + 1)]


def test_rows_are_dense() -> None:
    """The last row takes the number of one that goes, and all of it goes with it."""
    table = table_of({"a": 1, "b": "one"}, {"a": 2}, {"a": 3, "c": Expr("a + 1")})
    table.remove("key 0")

    assert (2, ["key 2", "key 1"]) == (len(table), table.keys)
    assert [0, 1] == [table.row("key 2"), table.row("key 1")]
    assert [{"a": 3, "c": Expr("a + 1")}, {"a": 2}] == [table.ad(row).to_wire() for row in (0, 1)]
    assert "key 0" not in table
    table.remove("key 2")
    table.remove("key 1")
    assert (0, (0, 0)) == (len(table), size(table))


def test_a_key_that_is_not_there_cannot_be_removed_or_found() -> None:
    """Both say so, and nothing else changes."""
    table = table_of({"a": 1})
    before = table.version, table.news
    with pytest.raises(KeyError):
        table.remove("other")
    with pytest.raises(KeyError):
        table.row("other")
    assert (before, 1) == ((table.version, table.news), len(table))


@pytest.mark.parametrize("count", [63, 64, 65, 1000])
@pytest.mark.parametrize("many", [True, False])
def test_a_table_grows_as_ads_come(count: int, many: bool) -> None:
    """Columns have room for every row, also for late ones, no matter in which order the ads came."""
    ads: dict[str, Ad] = {str(number): {"n": number, "s": f"{number % 7}"} for number in range(count)}
    ads["late"] = {"n": count, "fresh": True}
    table = Table()
    if many:
        table.put_many(ads.items())
    else:
        for key, ad in ads.items():
            table.put(key, ad)
    assert list(ads.values()) == [table.ad(row).to_wire() for row in range(len(table))]
    assert list(range(count + 1)) == Evaluator(table).values(parse("n"))


def test_many_ads_at_once_may_be_new_known_or_there_twice() -> None:
    """The last one of a key counts, as if each had been put in turn."""
    table = table_of({"a": 1}, {"a": 2})
    table.put_many(
        [("new", {"a": 3}), ("key 0", {"b": 4}), ("new", {"b": 5}), ("newer", {}), ("new", {"a": 6})]
    )
    assert {"key 0": {"b": 4}, "key 1": {"a": 2}, "new": {"a": 6}, "newer": {}} == {
        key: table.ad(table.row(key)).to_wire() for key in table.keys
    }


def test_names_are_one_attribute_in_every_spelling() -> None:
    """Values are found under any spelling, each ad keeps its own, and within one ad the last one counts."""
    table = table_of({"Memory": 1}, {"MEMORY": 2}, {"memory": 3, "Memory": 4})
    assert [1, 2, 4] == Evaluator(table).values(parse("mEmOrY"))
    assert [["Memory"], ["MEMORY"]] == [list(table.ad(row)) for row in (0, 1)]
    assert ClassAd({"memory": 4}) == table.ad(2)


@pytest.mark.parametrize("gone", ["twice", "other"])
def test_an_ad_with_a_name_in_two_spellings_goes_and_moves_like_any_other(gone: str) -> None:
    """Nothing of it is lost when it takes another row's number, or left behind when it goes."""
    table = Table()
    table.put("other", {"a": "x"})
    table.put("twice", {"a": "y", "A": "z"})
    table.remove(gone)
    assert ["z" if gone == "other" else "x"] == Evaluator(table).values(parse("a"))
    assert (1, 0) == size(table)


def test_names_may_come_in_any_order() -> None:
    """An ad whose names have another order is the same ad, and no news."""
    table = table_of({"a": 1, "b": 2})
    before = table.version
    table.put("key 0", {"b": 2, "a": 1})
    assert (before, ["b", "a"]) == (table.version, list(table.ad(0)))


def test_what_does_not_change_is_no_change() -> None:
    """An equal ad leaves both versions as they are; another value, name or ad changes both."""
    table = table_of(EVERYTHING)
    before = table.version, table.news
    table.put("key 0", dict(EVERYTHING))
    table.put_many([("key 0", EVERYTHING)])
    assert before == (table.version, table.news)

    changes: list[Ad] = [{**EVERYTHING, "Cpus": 9}, EVERYTHING, {**EVERYTHING, "New": 1}, EVERYTHING]
    for ad in changes:
        table.put("key 0", ad)
        assert table.version > before[0]
        assert table.news > before[1]
        before = table.version, table.news
    table.put("key 1", {})
    assert table.news > before[1]
    before = table.version, table.news
    table.remove("key 1")
    assert table.news > before[1]


def test_zero_and_its_negative_are_two_values() -> None:
    """They compare as equal, but what is written differs."""
    table = table_of({"a": 0.0})
    before = table.version
    table.put("key 0", {"a": -0.0})
    assert table.version > before
    assert "-0.0" == str(Evaluator(table).values(parse("a"))[0])


def test_quiet_attributes_are_no_news() -> None:
    """
    A change of theirs is seen by evaluations, but does not count as news, whatever their spelling; others' does.
    """
    table = Table(quiet=["LastHeardFrom"])
    table.put("key", {"lastheardfrom": 1, "Cpus": 1})
    version, news = table.version, table.news
    table.put("key", {"lastheardfrom": 2, "Cpus": 1})
    table.put("key", {"Cpus": 1})
    table.put("key", {"LASTHEARDFROM": 3, "Cpus": 1})

    assert news == table.news
    assert table.version > version
    assert [3] == Evaluator(table).values(parse("LastHeardFrom"))
    table.put("key", {"LASTHEARDFROM": 3, "Cpus": 2})
    assert table.news > news


def test_strings_and_expressions_that_nobody_uses_are_forgotten() -> None:
    """Each is kept once, as long as some ad has it, and its number then serves another."""
    table = table_of({"s": "one", "t": "two", "e": Expr("a + 1")}, {"s": "one", "e": Expr("a + 1")})
    assert (2, 1) == size(table)
    table.put("key 0", {"s": "two", "e": Expr("b+1")})
    assert (2, 2) == size(table)
    table.remove("key 1")
    assert (1, 1) == size(table)
    table.put("key 0", {"s": "three", "e": Expr("c")})

    assert ["three"] == Evaluator(table).values(parse("s"))
    assert [True, False] == [
        bool(Evaluator(table).holds(parse(f's == "{text}"'))[0]) for text in ("THREE", "two")
    ]


def test_a_table_stays_as_large_as_what_its_ads_say_now() -> None:
    """After ten thousand ads with ever new names, strings and expressions it knows a fraction of them."""
    table = Table()
    for number in range(10_000):
        ad: Ad = {"Name": f"slot {number}", f"Only{number}": number, "Start": Expr(f"Want > {number}")}
        table.put(str(number % 20), ad)
        if number % 7 == 0:
            table.remove(str(number % 20))
    assert len(table) <= 20
    assert (len(table), len(table)) == size(table)
    assert len(table.columns) < 2_000
    assert all(f"slot {n}" == table.value(table.row(str(n % 20)), "Name") for n in range(9990, 9996))


def test_a_column_that_went_comes_back_empty() -> None:
    """A name that nobody had for a while says nothing of what it once was."""
    table = table_of({"Stays": 1}, {"Gone": "x"})
    table.put("key 1", {})
    for number in range(6000):
        table.put("key 1", {f"Filler{number}": 1})
    assert "gone" not in table.columns
    table.put("key 1", {"Gone": 5})
    assert [UNDEFINED, 5] == Evaluator(table).values(parse("Gone"))


def test_names_of_one_machine_cost_no_more_than_what_it_says() -> None:
    """A thousand names in one of five thousand ads are no thousand arrays."""
    table = Table()
    table.put_many((str(number), {"Name": f"slot {number}"}) for number in range(5000))
    tracemalloc.start()
    table.put("4711", {"Name": "odd", **{f"Odd{number}": number for number in range(1000)}})
    grown, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert grown < 5000 * 1000
    assert [7] == [value for value in Evaluator(table).values(parse("Odd7")) if value is not UNDEFINED]


def test_an_attribute_may_spread_and_go_again() -> None:
    """What one machine has first, then all, then none, is the same in every state."""
    table = Table()
    table.put_many((str(number), {"Id": number}) for number in range(300))
    for number in range(300):
        table.put(str(number), {"Id": number, "Speed": number / 2, "Kind": f"k{number % 3}"})
        if number % 37 == 0:
            assert number + 1 == np.count_nonzero(Evaluator(table).holds(parse("Speed * 2 == Id")))
    for number in range(299, -1, -1):
        assert number / 2 == table.value(number, "Speed")
        table.put(str(number), {"Id": number})
        if number % 37 == 0:
            assert number == np.count_nonzero(Evaluator(table).holds(parse('Kind != "x" && Speed >= 0')))
    assert (0, 0) == size(table)


def test_values_by_row_and_name() -> None:
    """A literal, an expression's tree, or None where nothing stands behind the name."""
    table = table_of(EVERYTHING)
    assert (8, UNDEFINED, parse("TARGET.Want <= Cpus"), None, None) == (
        table.value(0, "CPUS"),
        table.value(0, "undefined"),
        table.value(0, "Start"),
        table.value(0, "nosuch"),
        table_of({}, {"a": 1}).value(0, "a"),
    )


def test_numbers_of_an_attribute() -> None:
    """Integers and reals are numbers; everything else is not a number, also booleans."""
    values: list[Scalar] = [1, 2.5, -0.0, True, "3", Expr("4"), Expr("2+3"), Expr("undefined")]
    table = table_of(*({"a": value} for value in values), {})
    np.testing.assert_array_equal([1, 2.5, 0, *[math.nan] * 2, 4, *[math.nan] * 3], table.numbers("A"))
    np.testing.assert_array_equal([math.nan] * 9, table.numbers("nosuch"))


def test_truths_of_an_attribute() -> None:
    """Where it is the literal true; what would evaluate to it is not looked at."""
    values: list[Scalar] = [True, False, 1, "true", Expr("true"), Expr("1 == 1")]
    table = table_of(*({"a": value} for value in values), {})
    assert [True, False, False, False, True, False, False] == table.truths("A").tolist()
    assert [False] * 7 == table.truths("nosuch").tolist()


def test_an_empty_table_answers_with_nothing() -> None:
    """There are no rows, whatever is asked, also after there have been some."""
    table = table_of({"a": 1})
    table.remove("key 0")
    for empty in (Table(), table):
        asked = Evaluator(empty, my=ClassAd({"Requirements": parse("TARGET.a > 1")}))
        assert [] == asked.values(parse("TARGET.a + 1"))
        assert [0] * 3 == [
            len(asked.holds("requirements")),
            len(asked.numbers("rank")),
            len(asked.amounts("requestcpus", 1.0)),
        ]
        assert asked.failure("requirements") is None
