"""What machines ask of jobs, read from their ads."""

from collections.abc import Iterator
from typing import Any

import pytest

from kettle.jobs.significant_attributes import MOST
from kettle_services.negotiator.domain.asked_attributes import AskedAttributes
from kettle_services.negotiator.domain.pool import Pool
from kettle_wire.ads import Ad, Expr


def asked(*machines: Ad) -> set[str]:
    attributes = AskedAttributes()
    for machine in machines:
        attributes.note(machine)
    return set(attributes.names)


@pytest.mark.parametrize(
    ("machine", "expected"),
    [
        ({"Start": Expr("TARGET.IsShort =?= true")}, {"isshort"}),
        ({"Start": Expr("LongJobs || TARGET.IsShort"), "LONGJOBS": False}, {"isshort"}),
        ({"Start": Expr('Department == "physics"')}, {"department"}),
        ({"Start": Expr("MyWish"), "MyWish": Expr("TARGET.Wish > 3")}, {"wish"}),
        ({"Rank": Expr("target.Liking")}, {"liking"}),
        ({"Requirements": Expr("TARGET.RequestCpus < Cpus && START"), "Cpus": 1, "Start": True}, set[str]()),
        ({"ChildName": Expr('{ "slot1_1", TARGET.x }'), "Start": Expr("1 +")}, set[str]()),
    ],
)
def test_all_expressions_of_a_machine_count(machine: Ad, expected: set[str]) -> None:
    """With or without scope and indirectly; not what is the machine's own, and what jobs always show."""
    assert expected == asked(machine)


def test_a_name_may_be_one_machines_own_and_not_anothers() -> None:
    """The expression has been read before, and is asked again of the machine that lacks the attribute."""
    start = Expr("Fast || Memory > 1")
    assert {"fast"} == asked({"Start": start, "Fast": True, "Memory": 2}, {"Start": start, "memory": 2})


def test_what_is_known_is_not_looked_for_in_the_ad() -> None:
    """
    Nor is what the machine has as it is written; other names are looked for in one pass, however many expressions there are.
    """

    class Machine(dict[str, Any]):
        passes = 0

        def __iter__(self) -> Iterator[str]:
            self.passes += 1
            return super().__iter__()

    attributes = AskedAttributes()
    attributes.note({"Start": Expr("TARGET.IsShort && Wish && OWN && Requirements && RequestGPUs"), "own": 1})
    assert {"isshort", "wish"} == attributes.names
    again = Machine(Start=Expr("WISH || RequestGPUs"), Rank=Expr("Own"), Own=1)
    attributes.note(again)
    other = Machine(Start=Expr("OWN || Wish"), Rank=Expr("oWN"), own=1)
    attributes.note(other)
    assert [0, 1] == [again.passes, other.passes]
    assert {"isshort", "wish"} == attributes.names


def test_nobody_makes_everything_significant() -> None:
    """However much the machines ask: each attribute may divide the jobs of everybody."""
    machines: list[Ad] = [{"Start": Expr(f"TARGET.A{number}")} for number in range(MOST + 50)]
    assert MOST == len(asked(*machines))


def test_an_ad_that_says_the_same_again_is_not_read_again() -> None:
    """The pool looks at what is new only; what a machine asked counts also when it is away."""
    pool, ad = Pool(), Ad({"Name": "s", "Start": Expr("TARGET.IsShort"), "MyCurrentTime": 1})
    pool.slot("s", ad)
    pool.slot("s", {**ad, "MyCurrentTime": 2})
    pool.slot("s", None)
    assert frozenset({"isshort"}) == pool.asked.names
