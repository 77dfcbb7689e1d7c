"""What ads can say to break a matchmaker, and that they do not."""

import numpy as np
import pytest

from kettle.classad import ClassAd
from kettle.classad.columnar import Table
from kettle.matchmaking import Allocation, Demand, Explainer, Explanation, Offer, allocate
from kettle_wire.ads import Ad, Expr, Scalar

DEEP = "+".join(["1"] * 450)


def slot(name: str = "slot1@m", **more: Scalar) -> Ad:
    return {
        "Name": name,
        "PartitionableSlot": True,
        "Cpus": 8,
        "Memory": 8192,
        "Disk": 10_000_000,
        "Requirements": True,
        **more,
    }


def offer(*ads: Ad) -> Offer:
    table = Table()
    table.put_many((f"key {number}", ad) for number, ad in enumerate(ads))
    return Offer(table, np.arange(len(table)))


def explain(job: ClassAd, *ads: Ad) -> Explanation:
    offered = offer(*ads)
    return Explainer(offered.table, np.arange(len(ads))).explain(job)


def left(offered: Offer, row: int = 0) -> dict[str, int]:
    return {name: int(amounts[row]) for name, amounts in offered.free.items()}


def demand(autocluster: int = 1, count: int = 3, **more: Scalar) -> Demand:
    ad: Ad = {"Requirements": True, "RequestCpus": 1, "RequestMemory": 128, "RequestDisk": 1024, **more}
    return Demand(
        submitter="ada", schedd="ap", autocluster=autocluster, count=count, job=ClassAd.from_wire(ad)
    )


def given(allocation: Allocation) -> dict[int, int]:
    return {grant.demand.autocluster: grant.count for grant in allocation.grants}


@pytest.mark.parametrize(
    "request_cpus",
    [
        Expr('real("INF")'),
        Expr('real("NaN")'),
        Expr("1e308*10"),
        Expr(DEEP),
        Expr("1 +"),
        Expr('"many"'),
        float("nan"),
        float("inf"),
        2**53,
        -5,
        True,
    ],
)
def test_a_request_that_is_no_amount_is_refused_by_name(request_cpus: Scalar) -> None:
    """It is said which attribute is no amount, and the demand behind it is served as if nothing were."""
    offered = offer(slot())
    allocation = allocate(offered, [demand(RequestCpus=request_cpus), demand(autocluster=2)])

    assert {2: 3} == given(allocation)
    assert ["RequestCpus is no amount"] == [unmet.fault for unmet in allocation.unmet]
    assert 5 == left(offered)["Cpus"]


@pytest.mark.parametrize("name", ["RequestCpus", "RequestMemory", "RequestDisk"])
def test_nothing_is_gained_by_asking_for_less_than_nothing(name: str) -> None:
    """A negative amount takes nothing, so that nothing grows by it."""
    offered = offer(slot())
    allocate(offered, [demand(**{name: -4096})])
    assert {"Cpus": 8, "Memory": 8192, "Disk": 10_000_000} == left(offered)


def test_a_request_may_depend_on_the_slot() -> None:
    """A quarter of the machine is two cores of one and four of the other."""
    offered = offer(slot(TotalCpus=8), slot(Cpus=16, TotalCpus=16))
    allocation = allocate(offered, [demand(count=8, RequestCpus=Expr("TARGET.TotalCpus / 4"))])

    assert [(0, 4), (1, 4)] == [(grant.row, grant.count) for grant in allocation.grants]
    assert (0, 0) == (left(offered, 0)["Cpus"], left(offered, 1)["Cpus"])


@pytest.mark.parametrize(
    "text",
    [
        'eval("TARGET.TotalCpus / 4")',
        "1 * Quarter",
        "eval(TARGET).TotalCpus / 4",
    ],
)
def test_a_request_that_hides_what_it_asks_depends_on_the_slot(text: str) -> None:
    """Text that is evaluated may name attributes of the slot, also behind another attribute of the job."""
    offered = offer(slot(TotalCpus=8), slot(Cpus=16, TotalCpus=16))
    wants = demand(count=8, RequestCpus=Expr(text), Quarter=Expr('eval(strcat("TARGET.", "TotalCpus / 4"))'))
    allocation = allocate(offered, [wants])

    assert [(0, 4, 2.0), (1, 4, 4.0)] == [
        (grant.row, grant.count, grant.amounts.asked["Cpus"]) for grant in allocation.grants
    ]


def test_a_request_that_is_an_amount_for_no_slot_is_refused_by_name() -> None:
    """An expression over the slot is refused only where it gives no amount."""
    wants = demand(RequestMemory=Expr("TARGET.Speed - 10"))
    (unmet,) = allocate(offer(slot(Speed=1)), [wants]).unmet

    assert "RequestMemory is no amount for any slot" == unmet.fault
    assert {1: 3} == given(allocate(offer(slot(Speed=1), slot(Speed=100)), [wants]))


@pytest.mark.parametrize("cpus", [Expr("1 +"), float("nan"), float("inf"), -8, 1e300])
def test_a_slot_whose_amounts_are_none_offers_nothing(cpus: Scalar) -> None:
    """A machine that says nonsense about itself gets no jobs, the others do."""
    allocation = allocate(offer(slot(Cpus=cpus), slot()), [demand()])
    assert [1] == [grant.row for grant in allocation.grants]


@pytest.mark.parametrize("text", [f"({DEEP}) == 1", "random(0) > 1"])
def test_requirements_without_a_value_are_the_reason(text: str) -> None:
    """What cannot be evaluated matches nothing, and that is said."""
    wants = demand(Requirements=Expr(text))
    (unmet,) = allocate(offer(slot()), [wants]).unmet
    explained = explain(wants.job, slot())

    assert 3 == unmet.count
    assert explained.fault is not None
    assert explained.fault.startswith("Requirements cannot be evaluated: ")


@pytest.mark.parametrize("text", ["1 +", "(" * 300 + "true" + ")" * 300, DEEP + " == 1"])
def test_a_slot_with_senseless_requirements_refuses(text: str) -> None:
    """It counts as a slot that refuses, with the text of what refuses."""
    explained = explain(demand().job, slot(Requirements=Expr(text)))
    assert (0, [("slot", 1)]) == (explained.able, [(r.side, r.refuses) for r in explained.refusals])


def test_a_rank_that_is_no_number_counts_as_nothing() -> None:
    """What has no order must not decide about one."""
    ranked = demand(count=1, Rank=Expr('TARGET.Fast =?= true ? 5 : real("NaN")'))
    allocation = allocate(offer(slot(), slot(Fast=True), slot()), [ranked])
    assert [1] == [grant.row for grant in allocation.grants]


def test_slots_with_one_name_are_two_slots() -> None:
    """Names are what ads say; what is given of one must not be booked on the other."""
    allocation = allocate(offer(slot("same", Cpus=2), slot("same", Cpus=2)), [demand(count=4)])
    assert [(0, 2), (1, 2)] == [(grant.row, grant.count) for grant in allocation.grants]


@pytest.mark.parametrize("text", ["string(MY) != string(TARGET)", 'eval(MY) =!= "x"'])
def test_a_whole_ad_that_says_nonsense_is_a_value_like_any_other(text: str) -> None:
    """A job that reads its own ad, in which something does not parse, does not stop the others."""
    broken = demand(Nonsense=Expr("1 +"), Requirements=Expr(text))
    assert 3 == given(allocate(offer(slot()), [broken, demand(autocluster=2)]))[2]
