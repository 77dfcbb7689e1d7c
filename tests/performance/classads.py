"""
How fast ClassAds are parsed, evaluated and matched, and slots shared out: JSON on standard output.

    python -m tests.performance.classads

All times are processor time of this process.
Where HTCondor's own library (module `classad2` of the package `htcondor`) can do the same, it does so in the same run.
"""

import gc
import importlib
import json
import os
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from kettle.classad import ClassAd, evaluate_attribute, matches, parse, read_long
from kettle.classad.columnar import Evaluator, Table
from kettle.matchmaking import Demand, Explainer, Offer, allocate
from kettle.testing.measurements import summary
from kettle.testing.pool_ads import START, jobs, long_form, machines, new_syntax
from kettle_wire.ads.types import Ad, Expr

ROUNDS = 7


def seconds(work: Callable[[], object]) -> float:
    """Processor time of one run."""
    gc.collect()
    began = time.process_time()
    work()
    return time.process_time() - began


def microseconds(work: Callable[[], object], times: int, rounds: int = ROUNDS) -> dict[str, Any]:
    """Processor time of one of many runs."""

    def repeat() -> None:
        for _ in range(times):
            work()

    repeat()
    return summary((seconds(repeat) / times * 1e6 for _ in range(rounds)), 2)


def loop_turns() -> float:
    """Millions of turns of a bare loop in a second of processor time."""
    count = 5_000_000

    def turns() -> None:
        for _ in range(count):
            pass

    return count / seconds(turns) / 1e6


def reference() -> Any:
    """HTCondor's library with HTCondor's semantics; None where it is not installed."""
    os.environ.setdefault("CONDOR_CONFIG", "ONLY_ENV")
    try:
        importlib.import_module("htcondor2")
        return importlib.import_module("classad2")
    except ImportError:
        return None


def parsing(theirs: Any) -> dict[str, Any]:
    """
    A machine ad of 150 attributes; `cold` ones say what nobody said before, `warm` ones only what has been seen.
    """
    ads: list[Ad] = []
    for number, (_, ad) in enumerate(machines(40 * ROUNDS)):
        for index in range(150 - len(ad)):
            ad[f"Own{index:02d}"] = (
                Expr(f"TARGET.Want{index} >= {number} && Cpus > {index}")
                if index % 5 == 0
                else f"{number}.{index}"
            )
        ads.append(ad)
    return {
        "long": _reading([long_form(ad) for ad in ads], read_long, theirs and theirs.parseOne),
        "new": _reading([new_syntax(ad) for ad in ads], ClassAd.parse, theirs and theirs.ClassAd),
    }


def _reading(
    texts: list[str], ours: Callable[[str], object], theirs: Callable[[str], object] | None
) -> dict[str, Any]:
    def cold(part: list[str]) -> float:
        return seconds(lambda: [ours(text) for text in part]) / len(part) * 1e6

    report = {
        "cold_us": summary((cold(texts[number::ROUNDS]) for number in range(ROUNDS)), 1),
        "warm_us": microseconds(lambda: ours(texts[0]), 200),
    }
    if theirs is not None:
        report["classad2_us"] = microseconds(lambda: theirs(texts[0]), 200)
    return report


def matching(theirs: Any) -> dict[str, Any]:
    """One job against one slot."""
    machine = next(machines(1, start=START))[1]
    job = next(jobs(1))
    ours = ClassAd.from_wire(job), ClassAd.from_wire(machine)
    assert matches(*ours)
    report = {
        "requirements_us": microseconds(lambda: evaluate_attribute("Requirements", *ours), 5000),
        "two_way_us": microseconds(lambda: matches(*ours), 5000),
    }
    if theirs is not None:
        left, right = (theirs.ClassAd(new_syntax(ad)) for ad in (job, machine))
        assert left.symmetricMatch(right)
        report["classad2_two_way_us"] = microseconds(lambda: left.symmetricMatch(right), 5000)
        report["classad2_one_way_us"] = microseconds(lambda: left.matches(right), 5000)
    return report


def columns(slots: int, autoclusters: int) -> dict[str, Any]:
    """Requirements of each autocluster in every slot, and Rank in those that are left."""
    table = Table()
    table.put_many(machines(slots))
    wanting = [ClassAd.from_wire(ad) for ad in jobs(autoclusters)]

    def work() -> None:
        for job in wanting:
            rows = np.flatnonzero(Evaluator(table, my=job).holds("requirements"))
            Evaluator(table, my=job, rows=rows).numbers("rank")

    work()
    pairs = slots * autoclusters
    return {
        "slots": slots,
        "autoclusters": autoclusters,
        "million_pairs_per_second": summary((pairs / seconds(work) / 1e6 for _ in range(ROUNDS)), 1),
    }


def sharing(slots: int, users: int, each: int, total: int, rounds: int) -> dict[str, Any]:
    """Decisions of one cycle: who gets how much of which slot."""
    table = Table()
    table.put_many(machines(slots))
    demands = [
        Demand(
            submitter=f"user{number % users}",
            schedd="ap",
            autocluster=number,
            count=total // (users * each),
            job=ClassAd.from_wire(ad),
        )
        for number, ad in enumerate(jobs(users * each))
    ]
    everything = np.arange(slots)

    def work() -> None:
        allocation = allocate(Offer(table, everything), demands)
        assert sum(grant.count for grant in allocation.grants) == total

    unmatched = ClassAd.from_wire(
        {**next(jobs(1)), "Requirements": Expr("TARGET.Speed > 7 && TARGET.Cpus > 1")}
    )
    explainer = Explainer(table, everything)
    return {
        "jobs": total,
        "slots": slots,
        "autoclusters": users * each,
        "allocate_ms": summary((seconds(work) * 1e3 for _ in range(rounds)), 1),
        "explain_one_ms": summary(
            (seconds(lambda: explainer.explain(unmatched)) * 1e3 for _ in range(rounds)), 2
        ),
    }


def resident_mib() -> float:
    """The memory of this process now."""
    with open("/proc/self/statm", encoding="ascii") as statm:  # noqa: PTH123 - one line of a kernel file
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def memory(slots: int) -> dict[str, Any]:
    """What a table of machine ads takes, and how long it takes to fill and to change."""
    gc.collect()
    before = resident_mib()
    table = Table()
    began = time.process_time()
    ads = machines(slots)
    for _ in range(0, slots, 1000):
        table.put_many([next(ads) for _ in range(1000)])
    filling = time.process_time() - began
    gc.collect()
    key, ad = next(machines(1))

    def change() -> None:
        ad["LoadAvg"] = time.process_time()
        table.put(key, ad)

    return {
        "slots": slots,
        "attributes": len(ad),
        "table_mib": round(resident_mib() - before, 1),
        "generate_and_put_us_per_ad": round(filling / slots * 1e6, 1),
        "put_changed_ad_us": microseconds(change, 2000),
    }


def main() -> int:
    """Measure and print."""
    theirs = reference()
    parse("1 + 1")
    report = {
        "loop_turns_per_us": summary((loop_turns() for _ in range(5)), 1),
        "memory": memory(100_000),
        "parse_150_attributes": parsing(theirs),
        "match": matching(theirs),
        "columnar": columns(10_000, 100),
        "allocate": [sharing(10_000, 50, 4, 100_000, ROUNDS), sharing(100_000, 200, 5, 1_000_000, 3)],
        "loop_turns_per_us_after": summary((loop_turns() for _ in range(5)), 1),
    }
    print(json.dumps(report, indent=2))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
