"""Why an autocluster gets nothing."""

import re
from collections import Counter
from collections.abc import Mapping

import numpy as np
import pytest
from hypothesis import given

from kettle.classad import ClassAd
from kettle.classad.columnar import Table
from kettle.matchmaking import Explainer, Explanation, Refusal
from kettle_wire.ads import Ad, Expr, Scalar

from .slowly import JOBS, POOLS, Slot, refusals


def explained(
    wants: Mapping[str, Scalar], *ads: Mapping[str, Scalar], rows: list[int] | None = None
) -> Explanation:
    table = Table()
    table.put_many((str(number), ad) for number, ad in enumerate(ads))
    chosen = np.arange(len(ads)) if rows is None else np.array(rows, np.int64)
    return Explainer(table, chosen).explain(ClassAd.from_wire(wants))


def slot(**more: Scalar) -> Ad:
    return {"Cpus": 8, "Memory": 8192, "Disk": 10_000, "Requirements": True, **more}


def counts(explanation: Explanation) -> dict[tuple[str, str], int]:
    return {(one.side, one.text): one.refuses for one in explanation.refusals}


def without_amounts(explanation: Explanation) -> dict[tuple[str, str], int]:
    """The explanation without the amounts of requests that do not fit."""
    cut = re.compile(r"^(Request\w+) = .* (does not fit)$")
    return {(side, cut.sub(r"\1 \2", text)): refuses for (side, text), refuses in counts(explanation).items()}


@given(POOLS, JOBS)
def test_clauses_are_counted_as_they_would_be_slot_by_slot(ads: list[Ad], wants: Ad) -> None:
    """
    Each clause of both sides, and room, is looked at as if nothing ran there; the strongest refusal is named first.
    """
    slowly: Counter[tuple[str, str]] = Counter()
    able = refusals(ClassAd.from_wire(wants), [Slot(row, ad) for row, ad in enumerate(ads)], slowly)
    found = explained(wants, *ads)
    assert able == found.able
    if found.fault is None:
        assert dict(+slowly) == without_amounts(found)
        refuses = [one.refuses for one in found.refusals]
        assert sorted(refuses, reverse=True) == refuses


def test_clauses_of_both_sides_are_named() -> None:
    """Slots that say the same count together; a clause that refuses nobody is left out."""
    picky = Expr('TARGET.Owner == "ada" && true')
    ads = [slot(Requirements=picky), slot(Requirements=picky, Memory=100), slot(Arch="x"), slot()]
    wants: Ad = {"Requirements": Expr('TARGET.Memory > 200 && TARGET.Arch == "x" && 1 < 2'), "Owner": "bob"}
    found = explained(wants, *ads)
    assert 1 == found.able
    assert [
        Refusal(side="job", text='TARGET.Arch == "x"', refuses=3),
        Refusal(side="slot", text='TARGET.Owner == "ada"', refuses=2),
        Refusal(side="job", text="TARGET.Memory > 200", refuses=1),
    ] == found.refusals


@pytest.mark.parametrize(
    ("requirements", "text"),
    [
        (None, "Requirements (missing)"),
        (False, "false"),
        (0, "0"),
        ("true", '"true"'),
        (Expr("undefined"), "undefined"),
        (Expr("1 +"), "error"),
    ],
)
def test_requirements_that_are_no_expression(requirements: Scalar | None, text: str) -> None:
    """What is missing or a literal refuses everything, on either side, and is named as it is."""
    ad: Ad = {} if requirements is None else {"Requirements": requirements}
    slots = [{**slot(), **ad} if ad else {"Cpus": 8}] * 3
    assert {("job", text): 3} == counts(explained(ad, slot(), slot(), slot()))
    assert {("slot", text): 3} == counts(explained({"Requirements": True}, *slots))
    assert {("slot", text): 1} == counts(explained({"Requirements": True}, slot(), slots[0]))


@pytest.mark.parametrize("requirements", [True, 1, 0.5, -3])
def test_requirements_that_are_true_refuse_nobody(requirements: Scalar) -> None:
    """A number other than zero is true."""
    found = explained({"Requirements": requirements}, slot(Requirements=requirements))
    assert Explanation(able=1, refusals=[]) == found


def test_slots_are_looked_at_as_if_nothing_ran_on_them() -> None:
    """What the machine has counts, not what is left; where it does not say, what is there."""
    busy = slot(Cpus=0, TotalSlotCpus=8, Memory=0, TotalSlotMemory=8192)
    wants: Ad = {"Requirements": Expr("TARGET.Cpus >= 8 && TARGET.Memory >= 8192 && TARGET.Disk >= 10000")}
    assert 1 == explained(wants, busy).able
    assert {("job", "TARGET.Cpus >= 8"): 1} == counts(explained(wants, slot(Cpus=4)))


def test_devices_are_looked_at_as_if_nobody_had_them() -> None:
    """
    Numbers and single pieces, where a slot says what it has beside what is left; other slots are as they say.
    """
    busy = slot(
        GPUs=0,
        TotalSlotGPUs=2,
        TotalSlots=1,
        AvailableGPUs=Expr("{ }"),
        TotalSlotAvailableGPUs=Expr("{ GPUs_a, GPUs_b }"),
        GPUs_a=Expr("[Capability = 7.0]"),
        GPUs_b=Expr("[Capability = 8.0]"),
        S="as it is",
    )
    free = slot(GPUs=1, AvailableGPUs=Expr("{ GPUs_a }"), GPUs_a=Expr("[Capability = 8.0]"))

    def able(least: float, count: int) -> int:
        wants: Ad = {
            "RequestGPUs": count,
            "RequireGPUs": Expr(f"Capability >= {least}"),
            "Requirements": Expr(
                "TARGET.GPUs >= RequestGPUs && countMatches(MY.RequireGPUs, TARGET.AvailableGPUs) >= RequestGPUs"
            ),
        }
        return explained(wants, busy, free, slot()).able

    assert [2, 2, 1, 0] == [able(7.5, 1), able(6.0, 1), able(6.0, 2), able(7.5, 2)]
    assert 1 == explained({"Requirements": Expr('TARGET.S == "as it is"')}, busy, free, slot()).able


def test_what_fits_in_no_slot_refuses() -> None:
    """
    Where nothing but room is in the way, each request that does not fit is named with how many slots it is too large for.
    """
    big = slot(PartitionableSlot=True, Cpus=0, TotalSlotCpus=8)
    wants: Ad = {"Requirements": True, "RequestCpus": 500, "RequestMemory": 8192}
    small = slot(PartitionableSlot=True, Memory=100)
    found = explained(wants, big, small)
    assert (
        Explanation(
            able=0,
            refusals=[
                Refusal(side="job", text="RequestCpus = 500 does not fit", refuses=2),
                Refusal(side="job", text="RequestMemory = 8192 does not fit", refuses=1),
            ],
        )
        == found
    )
    assert Explanation(able=1, refusals=[]) == explained({**wants, "RequestCpus": 8}, big, small)


def test_what_fits_only_where_it_may_not_run_is_named_beside_the_clause() -> None:
    """One machine is too small and the other refuses: neither alone is the reason."""
    wants: Ad = {"Requirements": Expr('TARGET.Arch == "x"'), "RequestCpus": 16}
    found = explained(
        wants,
        slot(PartitionableSlot=True, Arch="x"),
        slot(PartitionableSlot=True, Arch="y", Cpus=64),
    )
    assert (0, {("job", 'TARGET.Arch == "x"'): 1, ("job", "RequestCpus = 16 does not fit"): 1}) == (
        found.able,
        counts(found),
    )


def test_a_request_that_depends_on_the_slot_is_named_as_it_is_written() -> None:
    """It has no one amount."""
    wants: Ad = {"Requirements": True, "RequestMemory": Expr("TARGET.Memory * 2")}
    found = explained(wants, slot(PartitionableSlot=True))
    assert {("job", "RequestMemory = TARGET.Memory * 2 does not fit"): 1} == counts(found)


@pytest.mark.parametrize(
    ("request_memory", "fault"),
    [
        (-1, "RequestMemory is no amount"),
        (Expr('TARGET.Name + "x"'), "RequestMemory is no amount for any slot"),
    ],
)
def test_a_request_that_is_no_amount_is_a_fault(request_memory: Scalar, fault: str) -> None:
    """It is said instead of clauses that have nothing to do with it."""
    wants: Ad = {"Requirements": True, "RequestMemory": request_memory}
    assert Explanation(able=0, refusals=[], fault=fault) == explained(wants, slot(Name="s"))


def test_a_slot_that_is_not_partitionable_has_room_for_one() -> None:
    """Whatever it asks for: that is left to the Requirements, as it is when slots are given away."""
    wants: Ad = {"Requirements": True, "RequestCpus": 500}
    assert (1, 0) == (explained(wants, slot()).able, explained(wants, slot(Cpus=0)).able)


def test_only_the_slots_that_are_meant_count() -> None:
    """Others in the table are neither able nor refused."""
    ads = [slot(Arch="x"), slot(), slot(Arch="x"), slot(), slot(Requirements=False)]
    found = explained({"Requirements": Expr('TARGET.Arch == "x"')}, *ads, rows=[1, 2, 3])
    assert (1, {("job", 'TARGET.Arch == "x"'): 2}) == (found.able, counts(found))


def test_there_may_be_no_slots_at_all() -> None:
    """Nobody refuses; what is wrong with the job itself is still said."""
    assert Explanation(able=0, refusals=[]) == explained({"Requirements": Expr("TARGET.Memory > 1")})
    assert Explanation(able=0, refusals=[]) == explained({})
    found = explained({"Requirements": Expr("random(0) > 1")})
    assert found.fault is not None
    assert found.fault.startswith("Requirements cannot be evaluated: ")


def test_a_failure_for_some_slots_is_no_fault() -> None:
    """Requirements that have a value for one slot are explained clause by clause."""
    wants: Ad = {"Requirements": Expr("TARGET.Cpus > 100 && random(TARGET.Odds) >= 0")}
    found = explained(wants, slot(Cpus=200, Odds=0), slot(Cpus=1, Odds=0))
    assert found.fault is None
    assert {("job", "TARGET.Cpus > 100"): 1, ("job", "random(TARGET.Odds) >= 0"): 2} == counts(found)


def test_a_long_clause_is_cut() -> None:
    """A record shows five hundred characters of it."""
    (refusal,) = explained({"Requirements": Expr(f'TARGET.Arch == "{"x" * 1000}"')}, slot()).refusals
    assert (503, "...") == (len(refusal.text), refusal.text[-3:])


def test_one_explainer_serves_many_jobs() -> None:
    """What is known of the slots does not mix what is said of one job with the next."""
    table = Table()
    table.put_many([("a", slot(Arch="x")), ("b", slot(Requirements=Expr("TARGET.Size < 5")))])
    explainer = Explainer(table, np.arange(2))
    jobs: list[Ad] = [
        {"Requirements": Expr('TARGET.Arch == "y"'), "Size": 1},
        {"Requirements": Expr('TARGET.Arch == "x"'), "Size": 9},
        {"Requirements": True, "Size": 1},
    ]
    assert [
        (0, {("job", 'TARGET.Arch == "y"'): 2}),
        (1, {("job", 'TARGET.Arch == "x"'): 1, ("slot", "TARGET.Size < 5"): 1}),
        (2, {}),
    ] == [((one := explainer.explain(ClassAd.from_wire(job))).able, counts(one)) for job in jobs]
