"""
Which slots are free and what submitters use, as the slots' ads say it: kept slot by slot, so that a cycle adds up nothing.

In a pool of a million slots few ads change between two cycles, and only these are looked at.
"""

from __future__ import annotations

import math
from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import msgspec
import numpy as np

from kettle.matchmaking import weight_of
from kettle.matchmaking.ad_limits import LONGEST_NAME
from kettle_services.negotiator.domain.accountant import Use

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Container, Mapping

    import numpy.typing as npt

    from kettle.classad.columnar import Table

_IN_USE: Final = frozenset({"Claimed", "Preempting"})
_FREE: Final = frozenset({"Unclaimed", "Backfill"})
WHOSE: Final = ("AccountingGroup", "RemoteUser")
"""Where a slot says whose it is; the first that it has."""


class SlotState(msgspec.Struct, frozen=True):
    """What counts of a slot; equal ones are one object."""

    state: str
    user: str
    """Empty: nobody has it, or it does not say who."""
    weight: float


class SlotStates:
    """
    Sums over the slots of a table; `note` is told of each slot whose ad or secret came, changed or went.

    `known` are the slots that can be matched at all, because they have a secret.
    Weights are counted, not added, so that no sum depends on the order in which slots came and went.
    """

    def __init__(self, table: Table, known: Container[str]) -> None:
        self._table, self._known = table, known
        self.counted: Final[dict[str, SlotState]] = {}
        """Slots that are not in the table, and count all the same."""
        self._noted: set[str] = set()
        self._states: dict[str, SlotState] = {}
        self._same: dict[SlotState, SlotState] = {}
        self._free: set[str] = set()
        self._claimed: set[str] = set()
        self._weights: Counter[float] = Counter()
        self._used: dict[str, Counter[float]] = {}
        self._usage: Mapping[str, Use] | None = None

    def note(self, slot: str) -> None:
        """Something is different about a slot."""
        self._noted.add(slot)

    def count(self, slot: str, value: Callable[[str], Any] | None) -> None:
        """
        A slot that is not in the table counts from now on, by the values of its attributes; None: no more.
        """
        if value is None:
            self.counted.pop(slot, None)
        else:
            self.counted[slot] = _state_by(value)
        self._noted.add(slot)

    def usage(self) -> Mapping[str, Use]:
        """What each submitter has of the slots, by name."""
        self._settle()
        if self._usage is None:
            self._usage = {
                name: Use(float(counts.total()), _sum(counts)) for name, counts in sorted(self._used.items())
            }
        return self._usage

    def slots_of(self, submitter: str) -> int:
        """How many slots one submitter has."""
        self._settle()
        return self._used[submitter].total() if submitter in self._used else 0

    @property
    def weight(self) -> float:
        """What all slots count for, used or not."""
        self._settle()
        return _sum(self._weights)

    def free(self) -> npt.NDArray[np.int64]:
        """The rows of slots that can be matched and that nobody has claimed, rising."""
        self._settle()
        return self._rows(self._free)

    def claimed(self) -> npt.NDArray[np.int64]:
        """The rows of slots that can be matched although somebody has claimed them, rising."""
        self._settle()
        return self._rows(self._claimed)

    def _rows(self, slots: Collection[str]) -> npt.NDArray[np.int64]:
        rows = np.fromiter(map(self._table.row, slots), np.int64, len(slots))
        rows.sort()
        return rows

    def _settle(self) -> None:
        if not self._noted:
            return
        for slot in self._noted:
            self._forget(slot)
            if slot in self._table:
                self._count(slot, _state_by(partial(self._table.value, self._table.row(slot))))
            elif slot in self.counted:
                self._count(slot, self.counted[slot])
        self._noted.clear()
        self._usage = None

    def _forget(self, slot: str) -> None:
        before = self._states.pop(slot, None)
        if before is None:
            return
        self._free.discard(slot)
        self._claimed.discard(slot)
        _less(self._weights, before.weight)
        if before.user:
            used = self._used[before.user]
            _less(used, before.weight)
            if not used:
                del self._used[before.user]

    def _count(self, slot: str, found: SlotState) -> None:
        if len(self._same) > 2 * len(self._states) + 1000:
            self._same = {state: state for state in self._states.values()}
        found = self._states[slot] = self._same.setdefault(found, found)
        self._weights[found.weight] += 1
        if found.user:
            self._used.setdefault(found.user, Counter())[found.weight] += 1
        if slot in self._known:
            if found.state in _FREE:
                self._free.add(slot)
            elif found.state == "Claimed":
                self._claimed.add(slot)


def _state_by(value: Callable[[str], Any]) -> SlotState:
    """By what the ad says literally: an expression in it could make every cycle slow."""
    said = value("State")
    state = said if isinstance(said, str) else ""
    weight = weight_of(value("SlotWeight"), value("Cpus"))
    if state not in _IN_USE:
        return SlotState(state if state in _FREE else "", "", weight)
    return SlotState(state, user_of(value), weight)


def user_of(value: Callable[[str], object]) -> str:
    """Who has a slot, by the values of its attributes; empty: nobody, or it does not say who."""
    if value("State") not in _IN_USE:
        return ""
    user = next((name for each in WHOSE if isinstance(name := value(each), str)), "")
    return user if len(user) <= LONGEST_NAME else ""


def _less(counts: Counter[float], weight: float) -> None:
    counts[weight] -= 1
    if not counts[weight]:
        del counts[weight]


def _sum(counts: Counter[float]) -> float:
    return math.fsum(weight * count for weight, count in counts.items())
