"""Slots as matchmaking sees them: rows of a table, and how much of each partitionable one is left."""

from __future__ import annotations

import math
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

import msgspec
import numpy as np

from kettle.matchmaking.request import LIMIT, RESOURCES, Amounts, quantized

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    from kettle.classad import Node
    from kettle.classad.columnar import Table
    from kettle.classad.columnar.column import Column
    from kettle.classad.values import Stored

    Integers: TypeAlias = npt.NDArray[np.int64]
    Reals: TypeAlias = npt.NDArray[np.float64]

_N = TypeVar("_N", bound=np.generic)
_ROOMY = 2**31
_BEYOND: Final = 2**62
_WHOLE: Final = "totalslot"
_MOST_CORES: Final = 100_000.0
"""A slot that says it has more counts for nothing."""
_HEAVIEST: Final = 100.0
"""
No core counts for more: what one machine says of itself must not make everybody's share of the pool endless.
"""


class Tenants(msgspec.Struct, frozen=True):
    """The submitters that have the slots of a table, and the conditions on which others may have them."""

    requirements: Node
    """PREEMPTION_REQUIREMENTS, of the slot (MY) and the job (TARGET)."""
    rank: Node | None
    """PREEMPTION_RANK: which of them is to make room first, the largest number."""
    users: Integers
    """By row, the number of the submitter that has the slot."""
    numbers: dict[str, int]
    """The number of each submitter."""
    facts: dict[str, Column]
    """
    What is known of them besides what the slots say, by attributes in lower case: RemoteUserPrio, for example.
    """


class Offer:
    """
    The slots of a table that may be matched, and what is left of each while they are given away.

    `rows` are the numbers of the rows, rising; those without free cores are not offered.
    `free` has an entry for each row of the table, which means nothing where a row is not offered: cores, MiB, KiB; `custom` too, pieces
    by the resource's name in lower case, and more than anybody asks for where a slot knows nothing of the resource: then its startd
    does not count it.
    The table itself must not change while an offer of it is used.
    """

    def __init__(
        self,
        table: Table,
        rows: Integers,
        *,
        occupied: bool = False,
        tenants: Tenants | None = None,
        parts: tuple[Integers, Integers] | None = None,
        emptied: bool = False,
    ) -> None:
        """
        `occupied`: jobs run on all of them, and only a job that the slot's Rank prefers may replace it; with `tenants`
        also one of equal Rank, if the pool prefers its submitter. `parts`: rows of dynamic slots that are offered
        together with what is left of the slots that they are parts of, and for each the row of that. `emptied`: as if nothing ran
        on them.
        """
        self.table = table
        self.occupied = occupied
        self.tenants = tenants
        # Of a pool's slots few are free, mostly: the others are not looked at.
        some = rows if parts is None else np.union1d(rows, parts[0])

        def spread(values: npt.NDArray[_N]) -> npt.NDArray[_N]:
            everywhere = np.zeros(len(table), values.dtype)
            everywhere[some] = values
            return everywhere

        total = _WHOLE if emptied else ""
        self.free: dict[str, Integers] = {
            name: spread(_amounts(table, name, some, emptied=emptied)) for name in RESOURCES
        }
        self.custom: dict[str, Integers] = {
            name: spread(_pieces(table, f"{total}{name}", some)) for name in _resources(table)
        }
        self._kept: dict[str, Integers] = {}
        """What of each slot is kept for a job that is not being served now, by resource."""
        self.partitionable = spread(table.truths("PartitionableSlot", some))
        whole, cores = spread(weights(table, some)), self.free["Cpus"]
        if parts is not None:
            for amounts in (*self.free.values(), *self.custom.values(), whole):
                more = amounts[parts[0]]
                np.add.at(amounts, parts[1], np.where(more < _BEYOND, more, 0))
        self.rows = rows = rows[cores[rows] > 0]
        offered = np.where(self.partitionable[rows], whole[rows] / np.maximum(cores[rows], 1), whole[rows])
        self._weights: Reals = np.zeros(len(table))
        """What a core of a partitionable slot counts for, and the whole of any other."""
        self._weights[rows] = offered
        self._alike = bool(self.partitionable[self.rows].all()) and len(np.unique(offered)) <= 1
        self.smallest = float(offered.min(initial=math.inf))
        """The least that can be taken: a core of a partitionable slot, or a whole slot."""
        self._most = self._most_of(offered)
        self.exhausted = 0
        """How many slots have had their last core given away since."""
        self._least = -1, math.inf, math.inf

    @property
    def overlay(self) -> Mapping[str, Integers | Column]:
        """The values that replace the attributes of the ads."""
        free = {name.lower(): amounts for name, amounts in self.free.items()}
        return free if self.tenants is None else {**free, **self.tenants.facts}

    @property
    def weight(self) -> float:
        """What is left of the offer, in slot weights."""
        return float(self.costs(self.rows, self.free["Cpus"][self.rows]).sum())

    @property
    def any_left(self) -> bool:
        """Whether there is still a slot with a free core."""
        return bool(self.free["Cpus"][self.rows].any())

    def costs(self, rows: Integers, cores: Integers | Reals) -> Reals:
        """
        What so many cores of each of `rows` count for; of a slot that is not partitionable all of it is taken.
        """
        counted = np.where(self.partitionable[rows], cores, self.free["Cpus"][rows] > 0)
        return self._weights[rows] * counted

    def cost(self, cores: float) -> float | None:
        """What so many cores count for, if that is the same in all slots; None: it is not."""
        return float(self._weights[self.rows[0]]) * cores if self._alike and len(self.rows) else None

    def _most_of(self, offered: Reals) -> tuple[float, float, float]:
        """
        The largest weight of a core, of all of a partitionable slot, and of any other slot; of a core 1 if there are no slots.
        """
        divided = self.partitionable[self.rows]
        core, cores = offered[divided], self.free["Cpus"][self.rows[divided]]
        largest = float((core * cores).max(initial=0.0))
        whole = float(offered[~divided].max(initial=0.0))
        return float(core.max(initial=0.0)) if len(offered) else 1.0, largest, whole

    def most(self, cores: float | None) -> float:
        """
        What a job of so many cores counts for at most in any slot that was offered; None: as many as the slot says.

        One that counts for nothing anywhere is taken for one of 1: who wants nothing is not served.
        """
        core, largest, whole = self._most
        divided = (largest or core) if cores is None else core * cores
        return max(divided, whole) or 1.0

    def least(self, cores: float) -> float:
        """What so many cores count for where that is least of all slots that are left."""
        if self._least[0] != self.exhausted:
            left = self.rows[self.free["Cpus"][self.rows] > 0]
            divided, weights = self.partitionable[left], self._weights[left]
            core, whole = (
                float(some.min(initial=math.inf)) for some in (weights[divided], weights[~divided])
            )
            self._least = self.exhausted, core, whole
        _, core, whole = self._least
        return min(core * cores if cores else 0.0, whole)

    def room(
        self,
        rows: Integers,
        asked: Mapping[str, float | Reals],
        custom: Mapping[str, int] = MappingProxyType({}),
    ) -> Integers:
        """
        How many times the amounts fit into what is left of each of `rows`; never where one is not a number.
        """
        least: Integers | None = None
        for name in RESOURCES:
            amount, free = asked[name], self._left(name, self.free[name], rows)
            times = (
                _times(name, amount, free)
                if isinstance(amount, np.ndarray)
                else _same_times(name, amount, free)
            )
            least = times if least is None else np.minimum(least, times, out=least)
        assert least is not None, "there are resources"
        for name, count in custom.items():
            if name in self.custom:
                left = self._left(name, self.custom[name], rows)
                least = np.minimum(least, left // count, out=least)
        whole = self.partitionable[rows]
        if whole.all():
            return least
        known = np.full(len(rows), fill_value=True)
        for amount in asked.values():
            known &= ~np.isnan(amount)
        return np.where(whole, least, (self._left("Cpus", self.free["Cpus"], rows) > 0) & known)

    def keep(self, row: int, amounts: Amounts, count: int) -> None:
        """There is room for nobody in so much of a slot, until it is let go."""
        whole = not self.partitionable[row]
        pieces = {name: number * count for name, number in self._pieces_of(amounts)}
        parts = {name: int(amounts.quantized(name)) * count for name in RESOURCES} | pieces
        for name, part in parts.items():
            free = self.free.get(name, self.custom.get(name))
            assert free is not None, "it is a resource of the slot"
            kept = self._kept.setdefault(name, np.zeros_like(free))
            kept[row] = free[row] if whole else min(int(free[row]), int(kept[row]) + part)

    def let_go(self) -> None:
        """What was kept may be had again."""
        self._kept = {}

    def _left(self, name: str, free: Integers, rows: Integers) -> Integers:
        kept = self._kept.get(name)
        return free[rows] if kept is None else np.maximum(0, free[rows] - kept[rows])

    def take(self, row: int, amounts: Amounts, count: int) -> None:
        """
        Subtract these amounts from the slot, so many times; a slot that is not partitionable is used up completely.
        """
        before = self.free["Cpus"][row]
        for name in RESOURCES:
            left = 0
            if self.partitionable[row]:
                left = max(0, int(self.free[name][row]) - int(amounts.quantized(name)) * count)
            self.free[name][row] = left
        for name, pieces in self._pieces_of(amounts):
            self.custom[name][row] = max(0, int(self.custom[name][row]) - pieces * count)
        self.exhausted += bool(before > 0 and self.free["Cpus"][row] == 0)

    def take_each(self, rows: Integers, amounts: Amounts, counts: Integers) -> None:
        """Take from many slots at once, each once among `rows`."""
        before = self.free["Cpus"][rows]
        whole = self.partitionable[rows]
        for name in RESOURCES:
            left = np.maximum(0, self.free[name][rows] - int(amounts.quantized(name)) * counts)
            self.free[name][rows] = np.where(whole, left, 0)
        for name, pieces in self._pieces_of(amounts):
            self.custom[name][rows] = np.maximum(0, self.custom[name][rows] - pieces * counts)
        self.exhausted += int(np.count_nonzero((before > 0) & (self.free["Cpus"][rows] == 0)))

    def _pieces_of(self, amounts: Amounts) -> list[tuple[str, int]]:
        return [(name, count) for name, count in amounts.custom.items() if name in self.custom]


def weights(table: Table, rows: Integers | None = None) -> Reals:
    """
    What slots, all or some, count for: their SlotWeight, 100 a core at most, or their cores where that is no amount.
    """
    said, cores = table.numbers("SlotWeight", rows), table.numbers("Cpus", rows)
    with np.errstate(invalid="ignore"):
        cores = np.where((cores >= 0) & (cores <= _MOST_CORES), cores, 0.0)
        return np.where(said >= 0, np.minimum(said, _HEAVIEST * np.maximum(cores, 1.0)), cores)


def weight_of(said: Stored | None, cores: Stored | None) -> float:
    """What one slot counts for, by its SlotWeight and its Cpus."""
    counted = _number(cores)
    if not 0 <= counted <= _MOST_CORES:
        counted = 0.0
    weight = _number(said)
    return min(weight, _HEAVIEST * max(counted, 1.0)) if weight >= 0 else counted


def cost_of(said: Stored | None, cores: Stored | None, asked: float | None) -> float:
    """
    What so many cores of one partitionable slot count for, or with None any other slot, by its SlotWeight and its Cpus.
    """
    weight = weight_of(said, cores)
    return weight if asked is None else weight / max(1.0, _number(cores)) * asked  # 1.0 if that is no number


def _number(value: Stored | None) -> float:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else math.nan


def _resources(table: Table) -> list[str]:
    """Custom resources of which slots say how many pieces they have and how many are left, in lower case."""
    return [key for key in _totalled(table) if not key.startswith("available")]


def _totalled(table: Table) -> list[str]:
    """
    Attributes of slots, in lower case, for which slots also publish the total, as TotalSlot<name>; not the usual ones.
    """
    standard = {"s", *(name.lower() for name in RESOURCES)}  # TotalSlots is how many slots there are
    named = [key.removeprefix(_WHOLE) for key in table.columns if key.startswith(_WHOLE)]
    return [key for key in named if key not in standard and key in table.columns]


def _pieces(table: Table, name: str, rows: Integers) -> Integers:
    return np.where(table.present(name, rows), _whole(table.numbers(name, rows)), _BEYOND)


def whole_amounts(table: Table) -> Mapping[str, Integers]:
    """What stands in the place of each slot's amounts if nothing ran on it: what the machine could do."""
    return {name.lower(): _amounts(table, name, table.all_rows, emptied=True) for name in RESOURCES}


def _amounts(table: Table, name: str, rows: Integers, *, emptied: bool) -> Integers:
    """What slots have of one resource; `emptied`: what they would have if nothing ran on them."""
    now = table.numbers(name, rows)
    if not emptied:
        return _whole(now)
    total = table.numbers(f"{_WHOLE}{name}", rows)
    return _whole(np.where(np.isnan(total), now, total))


def unclaimed(table: Table) -> Mapping[str, Column]:
    """
    What else stands in the place of a slot's attributes if nothing ran on it: each `x` for which it says `TotalSlot<x>`.

    Numbers of custom resources, and with `TotalSlotAvailable<tag>` their devices.
    """
    return {key: table.with_instead(key, f"{_WHOLE}{key}") for key in _totalled(table)}


def _whole(amounts: Reals) -> Integers:
    """Amounts from ads; 0 for values that are not numbers."""
    with np.errstate(invalid="ignore"):
        return np.where((amounts >= 0) & (amounts < LIMIT), amounts, 0).astype(np.int64)


# One raw request may fit where the rounded one does not; a startd tries both.


def _same_times(name: str, asked: float, free: Integers) -> Integers:
    """How many times one amount fits into each of `free`."""
    units = int(quantized(name, asked))
    if not units:
        return np.full(len(free), _ROOMY)
    times = free // units
    return times if units == asked else np.maximum(times, free >= asked)


def _times(name: str, asked: Reals, free: Integers) -> Integers:
    """How many times each amount fits into its place in `free`; never one that is not a number."""
    known = ~np.isnan(asked)
    units = quantized(name, np.where(known, asked, 0.0)).astype(np.int64)
    times = np.where(units > 0, free // np.maximum(units, 1), _ROOMY)
    return np.where(known, np.maximum(times, free >= np.where(known, asked, 0.0)), 0)
