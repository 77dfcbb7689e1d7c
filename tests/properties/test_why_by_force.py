"""
What `kettle why` says of a waiting job is right: every slot is asked one by one, with the plain evaluator, and every change
that it suggests is carried out and asked again.

The pools and jobs are drawn from a number. KETTLE_TEST_WHY is how many of them are tried: some hundreds, or 10,000 before
a release.
"""

import os
import random
import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any, Final

import numpy as np
import pytest
from tests.unit.matchmaking.slowly import Slot, asked_of, demands, faulty, holds

from kettle.classad import ClassAd, Node, conjuncts, matches, parse, unparse
from kettle.classad.columnar import Table
from kettle.client import JobId, WhyReport
from kettle.client.explanations.job_state import Answer, answer
from kettle.matchmaking import Analyst, Explainer
from kettle_wire.ads import Ad, Expr, Scalar
from kettle_wire.commands.negotiator import Analysis, Verdict
from kettle_wire.commands.schedd import Explanation

CASES: Final = int(os.environ.get("KETTLE_TEST_WHY", "300"))
CHUNKS: Final = 10

LIMITS: Final = " && ".join(
    f"(TARGET.Request{name} ?: {usual}) <= MY.{name}"
    for name, usual in (("Cpus", 1), ("Memory", 128), ("Disk", 1024))
)
STARTS: Final = (
    "KeyboardIdle > 15 * 60", "KeyboardIdle > 900 && LoadAvg < 0.3", 'LoadAvg < 0.3 || TARGET.Owner == "bob"',
    'ClockMin >= 12 * 60 && TARGET.Owner == "ada"', 'TARGET.Owner == "ada"', "TARGET.RequestCpus < 3", "IsQuiet && Unused",
    "TARGET.WantNight =?= true", "Memory >= 2048 && MY.IsQuiet", "undefined", "KeyboardIdle > 900 && START",
)  # fmt: skip
CLAUSES: Final = (
    'TARGET.Arch == "x"', 'TARGET.OpSys == "linux"', "TARGET.HasFileTransfer", "TARGET.Memory >= RequestMemory",
    "TARGET.Cpus >= RequestCpus", "TARGET.Memory >= RequestMemory && TARGET.Disk >= RequestDisk", "TARGET.LoadAvg < 1",
    "TARGET.IsQuiet", 'Speed > 1 || TARGET.Arch == "y"', "TARGET.Site == MySite", "TARGET.Nosuch > 3", "RequestMemory < 5000",
    "(TARGET.Memory >= RequestMemory || TARGET.Swaps)", 'regexp("^n[12]$", TARGET.Machine)', 'stringListMember(TARGET.Arch, "x,z")',
    "TARGET.GPUs >= RequestGPUs", "(MY.WantNight ? TARGET.ClockMin > 700 : true)", "true",
)  # fmt: skip
WEATHER: Final = (("KeyboardIdle", (0, 10**6)), ("LoadAvg", (0.0, 9.0)), ("ClockMin", (0, 1000)))
"""What changes by itself, and the values between which the expressions above can tell."""
CHANGING: Final = frozenset({"KeyboardIdle", "LoadAvg", "ClockMin"})


def pick(draw: random.Random, values: Sequence[Any]) -> Any:
    """One of them, of whatever kind it is."""
    return draw.choice(values)


def drawn(draw: random.Random, number: int) -> Ad:
    """A slot."""
    ad: Ad = {
        "Machine": f"n{number}",
        "Name": f"slot1@n{number}",
        "Cpus": pick(draw, [0, 1, 2, 4, 8, 8]),
        "Memory": pick(draw, [128, 1000, 2048, 8192]),
        "Disk": pick(draw, [1024, 100_000, 10**6]),
        "PartitionableSlot": draw.random() < 0.7,
        "State": pick(draw, ["Unclaimed", "Unclaimed", "Unclaimed", "Claimed", "Owner", "Backfill"]),
        "Requirements": Expr("START && WithinResourceLimits"),
        "WithinResourceLimits": Expr(LIMITS),
        "Start": pick(draw, [True, True, True, True, False, *map(Expr, STARTS)]),
        "KeyboardIdle": pick(draw, [0, 5, 2000]),
        "LoadAvg": pick(draw, [0.1, 0.5, 3.0]),
        "ClockMin": pick(draw, [10, 800]),
        "IsQuiet": pick(draw, [Expr("LoadAvg < 0.3"), Expr("LoadAvg < 0.3"), True, False]),
        "Unused": pick(draw, [Expr("MY.KeyboardIdle > 900"), True]),
        "HasFileTransfer": True,
    }
    may: dict[str, Scalar] = {
        "Arch": pick(draw, ["x", "X", "y", "z"]),
        "OpSys": pick(draw, ["linux", "windows"]),
        "Speed": pick(draw, [1, 2, Expr("Cpus")]),
        "Site": pick(draw, ["here", "there"]),
        "Swaps": draw.random() < 0.5,
        "TotalSlotCpus": pick(draw, [4, 8, 16]),
        "TotalSlotMemory": pick(draw, [2048, 8192]),
    }
    ad |= {name: value for name, value in may.items() if draw.random() < 0.8}
    if draw.random() < 0.25:
        ad |= {"GPUs": pick(draw, [0, 1, 2]), "TotalSlotGPUs": 2}
        ad["WithinResourceLimits"] = Expr(f"{LIMITS} && (TARGET.RequestGPUs ?: 0) <= MY.GPUs")
    match draw.random():
        case chance if chance < 0.06:
            ad |= {
                "Requirements": False,
                "State": "Drained",
                "Draining": True,
                "DrainReason": pick(draw, ["", "kernel"]),
            }
        case chance if chance < 0.10:
            ad |= {"Requirements": False, "State": "Unclaimed", "Trouble": "the disk is full"}
        case chance if chance < 0.13:
            ad |= {"Requirements": False}
        case _:
            pass
    return ad  # fmt: skip


def wanted(draw: random.Random) -> Ad:
    """A job."""
    clauses = draw.sample(CLAUSES, pick(draw, [0, 1, 1, 2, 2, 3, 4]))
    ad: Ad = {
        "Owner": pick(draw, ["ada", "bob"]),
        "MySite": pick(draw, ["here", "mars"]),
        "Requirements": Expr(" && ".join(clauses)) if clauses else pick(draw, [True, False, Expr("1 + 1")]),
        "RequestMemory": pick(draw, [1, 128, 128, 1500, 4096, 9000, Expr("MemoryUsage ?: 200")]),
        "RequestCpus": pick(draw, [1, 1, 1, 2, 2, 6, 20, Expr("TARGET.Cpus"), pick(draw, [1, -1])]),
    }
    may: dict[str, Scalar] = {
        "RequestDisk": pick(draw, [1, 50_000, 10**6]),
        "RequestGPUs": pick(draw, [1, 3]),
        "WantNight": draw.random() < 0.5,
    }
    return ad | {name: value for name, value in may.items() if draw.random() < 0.4}


class World:
    """A pool, which is asked slot by slot."""

    def __init__(self, ads: list[Ad]) -> None:
        self.ads = ads

    def idle(self, ad: Ad) -> tuple[Slot, ClassAd]:
        """A slot as if nothing ran there."""
        slot = Slot(0, ad)
        seen = slot.idle
        if "TotalSlotGPUs" in ad:
            seen["GPUs"] = ad["TotalSlotGPUs"]
        return slot, seen

    def takes(self, ad: Ad, job: Ad) -> bool:
        """Whether a slot would take a job if nothing ran there."""
        wants, (slot, seen) = ClassAd.from_wire(job), self.idle(ad)
        if faulty(wants) or not matches(wants, seen):
            return False
        asked = asked_of(wants, seen)
        return asked is not None and not slot.too_small(asked)

    def able(self, job: Ad) -> int:
        return sum(self.takes(ad, job) for ad in self.ads)

    def ever(self, job: Ad) -> int:
        """How many slots would take it in some weather."""
        return self.able(job) + self.later(job)

    def free(self, job: Ad) -> int:
        """How many slots could take one at this moment."""
        wants, count = ClassAd.from_wire(job), 0
        for ad in self.ads:
            slot = Slot(0, ad)
            if ad["State"] not in {"Unclaimed", "Backfill"} or not slot.free["Cpus"] or faulty(wants):
                continue
            pieces = job.get("RequestGPUs", 0)
            if slot.partitionable and isinstance(pieces, int) and isinstance(ad.get("GPUs"), int):
                has = ad["GPUs"]
                if isinstance(has, int) and pieces > has:
                    continue
            count += matches(wants, slot.now) and slot.room(asked_of(wants, slot.now)) > 0
        return count

    def later(self, job: Ad) -> int:
        """
        How many slots do not take it, and would in some weather, or when what they are closed for is over.
        """
        return sum(
            not self.takes(ad, job) and any(self.takes(one, job) for one in weathers(ad)) for ad in self.ads
        )


def weathers(ad: Ad) -> Iterator[Ad]:
    """The slot as it may become by itself."""
    opened: Ad = {}
    if ad["Requirements"] is False and (ad.get("Draining") or "Trouble" in ad or ad["State"] == "Owner"):
        opened = {"Requirements": True}
    for values in product(*(values for _, values in WEATHER)):
        yield {**ad, **opened, **dict(zip((name for name, _ in WEATHER), values, strict=True))}


def analysed(ads: list[Ad], job: Ad) -> Analysis:
    table = Table()
    table.put_many((str(number), ad) for number, ad in enumerate(ads))
    return Analyst(Explainer(table, np.arange(len(ads)), policies=True)).analyse(ClassAd.from_wire(job))


def told(job: Ad, analysis: Analysis) -> Answer:
    explanation = Explanation(
        job=JobId(1, 0), status="idle", reason="", submitter="ada", autocluster=1, ad=job
    )
    verdict = Verdict(cycle=None, at=0.0, analysis=analysis)
    return answer(WhyReport(job=JobId(1, 0), explanation=explanation, verdict=verdict), now=100.0)


def without(job: Ad, text: str) -> Ad | None:
    """The job without a clause; None if it has no such clause."""
    stored = ClassAd.from_wire(job).find("requirements")
    if not isinstance(stored, Node):
        return None
    texts = [unparse(one) for one in conjuncts(stored)]
    left = [f"({one})" for one in texts if one != text]
    return None if text not in texts else {**job, "Requirements": Expr(" && ".join(left) or "true")}


def edited(job: Ad, command: str) -> Ad:
    """The job after a command that was suggested, as a shell and `kettle edit` read it."""
    program, verb, ident, *values = shlex.split(command)
    assert ("kettle", "edit", "1.0") == (program, verb, ident)
    changed = dict(value.split("=", 1) for value in values)
    for text in changed.values():
        parse(text)
    return {**job, **{name: Expr(text) for name, text in changed.items()}}


def check_clauses(world: World, job: Ad, found: Analysis) -> None:
    """How many slots pass each clause of either side, and what is gained without one of the job's."""
    wants = ClassAd.from_wire(job)
    asked, passes = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    stored = wants.find("requirements")
    for ad in world.ads:
        _, seen = world.idle(ad)
        for clause in conjuncts(stored) if isinstance(stored, Node) else []:
            asked["job", unparse(clause)] += 1
            passes["job", unparse(clause)] += holds(clause, wants, seen)
        for clause in demands(seen):
            asked["slot", unparse(clause)] += 1
            passes["slot", unparse(clause)] += holds(clause, seen, wants)
    tried = {(one.side, one.text): (one.asked, one.passes) for one in found.clauses}
    if not found.more:
        repeated = {key for key in asked if key[0] == "job" and asked[key] > len(world.ads)}
        assert {
            key: (asked[key], passes[key]) for key in asked if key not in repeated
        }.items() <= tried.items()
    closed = sum(ad["Requirements"] is False for ad in world.ads)
    assert closed == sum(
        one.asked for one in found.clauses if one.side == "slot" and one.text.startswith("false")
    )
    for one in found.clauses:
        if one.side == "job" and (less := without(job, one.text)) is not None:
            assert max(0, world.able(less) - found.able) == one.without, one.text


def check_remedies(world: World, job: Ad, found: Analysis, said: Answer) -> None:
    """What is suggested is carried out: as many slots match as was said, and more than before."""
    able = world.ever if found.for_later else world.able
    for remedy in found.remedies:
        for amount, slots in ((remedy.most, remedy.slots), (remedy.least, remedy.least_slots)):
            assert slots == able({**job, remedy.attribute: amount}), remedy
        assert max(remedy.slots, remedy.least_slots) > found.able
    for edit in found.edits:
        requirements: Ad = {"Requirements": Expr(edit.requirements)} if edit.dropped else {}
        assert found.able < edit.slots == able({**job, **edit.requests, **requirements}), edit
    commands = [
        one[len("Next: ") :].split("; otherwise")[0]
        for one in said.sentences
        if one.startswith("Next: kettle")
    ]
    for command in commands:
        if "NAME=EXPRESSION" not in command:
            assert able(edited(job, command)) > 0, command
    if said.outlook == "never" and not found.fault:
        assert bool(found.remedies or found.edits) == any("NAME=" not in one for one in commands), (
            said.sentences
        )
        if not commands:
            assert not any(one.ever(less) for one, less in smaller(world, job))


def smaller(world: World, job: Ad) -> Iterator[tuple[World, Ad]]:
    """
    The job without one of its clauses; and for each slot alone with one request as small as what that has.
    """
    stored = ClassAd.from_wire(job).find("requirements")
    for clause in conjuncts(stored) if isinstance(stored, Node) else []:
        if (less := without(job, unparse(clause))) is not None:
            yield world, less
    for name in ("Cpus", "Memory", "Disk"):
        asked = job.get(f"Request{name}")
        for ad in world.ads:
            has = Slot(0, ad).totals[name]
            if isinstance(asked, int) and 0 < has < asked:
                yield World([ad]), {**job, f"Request{name}": has}


def check(number: int) -> str:
    """One pool and one job; the verdict."""
    draw = random.Random(number)
    ads = [drawn(draw, each) for each in range(pick(draw, [0, 1, 2, 3, 5, 8]))]
    job, world = wanted(draw), World(ads)
    found = analysed(ads, job)
    said = told(job, found)
    able, later = world.able(job), world.later(job)
    assert (len(ads), able) == (found.slots, found.able)
    if found.fault:
        assert (0, "never") == (able, said.outlook)
        return "fault"
    assert (world.free(job), later) == (found.free, found.later)
    expected = ("now" if world.free(job) else "when") if able else "when" if later else "never"
    assert expected == said.outlook
    check_clauses(world, job, found)
    check_remedies(world, job, found, said)
    return expected


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_the_answer_is_what_asking_every_slot_says(chunk: int) -> None:
    """
    The verdict (now, when, never), how many slots pass each clause, and what each suggested change would gain.
    """
    verdicts = Counter[str]()
    for number in range(chunk, CASES, CHUNKS):
        try:
            verdicts[check(number)] += 1
        except AssertionError as error:
            error.add_note(f"pool and job number {number}")
            raise
    assert CASES < 300 or {"now", "when", "never"} <= verdicts.keys(), verdicts
