"""
Matchmaking one slot and one job at a time, as the obvious thing to compare with; and the pools to do it in.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING, Final

from hypothesis import strategies as st

from kettle.classad import (
    UNDEFINED,
    ClassAd,
    EvaluationFailed,
    Node,
    conjuncts,
    evaluate,
    evaluate_attribute,
    is_true,
    matches,
    rank,
    unparse,
)
from kettle.matchmaking import Claimant, Demand
from kettle_wire.ads import Ad, Expr, Scalar

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

RESOURCES: Final = ("Cpus", "Memory", "Disk")
QUANTA: Final = {"Cpus": 1, "Memory": 128, "Disk": 1024}
MANY: Final = 50
"""So often at most it is asked whether another job fits."""
DEFAULTS: Final = {"Cpus": 1.0, "Memory": 128.0, "Disk": 1024.0}


class Slot:
    """A slot's ad, and what is left of it."""

    def __init__(self, row: int, ad: Ad) -> None:
        self.row = row
        self._ad = ClassAd.from_wire(ad)
        self.partitionable = ad.get("PartitionableSlot") is True
        self.free = {name: whole(ad.get(name)) for name in RESOURCES}
        weight = ad.get("SlotWeight", ad.get("Cpus"))
        self._whole = float(self.free["Cpus"])
        if isinstance(weight, int | float) and not isinstance(weight, bool):
            self._whole = float(weight)
        self._per_core = self._whole / max(1, self.free["Cpus"])
        self.totals = {name: whole(ad.get(f"TotalSlot{name}", ad.get(name))) for name in RESOURCES}

    @property
    def least(self) -> float:
        """The smallest piece that it can be taken in."""
        return self._per_core if self.partitionable else self._whole

    def weight(self, cores: float) -> float:
        """What so many cores of it count for; if it is not partitionable, all of it."""
        return self._per_core * cores if self.partitionable else self._whole * (self.free["Cpus"] > 0)

    @property
    def now(self) -> ClassAd:
        """The ad with what is left."""
        return self._with(self.free)

    @property
    def idle(self) -> ClassAd:
        """The ad as if nothing ran there."""
        return self._with(self.totals)

    def _with(self, amounts: dict[str, int]) -> ClassAd:
        ad = self._ad.copy()
        for name, amount in amounts.items():
            ad[name] = amount
        return ad

    def room(self, asked: dict[str, float] | None) -> int:
        """How many jobs fit: as often as the rounded amounts do, or else one that fits exactly as it asks."""
        if asked is None:
            return 0
        if not self.partitionable:
            return int(self.free["Cpus"] > 0)
        return min(_times(self.free[name], rounded(name, amount), amount) for name, amount in asked.items())

    def too_small(self, asked: dict[str, float]) -> set[str]:
        """Of what there is not enough even if nothing runs there."""
        small = {name for name, amount in asked.items() if self.partitionable and amount > self.totals[name]}
        return small if self.totals["Cpus"] else small | {"Cpus"}

    def take(self, asked: dict[str, float]) -> None:
        """One job more."""
        for name in RESOURCES:
            left = self.free[name] - rounded(name, asked[name]) if self.partitionable else 0
            self.free[name] = max(0, left)


def _times(free: int, amount: int, asked: float) -> int:
    if not amount:
        return MANY
    jobs = 0
    while jobs < MANY and amount * (jobs + 1) <= free:
        jobs += 1
    return jobs or int(asked <= free)


def whole(value: Scalar | None) -> int:
    """A literal number as an amount; nothing for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return 0
    return int(value) if math.isfinite(value) and 0 <= value < 2**53 else 0


def rounded(name: str, amount: float) -> int:
    """The next multiple of the quantum."""
    return math.ceil(amount / QUANTA[name]) * QUANTA[name]


def asked_of(job: ClassAd, slot: ClassAd) -> dict[str, float] | None:
    """What a job asks of a slot; None if that is no amount."""
    asked: dict[str, float] = {}
    for name in RESOURCES:
        try:
            value = evaluate_attribute(f"Request{name}", job, slot)
        except EvaluationFailed:
            return None
        if value is UNDEFINED:
            asked[name] = DEFAULTS[name]
        elif isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 2**53:
            return None
        else:
            asked[name] = float(value)
    return asked


def faulty(job: ClassAd) -> bool:
    """Whether a request is a literal that is no amount, for any slot."""
    requests = {name: job.find(f"request{name.lower()}") for name in RESOURCES}
    literals = {f"Request{name}": stored for name, stored in requests.items() if not isinstance(stored, Node)}
    return (
        asked_of(
            ClassAd({name: stored for name, stored in literals.items() if stored is not None}), ClassAd()
        )
        is None
    )


class Sharing:
    """The pie by the book: spins, and rounds of them, one slot and one job at a time."""

    def __init__(
        self, slots: Sequence[Slot], demands: Iterable[Demand], claimants: Sequence[Claimant]
    ) -> None:
        self.given: Counter[tuple[int, int]] = Counter()
        self.offered = [slot for slot in slots if slot.free["Cpus"] > 0]
        self.queues: dict[str, list[Demand]] = {}
        for demand in demands:
            self.queues.setdefault(demand.submitter, []).append(demand)
        self.left = {
            id(demand): 0 if faulty(demand.job) else demand.count
            for queue in self.queues.values()
            for demand in queue
        }
        self.claimants = {name: Claimant(name=name) for name in self.queues} | {c.name: c for c in claimants}
        self.used = {name: one.used for name, one in self.claimants.items()}
        self.smallest = min((slot.least for slot in self.offered), default=math.inf)
        self.pie = self.free + sum(self.used.values())

    @property
    def free(self) -> float:
        return sum(slot.weight(slot.free["Cpus"]) for slot in self.offered)

    def limits(self, names: Iterable[str]) -> dict[str, float]:
        parts = {name: 1 / self.claimants[name].priority for name in names}
        whole = sum(parts.values())
        return {n: max(0.0, part / whole * self.pie - self.used[n]) for n, part in parts.items()}

    def run(self) -> None:
        names = set(self.claimants)
        below = {n for n in names if self.used[n] < self.claimants[n].floor}
        if below:
            order = sorted(below, key=lambda n: (self.used[n] - self.claimants[n].floor, n))
            floors = {n: min(self.claimants[n].floor, limit) for n, limit in self.limits(names).items()}
            self.spin(names, order, floors, first=True)
        while names and self.round(names):
            pass

    def round(self, names: set[str]) -> bool:
        limit, progress, first = self.limits(names), False, True

        def place(name: str) -> tuple[float, float, float, str]:
            has, one = self.used[name], self.claimants[name]
            return one.priority, has and has / (has + limit[name]), one.last, name

        order = sorted(names, key=place)
        while names and any(slot.free["Cpus"] for slot in self.offered):
            before = len(names)
            given = self.spin(names, order, self.limits(names), first=first)
            progress, first = progress or given, False
            if not given and len(names) == before:
                break
        return progress and any(slot.free["Cpus"] for slot in self.offered)

    def spin(self, names: set[str], order: Sequence[str], limit: dict[str, float], *, first: bool) -> bool:
        left, given = sum(limit.values()), 0
        for name in [name for name in order if name in names]:
            queue = [demand for demand in self.queues.get(name, []) if self.left[id(demand)]]
            headroom = self.claimants[name].ceiling - self.used[name]
            if not queue or headroom <= 0 or headroom < self.smallest:
                names.remove(name)
                continue
            if not first and min(limit[name], left) < self.smallest:
                continue
            self.limit, self.headroom, self.spent = min(limit[name], left), headroom, 0.0
            for demand in queue:
                given += self.serve(demand)
            self.used[name] += self.spent
            left -= self.spent
            above_its_ceiling = self.limit > 0 and not self.spent  # else the first would have been taken
            if above_its_ceiling or not any(self.left[id(demand)] for demand in queue):
                names.remove(name)
        return given > 0

    def allows(self, cost: float) -> bool:
        """Within the limit, or the first one; within the ceiling in any case."""
        if self.limit <= 0 or self.spent + cost > self.headroom + 1e-9:
            return False
        return not self.spent or not cost or self.spent + cost <= self.limit + 1e-9

    def serve(self, demand: Demand) -> int:
        """How many jobs a demand gets; if no slot is left for it, it is given up."""
        jobs, limited = 0, False
        for slot in sorted(self.offered, key=lambda slot: -rank(demand.job, slot.now)):
            asked = asked_of(demand.job, slot.now)
            room = slot.room(asked)
            if asked is None or not room or not matches(demand.job, slot.now):
                continue
            cost = slot.weight(rounded("Cpus", asked["Cpus"]))
            for _ in range(min(room, self.left[id(demand)])):
                if not self.allows(cost):
                    limited = True
                    break
                slot.take(asked)
                self.spent += cost
                self.left[id(demand)] -= 1
                self.given[demand.autocluster, slot.row] += 1
                jobs += 1
            if not self.left[id(demand)]:
                return jobs
        if not limited:
            self.left[id(demand)] = 0
        return jobs


def refusals(
    job: ClassAd, slots: Iterable[Slot], counts: Counter[tuple[str, str]], *, policies: bool = False
) -> int:
    """
    Count what refuses each slot in which way, as (side, text); how many slots could run the job.

    Requests that do not fit are counted, as "RequestCpus does not fit", where they are all that is in the way somewhere.
    """
    able, suits, small = 0, False, Counter[tuple[str, str]]()
    for slot in slots:
        idle = slot.idle
        asked = None if faulty(job) else asked_of(job, idle)
        lacks = set(RESOURCES) if asked is None else slot.too_small(asked)
        small.update(("job", f"Request{name} does not fit") for name in lacks)
        suits |= matches(job, idle)
        able += matches(job, idle) and not lacks
        for side, mine, other in (("job", job, idle), ("slot", idle, job)):
            stored = mine.find("requirements")
            if stored is None:
                counts[side, "Requirements (missing)"] += 1
            elif not isinstance(stored, Node):
                counts[side, unparse(stored)] += not is_true(stored)
            else:
                for clause in demands(mine) if policies and side == "slot" else conjuncts(stored):
                    counts[side, unparse(clause)] += not holds(clause, mine, other)
    if suits and not able:
        counts.update(small)
    return able


def demands(slot: ClassAd, name: str = "requirements", within: frozenset[str] = frozenset()) -> list[Node]:
    """
    The clauses of a slot's Requirements; in the place of one that is just START, or the like, those of that.
    """
    stored, found = slot.find(name), list[Node]()
    for clause in conjuncts(stored) if isinstance(stored, Node) else []:
        own = unparse(clause).lower().removeprefix("my.")
        inner = within | {name}
        if own not in inner and own != "withinresourcelimits" and isinstance(slot.find(own), Node):
            found += demands(slot, own, inner)
        else:
            found.append(clause)
    return found


def holds(clause: Node, my: ClassAd, target: ClassAd) -> bool:
    try:
        return is_true(evaluate(clause, my, target))
    except EvaluationFailed:
        return False


# -- pools ----------------------------------------------------------------------------------------------------------------

_OF_SLOTS: Final[list[Scalar | None]] = [
    True, True, True, 1, None, False, "true", Expr("TARGET.RequestCpus <= MY.Cpus"), Expr('TARGET.Owner == "ada"'),
    Expr("Start && Memory >= 100"), Expr("TARGET.RequestMemory < 1000 || Owner =?= undefined"), Expr("1 +"), Expr("random(0) > 1"),
]  # fmt: skip
_OF_JOBS: Final[list[Scalar | None]] = [
    True, True, True, False, None, 0.5, Expr("TARGET.Memory >= RequestMemory"), Expr('TARGET.Arch == "x" && TARGET.Cpus > 1'),
    Expr('stringListMember(TARGET.Arch, "x,y") && MY.Owner != "bob"'), Expr("TARGET.Nosuch > 1 || Speed > 1"), Expr("random(0) > 1"),
    Expr("TARGET.Cpus < 4 && TARGET.Start"),
]  # fmt: skip
_RANKS: Final[list[Scalar | None]] = [
    None, 1, Expr("TARGET.Speed"), Expr("TARGET.Speed"), Expr("-Speed"), Expr("TARGET.Memory"), Expr("Speed + (Bonus ?: 0)"), Expr('"x"'),
    Expr('TARGET.Arch == "y" ? 1 : real("NaN")'), Expr("Bonus * TARGET.Speed"),
]  # fmt: skip


def _ads(**values: st.SearchStrategy[Scalar | None]) -> st.SearchStrategy[Ad]:
    """Ads in which some attributes are missing."""
    return st.fixed_dictionaries(values).map(
        lambda ad: {name: value for name, value in ad.items() if value is not None}
    )


SLOTS: Final = _ads(
    Cpus=st.sampled_from([0, 1, 2, 3, 4, 8, 2.5, "8", None]),
    Memory=st.sampled_from([0, 100, 128, 200, 256, 1000, 4096]),
    Disk=st.sampled_from([1024, 5000, 100_000]),
    TotalSlotCpus=st.sampled_from([4, 8, 16, None]),
    TotalSlotMemory=st.sampled_from([1024, 8192, None]),
    PartitionableSlot=st.sampled_from([True, True, True, False, None]),
    SlotWeight=st.sampled_from([None, None, None, 1, 6, 2.5]),
    Arch=st.sampled_from(["x", "X", "y", None]),
    Speed=st.sampled_from([1, 2, 2.5, None, Expr("Cpus")]),
    Start=st.sampled_from([True, Expr("TARGET.RequestCpus < 3"), Expr("undefined")]),
    Requirements=st.sampled_from(_OF_SLOTS),
)
JOBS: Final = _ads(
    RequestCpus=st.sampled_from([1, 1, 2, 3, 0.5, None, Expr("TARGET.Cpus / 2 + 1"), Expr("1 + 1"), -1, "2"]),
    RequestMemory=st.sampled_from([1, 100, 128, 129, 200.5, None, Expr("TARGET.Memory / 3"), Expr("TARGET.Nosuch")]),
    RequestDisk=st.sampled_from([1, 1024, 1025, 3000, None]),
    Owner=st.sampled_from(["ada", "bob", None]),
    Bonus=st.sampled_from([None, None, 1, 3]),
    Requirements=st.sampled_from(_OF_JOBS),
    Rank=st.sampled_from(_RANKS),
)  # fmt: skip
POOLS: Final = st.lists(SLOTS, max_size=7)


def demand_of(number: int, submitter: str, count: int, ad: Ad) -> Demand:
    """A demand whose autocluster is its number."""
    return Demand(
        submitter=submitter, schedd="ap", autocluster=number, count=count, job=ClassAd.from_wire(ad)
    )


DEMANDS: Final = st.lists(
    st.tuples(st.sampled_from(["ada", "bob", "eve"]), st.integers(1, 9), JOBS), min_size=1, max_size=5
).map(lambda listed: [demand_of(number, *one) for number, one in enumerate(listed)])

CLAIMANTS: Final = st.lists(
    st.builds(
        Claimant,
        name=st.sampled_from(["ada", "bob", "eve", "zoe"]),
        priority=st.sampled_from([0.5, 500.0, 500.0, 750.0, 1e10]),
        used=st.sampled_from([0.0, 0.0, 1.0, 2.5, 16.0]),
        last=st.sampled_from([0.0, 1.0]),
        floor=st.sampled_from([0.0, 0.0, 2.0, 5.0]),
        ceiling=st.sampled_from([math.inf, math.inf, 0.0, 4.0, 7.5]),
    ),
    unique_by=lambda one: one.name,
    max_size=4,
)
