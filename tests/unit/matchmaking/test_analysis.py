"""Why a job matches no slot, and what it would have to ask for: every clause on every slot."""

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
from hypothesis import given

from kettle.classad import ClassAd, Node, conjuncts, matches, unparse
from kettle.classad.columnar import Table
from kettle.matchmaking import Analyst, Explainer
from kettle_wire.ads import Ad, Expr, Scalar
from kettle_wire.commands.negotiator import Analysis, Present, Remedy, UsedUp

from .slowly import JOBS, POOLS, RESOURCES, Slot, asked_of, demands, faulty, holds


def analysed(wants: Mapping[str, Scalar], *ads: Mapping[str, Scalar]) -> Analysis:
    table = Table()
    table.put_many((str(number), ad) for number, ad in enumerate(ads))
    return Analyst(Explainer(table, np.arange(len(ads)), policies=True)).analyse(ClassAd.from_wire(wants))


def slot(**more: Scalar) -> Ad:
    return {
        "Cpus": 8,
        "Memory": 8192,
        "Disk": 10_000,
        "Requirements": True,
        "PartitionableSlot": True,
        **more,
    }


def job(requirements: str, **more: Scalar) -> Ad:
    return {"Requirements": Expr(requirements), "RequestMemory": 4096, **more}


def fits(wants: Ad, one: Slot, *, but: frozenset[str] = frozenset()) -> bool:
    """One slot, one job, by the evaluator alone; requests in `but` always have room."""
    ad = ClassAd.from_wire(wants)
    if faulty(ad) or not matches(ad, one.idle):
        return False
    asked = asked_of(ad, one.idle)
    return asked is not None and not one.too_small(asked) - but


def clauses_of(ad: ClassAd) -> list[Node]:
    stored = ad.find("requirements")
    return conjuncts(stored) if isinstance(stored, Node) else []


@given(POOLS, JOBS)
def test_each_clause_passes_as_many_slots_as_it_does_one_by_one(ads: list[Ad], wants: Ad) -> None:
    """
    Alone, with all others, and as the only one that is in the way: by evaluating each clause for each slot.
    """
    slots, ad = [Slot(row, ad) for row, ad in enumerate(ads)], ClassAd.from_wire(wants)
    found = analysed(wants, *ads)
    assert sum(fits(wants, one) for one in slots) == found.able
    if found.fault:
        return
    tried = {(one.side, one.text): one for one in found.clauses}
    for clause in clauses_of(ad):
        one = tried["job", unparse(clause)]
        assert (len(slots), sum(holds(clause, ad, each.idle) for each in slots)) == (one.asked, one.passes)
        assert in_the_way(wants, clause, slots) == one.only
    asked, passes = Counter[str](), Counter[str]()
    for each in slots:
        for clause in demands(each.idle):
            asked[unparse(clause)] += 1
            passes[unparse(clause)] += holds(clause, each.idle, ad)
    told = {text: one for (side, text), one in tried.items() if side == "slot"}
    assert all((asked[text], passes[text]) == (told[text].asked, told[text].passes) for text in asked)


def in_the_way(wants: Ad, clause: Node, slots: Sequence[Slot]) -> int:
    """
    How many slots a clause alone keeps the job from: without it, or with less asked of what it is about, they fit.
    """
    ad, text = ClassAd.from_wire(wants), unparse(clause)
    others = [unparse(one) for one in clauses_of(ad) if unparse(one) != text]
    relaxed: Ad = {**wants, "Requirements": Expr(" && ".join(f"({one})" for one in others) or "true")}
    about = frozenset(name for name in RESOURCES if f"Request{name}" in text)
    count = 0
    for one in slots:
        refused = not holds(clause, ad, one.idle)
        smaller = [
            {**wants, f"Request{name}": one.totals[name]}
            for name in about
            if isinstance(asked := (asked_of(ad, one.idle) or {}).get(name), float)
            and 0 < one.totals[name] < asked
            and not isinstance(ad.find(f"request{name.lower()}"), Node)
        ]
        count += refused and (fits(relaxed, one, but=about) or any(fits(less, one) for less in smaller))
    return count


@given(POOLS, JOBS)
def test_a_remedy_gains_what_it_says_and_no_larger_amount_does(ads: list[Ad], wants: Ad) -> None:
    """
    With the amount, asked of every slot by the evaluator, so many match; with all that any slot has of it beyond that, but
    less than is asked now, that slot does not.
    """
    slots = [Slot(row, ad) for row, ad in enumerate(ads)]
    found = analysed(wants, *ads)
    if found.fault:
        return
    remedies = {one.attribute: one for one in found.remedies}
    for name in RESOURCES:
        attribute, asked = f"Request{name}", wants.get(f"Request{name}")
        if isinstance(asked, bool) or not isinstance(asked, int | float):
            continue
        amounts = [one.totals[name] for one in slots if 0 < one.totals[name] < asked]
        gained = {amount: sum(fits({**wants, attribute: amount}, one) for one in slots) for amount in amounts}
        remedy = remedies.get(attribute)
        if remedy is None:
            own = [
                each.totals[name]
                for each in slots
                if each.totals[name] in gained and fits({**wants, attribute: each.totals[name]}, each)
            ]
            assert not own or max(gained[max(own)], gained[min(own)]) <= found.able
            continue
        assert gained[int(remedy.most)] == remedy.slots
        assert gained[int(remedy.least)] == remedy.least_slots
        for each in slots:
            if remedy.most < each.totals[name] < asked:
                assert not fits({**wants, attribute: each.totals[name]}, each)


def test_the_largest_amount_and_the_one_that_gains_most_are_told() -> None:
    """Of 4 machines 3 have less than 4096 MiB: 2150 would match one, 1000 all of them."""
    wants = job('TARGET.Memory >= RequestMemory && TARGET.Arch == "x"')
    ads = [slot(Memory=1000), slot(Memory=2150), slot(Memory=1000), slot(Memory=9000)]
    found = analysed(
        wants, *({**ad, "Arch": arch} for ad, arch in zip(ads, ("x", "x", "x", "y"), strict=True))
    )
    assert [
        Remedy(attribute="RequestMemory", asked=4096, most=2150, slots=1, least=1000, least_slots=3)
    ] == found.remedies
    assert [("TARGET.Memory >= RequestMemory", 1, 3), ('TARGET.Arch == "x"', 3, 1)] == [
        (one.text, one.passes, one.only) for one in found.clauses
    ]


def test_of_gpus_the_number_that_there_is_is_told() -> None:
    """Also of those that are in use now."""
    wants = job("TARGET.GPUs >= RequestGPUs", RequestMemory=1, RequestGPUs=8)
    found = analysed(wants, slot(GPUs=0, TotalSlotGPUs=4), slot(GPUs=2, TotalSlotGPUs=2), slot())
    assert [("RequestGPUs", 4.0, 1, 2.0, 2)] == [
        (one.attribute, one.most, one.slots, one.least, one.least_slots) for one in found.remedies
    ]


def test_what_slots_say_instead_is_told() -> None:
    """The most frequent values of what a clause asks for, and how many say nothing."""
    ads = [slot(OpSysAndVer="Debian13"), slot(OpSysAndVer="Debian13"), slot(OpSysAndVer="Ubuntu24"), slot()]
    (clause,) = analysed(job('TARGET.OpSysAndVer == "CentOS7"'), *ads).clauses
    said = [('"Debian13"', 2), ('"Ubuntu24"', 1), ("undefined", 1)]
    assert [Present(attribute="OpSysAndVer", values=said)] == clause.present
    assert (0, 4) == (clause.passes, clause.only)


def test_clauses_that_only_together_are_in_the_way_are_named_together() -> None:
    """No single change is enough for any slot: two of three lack the same two."""
    wants = job('TARGET.Arch == "x" && TARGET.Fast && TARGET.Near', RequestMemory=1)
    ads = [slot(Arch="y", Near=True), slot(Arch="y", Near=True), slot(Fast=True, Arch="y")]
    found = analysed(wants, *ads)
    assert (['TARGET.Arch == "x"', "TARGET.Fast"], 2) == (found.together, found.together_slots)
    assert [0, 0, 0] == [one.only for one in found.clauses]


def test_a_request_without_a_clause_counts_as_one() -> None:
    """As it does when slots are divided; with a clause that says the same it is told once."""
    assert [("RequestMemory = 4096 does not fit", 1)] == [
        (one.text, one.only) for one in analysed(job("true"), slot(Memory=100)).clauses if one.only
    ]
    both = analysed(job("TARGET.Memory >= RequestMemory"), slot(Memory=100)).clauses
    assert ["TARGET.Memory >= RequestMemory"] == [one.text for one in both]


def test_a_job_at_fault_is_told_so() -> None:
    """No clause is to blame."""
    found = analysed(job("true", RequestCpus=-1), slot())
    assert ("RequestCpus is no amount", 0, []) == (found.fault, found.able, found.clauses)


def test_of_what_too_little_is_left_is_told_where_a_job_could_run() -> None:
    """
    What is left of partitionable slots is compared with what is asked, the one that most lack first; nothing is told where one has room, and
    nothing of slots that could not run it anyhow.
    """
    whole: Ad = {"TotalSlotCpus": 8, "TotalSlotMemory": 8192, "TotalSlotDisk": 10_000, "TotalSlotGPUs": 2}
    wants = job("true", RequestCpus=1, RequestDisk=5_000, RequestGPUs=1)
    full = slot(**whole, State="Unclaimed", GPUs=0) | {"Disk": 4_000}
    fuller = slot(**whole, State="Unclaimed", GPUs=1) | {"Disk": 3_000}
    claimed = slot(State="Claimed") | {"PartitionableSlot": False}
    small = slot(State="Unclaimed") | {"Disk": 1_000}
    told = analysed(wants, full, fuller, claimed, small)
    assert (3, 0) == (told.able, told.free)
    assert [
        UsedUp(resource="Disk", slots=2, asked=5_000, left=4_000),
        UsedUp(resource="GPUs", slots=1, asked=1, left=0),
    ] == told.used_up
    roomy = slot(**whole, State="Unclaimed", GPUs=1)
    assert (1, []) == ((told := analysed(wants, full, roomy)).free, told.used_up)
