"""
What an evaluator asks of a table beside single values: how often, of which rows, and for how long it holds.
"""

import math
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress

import msgspec
import numpy as np
import pytest

from kettle.classad import (
    ClassAd,
    Context,
    EvaluationFailed,
    Node,
    interpret,
    interpret_attribute,
    parse,
    unparse,
)
from kettle.classad.columnar import Evaluator, Table
from kettle_wire.ads import Ad, Expr, Scalar

USERS = ("ada", "bob", "eve")


def table_of(*ads: Mapping[str, Scalar]) -> Table:
    table = Table()
    table.put_many((f"key {number}", ad) for number, ad in enumerate(ads))
    return table


def column(*values: Scalar) -> Table:
    ads: list[Ad] = [{"a": value} for value in values]
    return table_of(*ads)


def thousand() -> Table:
    ads: list[Ad] = [{"Owner": USERS[n % 3], "Group": n % 2 == 0, "Serial": n} for n in range(1000)]
    return table_of(*ads)


def shown(outcome: object) -> str:
    return "EVAL_FAIL" if isinstance(outcome, EvaluationFailed) else unparse(outcome)  # type: ignore[arg-type]


class Users:
    """A user map that counts who asks it."""

    def __init__(self) -> None:
        self.asked: Counter[str] = Counter()
        self.context = Context(user_map=self._map, home=self._home)

    def _map(self, name: str, user: str) -> str | None:
        self.asked[user] += 1
        return f"group of {user}"

    def _home(self, user: str) -> str | None:
        self.asked[user] += 1
        return f"/home/{user}"


# -- once for each distinct combination ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text", ['userMap("groups", TARGET.Owner)', "userHome(TARGET.Owner)", "userHome(Owner)"]
)
def test_a_function_looks_at_each_distinct_value_once(text: str) -> None:
    """A thousand slots of three owners are three questions, and every slot has the answer for its own."""
    users = Users()
    asked = Evaluator(thousand(), my=ClassAd(), context=users.context)
    assert [True] * 1000 == [
        value == (n % 3 == 0) for n, value in enumerate(asked.values(parse(f'regexp("ada$", {text})')))
    ]
    assert dict.fromkeys(USERS, 1) == users.asked


def test_two_attributes_are_looked_at_once_for_each_pair() -> None:
    """Three owners in two groups are six questions; an attribute that is not mentioned makes none."""
    users = Users()
    text = 'userMap("groups", strcat(TARGET.Owner, "@", TARGET.Group))'
    Evaluator(thousand(), my=ClassAd(), context=users.context).values(parse(f"size({text})"))
    assert (6, 6) == (len(users.asked), users.asked.total())


def test_expressions_in_the_rows_are_followed() -> None:
    """What an attribute mentions counts as mentioned, on both sides."""
    users = Users()
    table = thousand()
    table.put("key 0", {"Owner": Expr("MY.Serial"), "Serial": "zoe"})
    job = ClassAd({"Whose": parse("TARGET.Owner")})
    found = Evaluator(table, my=job, context=users.context).values(parse("userHome(Whose)"))
    assert {"zoe", *USERS} == set(users.asked)
    assert "/home/zoe" == found[0]


def test_what_does_not_depend_on_the_rows_is_looked_at_once() -> None:
    """A job's own attributes are the same for all slots."""
    users = Users()
    job = ClassAd({"Owner": "ada"})
    found = Evaluator(thousand(), my=job, context=users.context).values(parse("userHome(MY.Owner)"))
    assert ({"ada": 1}, {"/home/ada"}) == (users.asked, set(map(str, found)))


@pytest.mark.parametrize(
    "text",
    [
        'debug(regexp("^A", TARGET.Owner, "i"))',
        'debug(stringListMember(TARGET.Owner, "ada,bob"))',
        "debug(size(TARGET.Owner))",
    ],
)
def test_patterns_and_lists_are_searched_once_for_each_value(text: str) -> None:
    """A thousand rows with three owners are three searches."""
    seen: list[str] = []
    Evaluator(thousand(), my=ClassAd(), context=Context(trace=seen.append)).values(parse(text))
    assert 3 == len(seen)


def test_rows_that_take_no_part_are_not_looked_at() -> None:
    """Among two rows there are two questions."""
    users = Users()
    rows = np.array([3, 7])
    Evaluator(thousand(), my=ClassAd(), rows=rows, context=users.context).values(
        parse("size(userHome(TARGET.Owner))")
    )
    assert {"ada": 1, "bob": 1} == users.asked


@pytest.mark.parametrize(
    "text", ["random()", "random(TARGET.Serial + 1000.0)", "-random()", "random() + Serial"]
)
def test_chance_is_drawn_for_each_row(text: str) -> None:
    """Slots that are alike draw different numbers."""
    drawn = iter(range(1000))
    chance = Context(random=lambda: next(drawn) / 1000)
    found = Evaluator(thousand(), my=ClassAd(), context=chance).values(parse(text))
    assert 1000 == len(set(map(shown, found)))


def test_one_evaluation_sees_one_instant() -> None:
    """The clock is read once, and all rows are looked at at that time."""
    ticks = iter(range(100))
    table = thousand()
    asked = Evaluator(table, my=ClassAd(), context=Context(now=lambda: next(ticks)))
    assert {'"0 0"'} == set(map(shown, asked.values(parse('strcat(time(), " ", CurrentTime)'))))
    assert 1 == next(ticks)


# -- what is remembered -------------------------------------------------------------------------------------------------


def test_a_comparison_is_not_remembered_beyond_a_change() -> None:
    """An evaluation gives another answer after one cell has changed, moved or been removed."""
    table = column(1, 2, 3)
    enough = parse("a >= 2")

    def answer() -> list[bool]:
        return [bool(held) for held in Evaluator(table).holds(enough)]

    assert [False, True, True] == answer()
    table.put("key 0", {"a": 5})
    assert [True, True, True] == answer()
    table.put("key 1", {"a": 0})
    assert [True, False, True] == answer()
    table.remove("key 0")
    assert [True, False] == answer()
    table.put("key 9", {"a": 2})
    assert [True, False, True] == answer()
    table.put("key 9", {})
    assert [True, False, False] == answer()


@pytest.mark.parametrize(("first", "second"), [("1", "true"), ("1", "1.0"), ("0.0", "-0.0"), ('"x"', '"X"')])
def test_constants_that_are_alike_are_told_apart(first: str, second: str) -> None:
    """What is remembered for one constant is not the answer for another that looks like it."""
    for values in ((1, 2), (True, False), (0.0, 1.0), ("x", "X")):
        table = column(*values)
        for op in ("==", "=?=", "<="):
            for constant in (first, second, first):
                node = parse(f"a {op} {constant}")
                alone = [Evaluator(column(value)).values(node)[0] for value in values]
                assert list(map(shown, alone)) == list(map(shown, Evaluator(table).values(node)))


def test_a_string_that_comes_later_is_compared() -> None:
    """A constant that no ad had when the question was asked first is found when one has it."""
    table = column("x", "y")
    wanted = parse('a == "New"')
    assert [False, False] == Evaluator(table).holds(wanted).tolist()
    table.put("other", {"b": "new"})
    assert [False, False, False] == Evaluator(table).holds(wanted).tolist()
    table.put("key 1", {"a": "NEW"})
    assert [False, True, False] == Evaluator(table).holds(wanted).tolist()


@pytest.mark.parametrize("text", ["Want ?: 1", "TARGET.Want ?: 1", "isUndefined(Want) ? 1 : Want"])
def test_an_attribute_is_not_remembered_for_an_ad_that_says_more(text: str) -> None:
    """
    The value that all rows have without the other ad, or with one that lacks a name, is not that with another.
    """
    table = column(*[Expr(text)] * 3)
    attribute = parse("a")
    others = [None, ClassAd(), ClassAd({"Want": 5}), None, ClassAd({"want": 7}), ClassAd({"y": 1})]
    assert [1, 1, 5, 1, 7, 1] == [Evaluator(table, target=ad).values(attribute)[1] for ad in others]


def test_a_rank_is_not_remembered_for_a_job_that_says_more() -> None:
    """The rule also holds for an expression of the ad, whose tree several jobs share."""
    table = table_of({"Speed": 2}, {"Speed": 3})
    rank = parse("TARGET.Speed * (Factor ?: 1)")
    jobs = [ClassAd({"Rank": rank, **more}) for more in ({}, {"Factor": 10}, {}, {"Factor": 0})]
    assert [[2, 3], [20, 30], [2, 3], [0, 0]] == [
        Evaluator(table, my=job).numbers("rank").tolist() for job in jobs
    ]
    table.put("key 0", {"Speed": 4})
    assert [4, 3] == Evaluator(table, my=jobs[0]).numbers("rank").tolist()


@pytest.mark.parametrize("limit", ["max_depth", "max_steps"])
def test_a_budget_holds_for_what_is_remembered(limit: str) -> None:
    """
    A value that was found with enough levels or steps is none for an evaluation that has too few of them.
    """
    ads: list[Ad] = [{"a": Expr("((((b)))) + 1"), "b": n} for n in range(3)]
    table = table_of(*ads)
    nodes = [parse("a"), parse("-(-(-a))"), parse("((((((((a))))))))")]

    def outcome(node: Node, context: Context) -> str:
        try:
            return unparse(interpret(node, table.ad(2), None, context))
        except EvaluationFailed:
            return "EVAL_FAIL"

    failures = 0
    for most in (100, 3, 100, *range(1, 20)):
        context = msgspec.structs.replace(Context(), **{limit: most})
        expected = [outcome(node, context) for node in nodes]
        failures += expected.count("EVAL_FAIL")
        assert expected == [shown(Evaluator(table, context=context).values(node)[2]) for node in nodes]
    assert failures > 3


def test_a_function_that_makes_a_value_of_a_failure_has_the_levels_that_are_left() -> None:
    """An attribute that the interpreter can just evaluate is not evaluated with fewer levels."""
    table = column(*[Expr('userHome("nobody")')] * 3)
    context = Context(max_depth=6)
    expected = [shown(interpret_attribute("a", table.ad(0), None, context))] * 3
    assert expected == [shown(value) for value in Evaluator(table, context=context).values(parse("a"))]


def test_what_is_remembered_knows_what_stood_in_the_place_of_an_attribute() -> None:
    """An attribute that depends on another has another value where something stands in that one's place."""
    ads: list[Ad] = [{"a": Expr("b + 1"), "b": n, "c": 0} for n in range(3)]
    table = table_of(*ads)
    overlays = [{}, {"b": 10}, {}, {"c": 10}, {"b": 20}, {"b": 30, "c": 1}, {"c": 5}]
    asked = [
        Evaluator(table, overlay={name: np.full(3, number) for name, number in overlay.items()})
        for overlay in overlays
    ]
    assert [3, 11, 3, 3, 21, 31, 3] == [one.values(parse("a"))[2] for one in asked]


@pytest.mark.parametrize("values", [(1, 2, 3), (1.0, 2.0, 3.0), (True, False, True)])
def test_an_answer_is_not_the_table(values: tuple[Scalar, ...]) -> None:
    """Writing to an answer is refused, or changes nothing but the answer."""
    table = column(*values)
    for asked in ("a", parse("a"), parse("a == 1")):
        before = Evaluator(table).numbers(asked).tolist(), Evaluator(table).holds(asked).tolist()
        for answer in (Evaluator(table).numbers(asked), Evaluator(table).holds(asked)):
            with suppress(ValueError):
                answer[:] = 0
        assert before == (Evaluator(table).numbers(asked).tolist(), Evaluator(table).holds(asked).tolist())
    assert list(values) == [table.value(row, "a") for row in range(3)]


# -- which rows ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rows", [[2, 0], [2, 1, 0], [1, 2, 0], [0, 1, 2], [1], []])
def test_answers_come_in_the_order_of_the_rows_that_were_named(rows: list[int]) -> None:
    """Some rows or all of them, rising or not."""
    table = table_of({"a": 1, "b": "x"}, {"a": 2}, {"a": 3, "b": Expr("a > 2")})
    asked = Evaluator(table, rows=np.array(rows, np.int64))
    assert [row + 1 for row in rows] == asked.values(parse("a"))
    assert [float(row + 1) for row in rows] == asked.numbers("a").tolist()
    assert [row == 2 for row in rows] == asked.holds("b").tolist()
    assert [row == 1 for row in rows] == asked.holds(parse("a == 2")).tolist()


def test_many_expressions_beside_few_strings() -> None:
    """Rows that have an expression where others have a string do not disturb the comparison of strings."""
    values: list[Scalar] = ["x", *(Expr(f"undefined + {n}") for n in range(200)), Expr('strcat("x", "")')]
    found = Evaluator(column(*values)).values(parse('a == "X"'))
    assert ["true", *["undefined"] * 200, "true"] == list(map(shown, found))


def test_an_overlay_stands_in_the_place_of_an_attribute() -> None:
    """
    It counts instead of what the ads say, and where they say nothing; only in the rows, not in the other ad.
    """
    table = table_of({"Cpus": 8}, {"Cpus": Expr("undefined")}, {})
    overlay = {"cpus": np.array([1, 2, 3])}
    job = ClassAd({"Cpus": 100})
    asked = Evaluator(table, my=job, overlay=overlay)
    assert [1, 2, 3] == asked.values(parse("TARGET.Cpus"))
    assert [100] * 3 == asked.values(parse("MY.Cpus"))
    assert ["1", "2", "3"] == asked.values(parse("string(TARGET.Cpus)"))
    assert [3, 1] == Evaluator(table, rows=np.array([2, 0]), overlay=overlay).values(parse("Cpus"))


def test_another_attribute_stands_in_the_place_of_one() -> None:
    """
    Of whatever kind, where it is there: for what is computed in columns, and for what is evaluated ad by ad.
    """
    ads: list[Ad] = [
        {"a": 1, "b": 10, "x": 5},
        {"a": Expr("{ 1 }"), "b": Expr("{ 1, 2 }")},
        {"a": "as it is"},
        {"b": Expr("x + 1"), "x": 6},
        {},
    ]
    table, plain = table_of(*ads), table_of(*({**ad, "a": ad["b"]} if "b" in ad else ad for ad in ads))
    asked = Evaluator(table, overlay={"a": table.with_instead("a", "b")})

    for text in ("a", "a >= 7", "size(a)", "a is 10 || size(a) == 2", 'strcat(a, "!")'):
        expected = [shown(value) for value in Evaluator(plain).values(parse(text))]
        assert expected == [shown(value) for value in asked.values(parse(text))]
    assert [True, False, False, True, False] == asked.holds(parse("a >= 7")).tolist()


# -- what is asked ----------------------------------------------------------------------------------------------------------


def test_amounts_of_an_attribute() -> None:
    """Numbers as they are, the default where it is undefined, not a number where it is anything else."""
    values: list[Scalar] = [
        1,
        2.5,
        -3,
        True,
        "4",
        Expr("undefined"),
        Expr("error"),
        Expr("2*3"),
        Expr("random(0)"),
    ]
    found = Evaluator(table_of(*({"a": value} for value in values), {})).amounts("a", 7.0)
    nan = math.nan
    np.testing.assert_array_equal([1, 2.5, -3, nan, nan, 7, nan, 6, nan, 7], found)


def test_numbers_are_ranks() -> None:
    """Whatever is no number counts as nothing, and truths count as one."""
    values: list[Scalar] = [
        1,
        2.5,
        True,
        False,
        "4",
        Expr("undefined"),
        Expr("error"),
        math.nan,
        -math.inf,
        Expr("{1}"),
    ]
    found = Evaluator(column(*values)).numbers("a")
    assert [1, 2.5, 1, 0, 0, 0, 0, 0, -math.inf, 0] == found.tolist()


def test_what_holds_is_true_or_a_number_that_is_not_zero() -> None:
    """As a requirement holds; strings, undefined, error and what fails do not."""
    values: list[Scalar] = [
        True,
        1,
        0.5,
        math.nan,
        False,
        0,
        "true",
        Expr("undefined"),
        Expr("error"),
        Expr("random(0)"),
    ]
    assert [True] * 4 + [False] * 6 == Evaluator(column(*values)).holds("a").tolist()


def test_the_reason_why_no_row_has_a_value() -> None:
    """It is said only if an attribute fails in every row."""
    failing: Ad = {"a": Expr("random(0)")}
    assert Evaluator(table_of(failing, failing)).failure("a")
    assert Evaluator(table_of(failing, {"a": 1})).failure("a") is None
    assert Evaluator(table_of(failing)).failure("b") is None
