"""
What the matcher gives to the jobs that wait: what is free first, then what is on its way.

Machines on their way are first for the jobs that they were ordered for.  The matcher alone would serve who asks first: small jobs
would get the room of a machine that was ordered for its GPUs, and for the job that needs them another one would be ordered, plan after
plan.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final, TypeAlias

import msgspec
import numpy as np

from kettle.matchmaking import (
    Claimant,
    Concurrency,
    Grant,
    LimitRules,
    Offer,
    Policy,
    Request,
    allocate,
)
from kettle.matchmaking.candidates import Ranking, candidates

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import numpy.typing as npt

    from kettle.classad import Context
    from kettle.classad.columnar import Table
    from kettle.matchmaking import Allocation, Demand

    Rows: TypeAlias = npt.NDArray[np.int64]
    Promised: TypeAlias = Mapping[int, Mapping["Key", int]]
    """By the row of a slot on its way: how many jobs of which kinds it was ordered for."""

COMING: Final = "coming/"
"""How the keys of slots begin that do not exist yet; the id of the lease comes after it."""

Key = tuple[str, str, int]
"""Submitter, schedd, autocluster."""


class Rights(msgspec.Struct, frozen=True, kw_only=True):
    """How those who ask stand with the accountant, and what they may have."""

    claimants: list[Claimant] = []
    groups: Policy | None = None
    used: dict[str, float] = {}
    limits: LimitRules = LimitRules()
    in_use: dict[str, float] = {}
    """What is used of concurrency limits."""


def key_of(demand: Demand) -> Key:
    """Of the jobs that are asked for."""
    return demand.submitter, demand.schedd, demand.autocluster


class Matched(msgspec.Struct, frozen=True):
    """What was given, and why the rest of a demand can never be given anything."""

    grants: list[Grant]
    faults: dict[Key, str]


class Matching:
    """
    One look at the slots in `rows`, of which `promised` says for which jobs those in a row were ordered.
    """

    def __init__(
        self, table: Table, rows: Rows, rights: Rights, pie: float, context: Context, promised: Promised
    ) -> None:
        self._table = table
        self._rows = rows
        self._rights = rights
        self._pie = pie
        self._context = context
        self._promised = promised
        self._concurrency = Concurrency(rights.limits, rights.in_use)
        self._rest = Offer(table, rows)
        self._grants: list[Grant] = []
        self._has: dict[str, float] = {}
        """What each submitter was given, in slot weights."""

    def of(self, asked: Sequence[Demand], allowed: Mapping[Key, int]) -> Matched:
        """
        Serve what is asked for; `allowed`: how many slots those may have at most who may not have as many as they want.
        """
        left = asked
        if self._promised:
            self._give_what_is_free(asked)
            self._keep_promises(_without(asked, self._grants), allowed)
            left = _without(asked, self._grants)
        last = self._allocated(self._rest, left)
        faults = {key_of(unmet.demand): unmet.fault for unmet in last.unmet if unmet.fault}
        return Matched([*self._grants, *last.grants], faults)

    def _give_what_is_free(self, asked: Sequence[Demand]) -> None:
        numbers: list[int] = self._rows.tolist()
        free = np.array([not self._table.keys[row].startswith(COMING) for row in numbers], np.bool_)
        now = self._allocated(Offer(self._table, self._rows[free]), asked)
        self._has = dict(now.taken)
        self._note(now.grants)

    def _allocated(self, offer: Offer, asked: Sequence[Demand]) -> Allocation:
        rights, has = self._rights, self._has
        known = {one.name: one for one in rights.claimants}
        known |= {name: Claimant(name=name) for name in has if name not in known}
        return allocate(
            offer,
            asked,
            self._context,
            claimants=[
                msgspec.structs.replace(one, used=one.used + has.get(one.name, 0.0)) for one in known.values()
            ],
            pie=self._pie,
            groups=rights.groups,
            used={name: used + has.get(name, 0.0) for name, used in rights.used.items()},
            concurrency=self._concurrency,
        )

    def _note(self, grants: Iterable[Grant]) -> None:
        for grant in grants:
            self._rest.take(grant.row, grant.amounts, grant.count)
            self._grants.append(grant)

    def _keep_promises(self, asked: Sequence[Demand], allowed: Mapping[Key, int]) -> None:
        """
        Give jobs the machines that were ordered for them, as far as they still suit them.

        Machines of gangs are for nobody else anyway; jobs that use concurrency limits have what these leave to each, in the
        matcher's order.
        """
        kept = Offer(self._table, np.array(sorted(self._promised), np.int64))
        ranking = Ranking(kept, self._context)
        given = Counter[Key]()
        for grant in self._grants:
            given[key_of(grant.demand)] += grant.count
        for demand in asked:
            key = key_of(demand)
            if demand.nodes > 1 or demand.job.find("concurrencylimits") is not None:
                continue
            may = min(demand.count, allowed[key] - given[key]) if key in allowed else demand.count
            grants = self._promised_to(demand, may, kept, ranking)
            for grant in grants:
                cores = np.array([grant.amounts.quantized("Cpus")])
                weight = float(kept.costs(np.array([grant.row]), cores)[0])
                self._has[demand.submitter] = self._has.get(demand.submitter, 0.0) + weight * grant.count
                kept.take(grant.row, grant.amounts, grant.count)
            self._note(grants)

    def _promised_to(self, demand: Demand, may: int, kept: Offer, ranking: Ranking) -> list[Grant]:
        key, request, grants = key_of(demand), Request(demand.job, self._context), list[Grant]()
        if request.fault is not None or not any(key in jobs for jobs in self._promised.values()):
            return grants
        for found in candidates(
            demand.job, request, kept, ranking, self._context, submitter=demand.submitter
        ):
            for position, (row, room) in enumerate(
                zip(found.rows.tolist(), found.room.tolist(), strict=True)
            ):
                count = min(may, room, self._promised[row].get(key, 0))
                if count > 0:
                    amounts = request.amounts(found.asked, position)
                    grants.append(Grant(demand=demand, row=row, count=count, amounts=amounts))
                    may -= count
        return grants


def _without(asked: Iterable[Demand], grants: Iterable[Grant]) -> list[Demand]:
    """What is left of what is asked for."""
    given = Counter[Key]()
    for grant in grants:
        given[key_of(grant.demand)] += grant.count
    return [
        msgspec.structs.replace(demand, count=left)
        for demand in asked
        if (left := demand.count - given[key_of(demand)]) > 0
    ]
