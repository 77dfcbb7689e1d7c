"""
Fair shares: what each submitter may take of the pool, in slot weights.

A submitter's share is in inverse proportion to its effective priority, so a submitter with half of another's priority
gets twice as much. Its current use counts, on any slot.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, TypeAlias

import msgspec
import numpy as np

from kettle import fairshare

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import numpy.typing as npt

    Booleans: TypeAlias = npt.NDArray[np.bool_]
    Reals: TypeAlias = npt.NDArray[np.float64]

FRESH: Final = 500.0
"""The effective priority of somebody new: 0.5 times 1000."""
_EXACTLY: Final = 1e-9
"""Shares are quotients: a limit of 2.9999999999 is worth three cores."""


class Claimant(msgspec.Struct, frozen=True, kw_only=True):
    """A submitter: its effective priority (smaller is better), and the weight of all slots that it has."""

    name: str
    priority: float = FRESH
    used: float = 0.0
    last: float = 0.0
    """
    When it was last given a slot; the one that has waited longer comes first where nothing else decides.
    """
    floor: float = 0.0
    """Served before anybody else is, until it has this."""
    ceiling: float = math.inf
    """It never has more."""


def shares(claimants: Sequence[Claimant]) -> dict[str, float]:
    """The part of the pie that each should have; they sum to 1."""
    return fairshare.shares({one.name: one.priority for one in claimants})


def limits(claimants: Sequence[Claimant], used: Mapping[str, float], pie: float) -> dict[str, float]:
    """
    What each submitter may take in a spin if it already uses `used`: max(0, share_i*pie - used_i).

    `pie` is the weight of all slots of the pool, used or not.
    """
    return {name: max(0.0, share * pie - used[name]) for name, share in shares(claimants).items()}


def ordered(
    claimants: Iterable[Claimant], used: Mapping[str, float], limit: Mapping[str, float]
) -> list[str]:
    """
    The order of service: the smallest priority first, then the smallest part of the share, then the longest time since
    a slot was given, then by name.

    Real priorities do not fall below a minimum, so many may be equal: by name alone, two submitters that take turns
    would block all others permanently.
    """

    def need(one: Claimant) -> tuple[float, float, float, str]:
        has = used[one.name]
        whole = has + limit[one.name]
        return one.priority, has / whole if whole > 0 else 0.0, one.last, one.name

    return [one.name for one in sorted(claimants, key=need)]


class Purse:
    """
    What one submitter may take in one spin.

    `limit` may be exceeded by one job if nothing was taken yet, which HTCondor calls rounding up a crumb. `headroom`,
    up to the ceiling, may not.
    """

    def __init__(self, limit: float, headroom: float = math.inf) -> None:
        self._limit = limit
        self._headroom = headroom
        self.spent = 0.0
        self.capped = False
        """A job that was not taken since somebody last set it to false would have exceeded the ceiling."""

    @property
    def _room(self) -> float:
        return min(self._limit, self._headroom) - self.spent

    def affords(self, costs: Reals) -> Booleans:
        """Which of these weights one job may have."""
        if self._limit <= 0 or self._headroom < 0:
            return np.zeros(len(costs), np.bool_)
        most = self._room
        if not self.spent:
            most = max(most, self._headroom)
        return (costs <= 0) | (costs * (1 - _EXACTLY) <= most)

    def fits(self, costs: Reals) -> int:
        """How many of these sums of weights, rising, are within what is left."""
        return int(np.searchsorted(costs, self._room, side="right"))

    def refuse(self, costs: Reals) -> None:
        """One job of each of these weights was not taken."""
        self.capped |= bool((costs > self._headroom - self.spent + _EXACTLY).any())

    def jobs(self, cost: float, most: int) -> int:
        """How many of `most` jobs of this weight may be taken."""
        if self._limit <= 0 or self._headroom < 0:
            return 0
        room = self._room
        if cost <= 0:
            return most
        count = math.floor(min(room / cost, most) + _EXACTLY)
        if count < 1 and not self.spent and cost <= self._headroom + _EXACTLY:
            count = 1
        count = max(0, min(count, most))
        self.capped |= count < most and cost * (count + 1) > self._headroom - self.spent + _EXACTLY
        return count

    def pay(self, cost: float) -> None:
        """Jobs were taken that weigh this together."""
        self.spent += cost
