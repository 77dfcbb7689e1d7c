"""
How many machines of which offers hold so many jobs, at the least cost.

A machine is filled with what suits what is left of it best, of all resources together (a heuristic for vector bin packing: the
job whose needs point in the direction of what is left); machines that are filled alike are counted and never looked at singly.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

import msgspec
import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    Reals: TypeAlias = npt.NDArray[np.float64]
    Integers: TypeAlias = npt.NDArray[np.int64]
    Booleans: TypeAlias = npt.NDArray[np.bool_]

_EXACTLY: Final = 1e-9


class Packed(msgspec.Struct, frozen=True):
    """So many machines of an offer, each with the same jobs."""

    offer: int
    machines: int
    jobs: tuple[tuple[int, int], ...]
    """Groups, and how many jobs of each are on one machine."""


class Budget(Protocol):
    """How many machines there may be."""

    def room(self, offer: int) -> int:
        """So many more of an offer."""
        ...

    def take(self, offer: int, machines: int) -> None:
        """So many of them are used up."""
        ...


class Unlimited:
    """There may be as many as are wanted."""

    def room(self, offer: int) -> int:
        """As many as are wanted."""
        del offer
        return 1_000_000

    def take(self, offer: int, machines: int) -> None:
        """Nothing is used up."""
        del offer, machines


class Packing:
    """
    Jobs by group, offers by number.

    `need` has what a job of a group takes of a machine of an offer (groups, offers, resources), `capacity` what that has
    (offers, resources), `usable` which suit, `cost` what a machine costs if it is used for a group (groups, offers).
    """

    def __init__(self, need: Reals, capacity: Reals, usable: Booleans, cost: Reals) -> None:
        self._need = need
        self._capacity = capacity
        self._cost = cost
        with np.errstate(divide="ignore", invalid="ignore"):
            parts = np.where(need > 0, need / capacity[np.newaxis], 0.0)
        self._parts: Reals = np.where(np.isfinite(parts), parts, np.inf)
        """What part of the machine a job takes of each resource."""
        share = self._parts.max(axis=2, initial=0.0)
        self._usable = usable & (share <= 1 + _EXACTLY)
        alone = np.where(self._usable, cost * np.maximum(share, _EXACTLY), np.inf)
        self._worth = alone.min(axis=1, initial=np.inf)
        """What a job costs where it is cheapest."""

    def shared(self, counts: Integers, budget: Budget) -> tuple[list[Packed], Integers]:
        """
        Fill machines until all jobs have a place, or there may be no more; also how many jobs are left of each group.
        """
        left, packed = counts.copy(), list[Packed]()
        left_out = ~self._usable.any(axis=1)
        while True:
            open_ = (left > 0) & ~left_out
            if not open_.any():
                return packed, left
            rooms = np.array([budget.room(offer) for offer in range(len(self._capacity))])
            patterns, ratios = self._patterns(left * open_, rooms > 0)
            if not np.isfinite(ratios).any():
                return packed, left
            offer = int(np.argmin(ratios))
            pattern = patterns[offer]
            used = np.flatnonzero(pattern)
            times = int(min((left[used] // pattern[used]).min(), rooms[offer]))
            budget.take(offer, times)
            left -= pattern * times
            jobs = tuple((int(group), int(pattern[group])) for group in used)
            packed.append(Packed(offer, times, jobs))

    def _patterns(self, left: Integers, offered: Booleans) -> tuple[Integers, Reals]:
        """For each offer how one of its machines is filled best, and what that costs for what it is worth."""
        groups = np.flatnonzero(left)
        parts, usable = self._parts[groups], self._usable[groups] & offered
        weight = self._weights(parts, usable, left[groups])
        free = np.ones((len(self._capacity), parts.shape[2]))
        filled = np.zeros((len(groups), len(self._capacity)), np.int64)
        rest = np.broadcast_to(left[groups][:, np.newaxis], filled.shape).copy()
        with np.errstate(divide="ignore", invalid="ignore"):
            while True:
                fits = np.where(parts > 0, (free + _EXACTLY) / parts, np.inf).min(axis=2)
                fits = np.where(usable, np.minimum(np.floor(fits), rest), 0.0)
                if not (fits >= 1).any():
                    break
                along = np.where(fits >= 1, (parts * (free * weight)).sum(axis=2), -1.0)
                best = along.argmax(axis=0)
                offers = np.flatnonzero(along.max(axis=0) >= 0)
                chosen = best[offers]
                taken = np.maximum(1, fits[chosen, offers] // 2).astype(np.int64)
                filled[chosen, offers] += taken
                rest[chosen, offers] -= taken
                free[offers] -= parts[chosen, offers] * taken[:, np.newaxis]
        worth = (filled * self._worth[groups][:, np.newaxis]).sum(axis=0)
        costs = np.where(filled > 0, self._cost[groups] * filled, 0.0).sum(axis=0) / np.maximum(
            filled.sum(axis=0), 1
        )
        ratios = np.where(worth > 0, costs / np.maximum(worth, _EXACTLY**2), np.inf)
        patterns = np.zeros((len(self._capacity), len(left)), np.int64)
        patterns[:, groups] = filled.T
        return patterns, ratios

    @staticmethod
    def _weights(parts: Reals, usable: Booleans, left: Integers) -> Reals:
        """How scarce each resource is on the machines of each offer, by everything that could go there."""
        wanted = np.where(usable[..., np.newaxis], parts, 0.0) * left[:, np.newaxis, np.newaxis]
        total = wanted.sum(axis=0)
        most = total.max(axis=1, keepdims=True)
        return np.where(most > 0, total / np.maximum(most, _EXACTLY), 0.0)

    def add(self, packed: list[Packed], group: int, count: int, budget: Budget) -> int:
        """
        Give jobs of one group a place on machines that are planned already, and on more; how many are left.

        So those who come first have the machines, when there is not room for all, and the others what these leave.
        """
        left = np.zeros(len(self._worth), np.int64)
        left[group] = count - self._fill(packed, group, count)
        more, rest = self.shared(left, budget)
        packed += more
        return int(rest[group])

    def _fill(self, packed: list[Packed], group: int, count: int) -> int:
        """Put jobs into what is left of machines that others are planned for; how many found a place."""
        placed = 0
        for index, one in enumerate(list(packed)):
            fits = self._fits(group, one)
            if fits < 1 or placed >= count:
                continue
            full = min(one.machines, (count - placed) // fits)
            partly = count - placed - full * fits if full < one.machines else 0
            pieces = [
                Packed(one.offer, machines, (*one.jobs, (group, jobs)) if jobs else one.jobs)
                for machines, jobs in (
                    (full, fits),
                    (int(partly > 0), partly),
                    (one.machines - full - int(partly > 0), 0),
                )
                if machines
            ]
            placed += full * fits + partly
            packed[index] = pieces[0]
            packed += pieces[1:]
        return placed

    def _fits(self, group: int, one: Packed) -> int:
        """How many jobs of a group have room on a machine besides those that it is for."""
        if not self._usable[group, one.offer]:
            return 0
        used: Reals = np.sum([self._parts[other, one.offer] * jobs for other, jobs in one.jobs], axis=0)
        free: Reals = 1.0 - used
        part = self._parts[group, one.offer]
        return int(np.floor((free[part > 0] + _EXACTLY) / part[part > 0]).min(initial=1e6))

    def dedicated(self, group: int, count: int, budget: Budget) -> tuple[list[Packed], int]:
        """One machine for each job, of the offers that cost least; and for how many there was no room."""
        return self.gangs(group, count, 1, budget)

    def gangs(self, group: int, jobs: int, nodes: int, budget: Budget) -> tuple[list[Packed], int]:
        """
        A machine for each node of jobs that need several: all of one offer, or none; and how many jobs are left.
        """
        packed: list[Packed] = []
        for offer in self._by_cost(group):
            whole = min(jobs, budget.room(offer) // nodes)
            if whole > 0:
                budget.take(offer, whole * nodes)
                packed.append(Packed(offer, whole * nodes, ((group, 1),)))
                jobs -= whole
        return packed, jobs

    def _by_cost(self, group: int) -> list[int]:
        costs = np.where(self._usable[group], self._cost[group], np.inf)
        order: list[int] = np.lexsort((np.arange(len(costs)), costs)).tolist()
        return [offer for offer in order if np.isfinite(costs[offer])]
