"""In which order slots are given: what the pool says first, the job's Rank, what the pool says then."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kettle.classad import ClassAd, Node, evaluate, parse, rank
from kettle.classad.columnar import Table
from kettle.matchmaking import Demand, Offer, Ranks, allocate
from kettle_wire.ads import Ad, Expr

SLOT: Ad = {
    "PartitionableSlot": True,
    "Cpus": 1,
    "Memory": 1024,
    "Disk": 10_000,
    "Requirements": Expr("true"),
}
BEFORE = (
    "",
    "MY.Old",
    "Old * 10",
    "TARGET.Wants * MY.Old",
    "MY.Rank",
    "Memory",
    "Nothing",
    "ifThenElse(Old > 1, 1, 0)",
)
AFTER = ("", "MY.Speed", "-SlotID", "Speed - TARGET.Wants", "isUndefined(KFlops)")
RANKS = (0.0, Expr("TARGET.Speed"), Expr("-TARGET.Old"), Expr("TARGET.Speed > 2"))


def ranks(before: str, after: str) -> Ranks:
    return Ranks(parse(before) if before else None, parse(after) if after else None)


def number(node: Node | None, slot: ClassAd, job: ClassAd) -> float:
    value = evaluate(node, slot, job) if node is not None else 0.0
    return float(value) if isinstance(value, int | float) else 0.0


def order(slots: list[Ad], jobs: list[Ad], by: Ranks) -> list[int]:
    """The rows that jobs of one core each are given, one after the other."""
    table = Table()
    for row, ad in enumerate(slots):
        table.put(str(row), ad)
    demands = [
        Demand(submitter="ada", schedd="ap", autocluster=number, count=1, job=ClassAd.from_wire(job))
        for number, job in enumerate(jobs)
    ]
    grants = allocate(Offer(table, table.all_rows), demands, ranks=by).grants
    return [grant.row for grant in sorted(grants, key=lambda grant: grant.demand.autocluster)]


def slot(old: int, speed: int, *, liking: bool, number: int) -> Ad:
    """A slot that may rank jobs itself."""
    rank: Ad = {"Rank": Expr("TARGET.Wants")} if liking else {}
    return {**SLOT, "Old": old, "Speed": speed, "SlotID": number, **rank}


slots = st.builds(slot, st.integers(0, 3), st.integers(0, 3), liking=st.booleans(), number=st.integers(1, 3))


@given(
    ads=st.lists(slots, min_size=1, max_size=6),
    wants=st.lists(st.tuples(st.integers(0, 2), st.sampled_from(RANKS)), min_size=1, max_size=4),
    before=st.sampled_from(BEFORE),
    after=st.sampled_from(AFTER),
)
def test_slots_come_in_the_order_of_three_ranks(
    ads: list[Ad], wants: list[tuple[int, float | Expr]], before: str, after: str
) -> None:
    """
    The pool's rank before, the job's, the pool's after, then the order of the slots: as one pair after the other says it.
    """
    by = ranks(before, after)
    jobs: list[Ad] = [{"RequestCpus": 1, "RequestMemory": 128, "RequestDisk": 1024, "Requirements": Expr("true"),
                       "Wants": wish, "Rank": liking} for wish, liking in wants]  # fmt: skip
    free = {row: ClassAd.from_wire(ad) for row, ad in enumerate(ads)}
    expected: list[int] = []
    for job in map(ClassAd.from_wire, jobs):
        if free:
            best = max(
                free,
                key=lambda row: (
                    number(by.before, free[row], job),
                    rank(job, free[row]),
                    number(by.after, free[row], job),
                    -row,
                ),
            )
            expected.append(best)
            del free[best]
    assert expected == order(ads, jobs, by)


@pytest.mark.parametrize(
    ("before", "rows"),
    [
        ("", [2, 1]),
        ("-100000 * Cpus", [0, 2]),
        ("(1000000 * (RemoteOwner =?= UNDEFINED)) - (100000 * Cpus) - Memory", [0, 2]),
    ],
)
def test_what_is_left_counts(before: str, rows: list[int]) -> None:
    """
    Jobs like fast slots; a pool that fills small ones first says so before them, and looks at what is left of each.
    """
    slots: list[Ad] = [{**SLOT, "Cpus": cpus, "Speed": speed} for cpus, speed in ((1, 1), (4, 2), (2, 3))]
    big: Ad = {
        "RequestCpus": 1,
        "RequestMemory": 1024,
        "RequestDisk": 1024,
        "Requirements": Expr("true"),
        "Rank": Expr("TARGET.Speed"),
    }
    assert rows == order(slots, [big, big], ranks(before, ""))
