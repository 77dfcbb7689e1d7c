"""
What waits for machines, by asking the matcher: what would run if everything that is on its way were there?

What is left is demand.  Who may not run more, however many machines there were, wants none: that is asked in a pool of one slot
without an end, which only shares, quotas and limits bound.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

import msgspec
import numpy as np

from kettle.classad import NOTHING, ClassAd, Context
from kettle.classad.columnar import Table
from kettle.jobs.nodes import SAME_GROUP
from kettle.matchmaking import (
    Claimant,
    Concurrency,
    Demand,
    Explainer,
    Offer,
    Request,
    allocate,
    weights,
)
from kettle.matchmaking.shares import limits as share_limits
from kettle.matchmaking.shares import ordered
from kettle_services.scaler.domain.planning.matching import COMING, Key, Matching, Rights, key_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import numpy.typing as npt

    from kettle_wire.ads import Ad
    from kettle_wire.ads.daemon import ResourceRequest, SubmitterAd

_ENDLESS: Final = 100_000
"""Cores of the slot without an end: more count for nothing with the matcher."""
_ENDLESS_MIB: Final = 2**40


class Group(msgspec.Struct, frozen=True, kw_only=True):
    """Idle jobs of one autocluster of one submitter, and what the matcher says of them."""

    submitter: str
    schedd: str
    autocluster: int
    job: ClassAd
    jobs: int
    nodes: int = 1
    near: bool = False
    free: int = 0
    """So many would run at once on what there is."""
    coming: int = 0
    """So many others on what is on its way."""
    limited: int = 0
    """So many may not run."""
    left: int = 0
    """So many want machines that nobody has asked for."""
    fault: str = ""

    @property
    def key(self) -> Key:
        """Whose it is."""
        return self.submitter, self.schedd, self.autocluster


class WhatIf(msgspec.Struct, frozen=True, kw_only=True):
    """What the matcher says."""

    groups: list[Group]
    """In the order of fair shares, those of one submitter in its own order."""
    needed: frozenset[int]
    """Rows of slots that something would run on."""
    slots: int
    """How many were looked at."""


def demands(submitters: Iterable[tuple[str, SubmitterAd]]) -> list[Demand]:
    """Everything that is asked for, by the keys of the ads."""
    return [
        _demand(key, ad, request) for key, ad in submitters for request in ad.requests if request.count > 0
    ]


def _demand(key: str, ad: SubmitterAd, request: ResourceRequest) -> Demand:
    job = ClassAd.from_wire(request.ad)
    group, dot, _ = ad.name.partition("@")[0].rpartition(".")
    if dot and job.find("acctgroup") is None:
        job["AcctGroup"] = group  # schedds show it when machines are there that ask for it
    return Demand(
        submitter=ad.name,
        schedd=ad.schedd,
        autocluster=request.autocluster,
        count=request.count * request.nodes,
        job=job,
        nodes=request.nodes,
        near=request.nodes > 1 and request.ad.get(SAME_GROUP) is True,
        key=key,
    )


def what_if(
    table: Table,
    rows: npt.NDArray[np.int64],
    asked: Sequence[Demand],
    rights: Rights,
    context: Context = NOTHING,
    *,
    potential: float = 0.0,
    promised: Mapping[int, Mapping[Key, int]] = MappingProxyType({}),
) -> WhatIf:
    """
    Match everything that is asked for with the slots in `rows`: those that are free, and those that are on their way.

    `potential` is the weight of the machines that could still be made: dynamic quotas are parts of what the pool may become.
    `promised` says for which jobs a slot on its way was ordered.
    """
    pie = float(weights(table).sum()) + potential
    allowed = _allowed(asked, rights, context, pie)
    matched = Matching(table, rows, rights, pie, context, promised).of(asked, allowed)
    free: dict[Key, int] = {}
    coming: dict[Key, int] = {}
    for grant in matched.grants:
        key = key_of(grant.demand)
        counted = coming if table.keys[grant.row].startswith(COMING) else free
        counted[key] = counted.get(key, 0) + grant.count
    groups = [
        _group(demand, free.get(key, 0), coming.get(key, 0), allowed.get(key), matched.faults.get(key, ""))
        for demand in asked
        for key in (key_of(demand),)
    ]
    order = _order(rights, {demand.submitter for demand in asked}, pie)
    return WhatIf(
        groups=sorted(groups, key=lambda group: order[group.submitter]),
        needed=frozenset(grant.row for grant in matched.grants),
        slots=len(rows),
    )


def _group(demand: Demand, free: int, coming: int, allowed: int | None, fault: str) -> Group:
    nodes = demand.nodes
    jobs, free, coming = demand.count // nodes, free // nodes, coming // nodes
    may = jobs if allowed is None else min(jobs, max(allowed // nodes, free + coming))
    left = 0 if fault else max(0, may - free - coming)
    return Group(
        submitter=demand.submitter,
        schedd=demand.schedd,
        autocluster=demand.autocluster,
        job=demand.job,
        jobs=jobs,
        nodes=nodes,
        near=demand.near,
        free=free,
        coming=coming,
        limited=jobs - may,
        left=left,
        fault=fault,
    )


def _order(rights: Rights, submitters: set[str], pie: float) -> dict[str, int]:
    """Who is served first: the place of each."""
    known = {one.name: one for one in rights.claimants}
    claimants = [known.get(name, Claimant(name=name)) for name in sorted(submitters)]
    used = {one.name: one.used for one in claimants}
    names = ordered(claimants, used, share_limits(claimants, used, pie))
    return {name: place for place, name in enumerate(names)}


def _allowed(asked: Sequence[Demand], rights: Rights, context: Context, pie: float) -> dict[Key, int]:
    """How many slots each may have if there is no lack of machines; nothing, if nobody is bounded."""
    bounded = any(one.ceiling < float("inf") for one in rights.claimants)
    grouped = rights.groups is not None and len(rights.groups.tree) > 1
    limited = any(demand.job.find("concurrencylimits") is not None for demand in asked)
    if not (bounded or grouped or limited):
        return {}
    table = Table()
    table.put("endless", _endless())
    allocation = allocate(
        Offer(table, table.all_rows),
        [msgspec.structs.replace(demand, job=_anywhere(demand.job, context), nodes=1) for demand in asked],
        context,
        claimants=rights.claimants,
        pie=pie,
        groups=rights.groups,
        used=rights.used,
        concurrency=Concurrency(rights.limits, rights.in_use),
    )
    allowed = {key_of(demand): 0 for demand in asked}
    for grant in allocation.grants:
        allowed[key_of(grant.demand)] += grant.count
    return allowed


def _endless() -> Ad:
    return {
        "State": "Unclaimed",
        "PartitionableSlot": True,
        "Cpus": _ENDLESS,
        "Memory": _ENDLESS_MIB,
        "Disk": _ENDLESS_MIB,
        "Requirements": True,
    }


def _anywhere(job: ClassAd, context: Context) -> ClassAd:
    """The job as one that any slot suits: only its cores and its limits count."""
    cores = Request(job, context).fixed.get("Cpus", 1.0)
    kept = job.find("concurrencylimits")
    wire: Ad = {"RequestCpus": int(cores), "RequestMemory": 0, "RequestDisk": 0, "Requirements": True}
    plain = ClassAd.from_wire(wire)
    if kept is not None:
        plain["ConcurrencyLimits"] = kept
    return plain


def unable(
    table: Table, rows: npt.NDArray[np.int64], groups: Iterable[Group], context: Context = NOTHING
) -> frozenset[Key]:
    """
    Those for whom nothing that is there or on its way would ever do, not even when nothing else ran there.
    """
    explainer = Explainer(table, rows, context)
    return frozenset(group.key for group in groups if group.left and not explainer.able(group.job).any())


class Patience:
    """
    How long what is left over has been left over: machines are asked for when what there is had its chance.

    Of what is left at times only the least counts: jobs that come and go one after the other need no more machines.
    """

    def __init__(self) -> None:
        self._seen: dict[Key, list[tuple[float, int]]] = {}

    def note(self, groups: Iterable[Group], now: float, longest: float) -> None:
        """So many are left at this moment; what is older than `longest` seconds is forgotten."""
        before, self._seen = self._seen, {}
        for group in groups:
            if group.left:
                samples = [*before.get(group.key, []), (now, group.left)]
                while len(samples) > 1 and samples[1][0] <= now - longest:
                    samples.pop(0)
                self._seen[group.key] = samples

    def copy(self) -> Patience:
        """A copy, to be asked what would be without being told anything."""
        other = Patience()
        other._seen = {key: list(samples) for key, samples in self._seen.items()}
        return other

    def lasting(self, key: Key, seconds: float, now: float) -> int:
        """So many have been left over for so long."""
        samples = self._seen.get(key, [])
        since = now - seconds
        if not samples or samples[0][0] > since:
            return 0
        begun = max(index for index, (at, _) in enumerate(samples) if at <= since)
        return min(left for _, left in samples[begun:])
