"""
What may be had of slots that others have: by their machines' RANK, and by the priority of submitters.

The first is for the machines' owners to say, so shares are no limit; for the second the pool's PREEMPTION_REQUIREMENTS has to
be true, the machine has to like the new job as much, and it has to be within its submitter's share and its group's quota.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import msgspec
import numpy as np

from kettle.classad import ClassAd, Context, Node, parse
from kettle.classad.columnar.column import Column, Tag
from kettle.matchmaking import (
    Allocation,
    Claimant,
    Concurrency,
    Offer,
    Policy,
    Ranks,
    Tenants,
    Unmet,
    allocate,
)
from kettle_services.negotiator.domain.pslot_preemption import PslotPreemption
from kettle_services.negotiator.domain.slot_states import WHOSE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

    from kettle_services.negotiator.domain.accountant import Standing
    from kettle_services.negotiator.domain.pool import Pool
    from kettle_wire.ads import Ad

RANK: Final = "(RemoteUserPrio * 1000000) - ifThenElse(isUndefined(TotalJobRunTime), 0, TotalJobRunTime)"
"""
PREEMPTION_RANK: slots of the submitter with the worst priority are preempted first, of these the job with the shortest
run.
"""

_NEVER: Final = parse("false")


class Preemption(msgspec.Struct, frozen=True):
    """The rules of preemption."""

    consider: bool = True
    """NEGOTIATOR_CONSIDER_PREEMPTION."""
    requirements: Node | None = None
    """PREEMPTION_REQUIREMENTS; None: nobody, for the sake of priorities."""
    rank: Node | None = parse(RANK)
    """PREEMPTION_RANK."""
    together: bool = False
    """ALLOW_PSLOT_PREEMPTION: several parts of one slot may make room for one job."""


USUAL: Final = Preemption()


class GroupFigures(msgspec.Struct, frozen=True, kw_only=True):
    """How an accounting group stands in a cycle, in slot weights."""

    name: str
    quota: float
    """For its own submitters, as it is in force in this pool."""
    used: float


class Preempting(msgspec.Struct, frozen=True, kw_only=True):
    """The rules and figures of one cycle."""

    rules: Preemption
    claimants: Sequence[Claimant]
    standings: Mapping[str, Standing]
    groups: Policy
    used: Mapping[str, float]
    concurrency: Concurrency
    ranks: Ranks
    context: Context

    def extend(self, pool: Pool, allocation: Allocation) -> Allocation:
        """
        An allocation with the slots that others have to make room on, for what found no free one.

        Nobody makes room for jobs that need several slots at the same time: a part of them would be of no use.
        """
        whole = [unmet for unmet in allocation.unmet if unmet.demand.is_whole]
        if not whole:
            return self._extend(pool, allocation)
        others = [unmet for unmet in allocation.unmet if not unmet.demand.is_whole]
        extended = self._extend(pool, msgspec.structs.replace(allocation, unmet=others))
        return msgspec.structs.replace(extended, unmet=[*extended.unmet, *whole])

    def _extend(self, pool: Pool, allocation: Allocation) -> Allocation:
        if not self.rules.consider or not any(unmet.fault is None for unmet in allocation.unmet):
            return allocation
        rows = pool.preemptible()
        if not len(rows):
            return allocation
        offer = Offer(pool.slots, rows, occupied=True)
        wanting = [unmet for unmet in allocation.unmet if unmet.fault is None]
        more = self._more(offer, wanting, self._by_now(allocation), pie=math.inf)
        allocation = self._together(pool, _joined(allocation, wanting, [more]), rows, pie=math.inf)
        if self.rules.requirements is None:
            return allocation
        return self._by_priority(pool, allocation, rows)

    def _by_priority(self, pool: Pool, allocation: Allocation, rows: npt.NDArray[np.int64]) -> Allocation:
        """
        First whatever is within a group's quota; then, where that is reached, what its own members may have of each other.
        """
        standings = self.figures_of_groups(allocation, pool.weight)
        held = self.tenants(pool, standings)
        rows = _others(rows[pool.slots.truths("UserPreemption")[rows]], allocation)
        offer = Offer(pool.slots, rows, occupied=True, tenants=held)
        wanting = [unmet for unmet in allocation.unmet if unmet.fault is None]
        claimants = self._by_now(allocation)
        more = self._more(
            offer,
            wanting,
            claimants,
            pie=pool.weight,
            standings=standings,
            groups=self.groups,
            used={**self.used, **{one.name: one.used for one in claimants}},
        )
        allocation = _joined(allocation, wanting, [more])
        if len(self.groups.tree) > 1:
            left = _others(rows, allocation)
            allocation = self._within_groups(pool, allocation, left, held, standings)
        return self._together(pool, allocation, rows, pie=pool.weight, held=held, standings=standings)

    def _together(
        self,
        pool: Pool,
        allocation: Allocation,
        rows: npt.NDArray[np.int64],
        *,
        pie: float,
        held: Tenants | None = None,
        standings: Sequence[GroupFigures] | None = None,
    ) -> Allocation:
        """Several parts of one slot for what found no single one that is large enough."""
        if not self.rules.together:
            return allocation
        gathering = PslotPreemption(pool, _others(rows, allocation), allocation, held, self.context)
        for unmet in [one for one in allocation.unmet if one.fault is None]:
            job = unmet.demand.job if standings is None else self.introduced(unmet, standings)
            offer = gathering.offer(job, unmet.demand.submitter)
            if offer is None:
                continue
            claimants = self._by_now(allocation)
            used = {**self.used, **{one.name: one.used for one in claimants}}
            more = self._more(
                offer,
                [unmet],
                claimants,
                pie=pie,
                standings=standings,
                groups=None if standings is None else self.groups,
                used=None if standings is None else used,
            )
            allocation = _joined(allocation, [unmet], [gathering.chosen(offer, more, unmet)])
        return allocation

    def _within_groups(
        self,
        pool: Pool,
        allocation: Allocation,
        rows: npt.NDArray[np.int64],
        held: Tenants,
        standings: Sequence[GroupFigures],
    ) -> Allocation:
        """
        What one of a group takes of another costs the group nothing, so it is possible although the quota is reached.
        """
        number_of = self.groups.tree.number_of
        wanting = [one for one in allocation.unmet if one.fault is None and one.limit == "quota"]
        unmet: dict[int, list[Unmet]] = {}
        for one in wanting:
            unmet.setdefault(number_of(one.demand.submitter), []).append(one)
        members: dict[int, list[Claimant]] = {}
        for claimant in self._by_now(allocation):
            members.setdefault(number_of(claimant.name), []).append(claimant)
        # Who is in use by a startd's word alone does not count in what the group uses. The last is of nobody, who is -1.
        groups = np.array([*(number_of(name) if name in self.used else -1 for name in held.numbers), -1])
        group_of_row = groups[held.users[rows]]
        asked: list[Unmet] = []
        more: list[Allocation] = []
        for number in sorted(unmet.keys() & set(group_of_row.tolist())):
            asked += unmet[number]
            here = rows[group_of_row == number]
            offer = Offer(pool.slots, here, occupied=True, tenants=held)
            pie = min(pool.weight, allocation.groups[number].allotted)
            more.append(
                self._more(offer, unmet[number], members.get(number, []), pie=pie, standings=standings)
            )
        return _joined(allocation, asked, more)

    def _by_now(self, allocation: Allocation) -> list[Claimant]:
        """All submitters, with what they were given."""
        return [
            msgspec.structs.replace(one, used=one.used + allocation.taken.get(one.name, 0.0))
            for one in self.claimants
        ]

    def _more(
        self,
        offer: Offer,
        wanting: Sequence[Unmet],
        claimants: Sequence[Claimant],
        *,
        pie: float,
        standings: Sequence[GroupFigures] | None = None,
        groups: Policy | None = None,
        used: Mapping[str, float] | None = None,
    ) -> Allocation:
        """
        What of an offer is for those who are `wanting`; with `standings` of groups if priorities decide.
        """
        demands = [
            msgspec.structs.replace(
                unmet.demand,
                count=unmet.count,
                job=unmet.demand.job if standings is None else self.introduced(unmet, standings),
            )
            for unmet in wanting
        ]
        return allocate(
            offer,
            demands,
            self.context,
            claimants=claimants,
            pie=pie,
            groups=groups,
            used=used,
            concurrency=self.concurrency,
            ranks=self.ranks,
        )

    def introduced(self, unmet: Unmet, standings: Sequence[GroupFigures]) -> ClassAd:
        """The job with what is known of its submitter."""
        name = unmet.demand.submitter
        group = standings[self.groups.tree.number_of(name)]
        known: Ad = {
            "SubmitterUserPrio": self._priority(name),
            "SubmitterUserResourcesInUse": self.used.get(name, 0.0),
            "SubmitterGroup": group.name,
            "SubmitterGroupQuota": group.quota,
            "SubmitterGroupResourcesInUse": group.used,
        }
        return ClassAd.from_wire({**unmet.demand.job.to_wire(), **known})

    def figures_of_groups(self, allocation: Allocation, pie: float) -> list[GroupFigures]:
        """
        All groups by number: the quotas that are in force in this pool now, and what their submitters have.
        """
        tree = self.groups.tree
        used = [0.0] * len(tree)
        for name, weight in self.used.items():
            used[tree.number_of(name)] += weight
        quotas = [share.quota for share in allocation.groups] or [pie]
        return [
            GroupFigures(name=group.name, quota=quota, used=use)
            for group, quota, use in zip(tree.groups, quotas, used, strict=True)
        ]

    def _priority(self, name: str) -> float:
        standing = self.standings.get(name)
        return standing.effective if standing is not None else math.nan

    def tenants(self, pool: Pool, standings: Sequence[GroupFigures]) -> Tenants:
        """
        The submitters that have the slots, and their priorities; without a rule no slot can be preempted.
        """
        users, names = users_of(pool)
        groups = [standings[self.groups.tree.number_of(name)] for name in names]
        known = [
            (self._priority(name), self.used.get(name, 0.0), self._floor(name), group.quota, group.used)
            for name, group in zip(names, groups, strict=True)
        ]
        figures = np.array([*known, (np.nan,) * 5], np.float64)[users]
        attributes = (
            "RemoteUserPrio",
            "RemoteUserResourcesInUse",
            "RemoteUserFloor",
            "RemoteGroupQuota",
            "RemoteGroupResourcesInUse",
        )
        facts = {
            attribute.lower(): Column.of_reals(attribute, np.ascontiguousarray(figures[:, place]))
            for place, attribute in enumerate(attributes)
        }
        numbers = {name: number for number, name in enumerate(names)}
        return Tenants(self.rules.requirements or _NEVER, self.rules.rank, users, numbers, facts)

    def _floor(self, name: str) -> float:
        standing = self.standings.get(name)
        return standing.principal.floor if standing is not None else 0.0


def _key(unmet: Unmet) -> tuple[str, int]:
    return unmet.demand.key, unmet.demand.autocluster


def _others(rows: npt.NDArray[np.int64], allocation: Allocation) -> npt.NDArray[np.int64]:
    """The rows of which nothing was given."""
    given = [row for grant in allocation.grants for row in (grant.row, *grant.instead)]
    return rows[~np.isin(rows, given)]


def _joined(allocation: Allocation, wanting: Sequence[Unmet], more: Sequence[Allocation]) -> Allocation:
    """An allocation, and more of it for those of its unmet demands who were `wanting`."""
    before = {_key(one): one for one in wanting}
    taken = dict(allocation.taken)
    for each in more:
        for name, weight in each.taken.items():
            taken[name] = taken.get(name, 0.0) + weight
    return Allocation(
        grants=[*allocation.grants, *(grant for each in more for grant in each.grants)],
        unmet=[
            *(one for one in allocation.unmet if _key(one) not in before),
            *(_as_said(one, before[_key(one)]) for each in more for one in each.unmet),
        ],
        taken=taken,
        groups=allocation.groups,
    )


def _as_said(now: Unmet, before: Unmet) -> Unmet:
    """What is left, with what kept it from free slots."""
    kept = now if now.limit == "concurrency" or not before.limit else before
    return msgspec.structs.replace(
        before, count=now.count, fault=now.fault, limit=kept.limit, reached=kept.reached
    )


def users_of(pool: Pool) -> tuple[np.ndarray[tuple[int, ...], np.dtype[np.int64]], list[str]]:
    """By row of the table the number of the submitter that has the slot, and their names; -1: unknown."""
    table = pool.slots
    rows = len(table)
    users = np.full(rows, -1, np.int64)
    numbers: dict[str, int] = {}
    for attribute in WHOSE:
        column = table.columns.get(attribute.lower())
        if column is None:
            continue
        classes = column.classes(rows)
        of_class = np.full(len(classes.examples), -1, np.int64)
        for place, example in enumerate(classes.examples.tolist()):
            name = table.value(example, attribute)
            if isinstance(name, str) and column.tags[example] == Tag.STRING:
                of_class[place] = numbers.setdefault(name, len(numbers))
        users = np.where(users < 0, of_class[classes.of], users)
    return users, list(numbers)
