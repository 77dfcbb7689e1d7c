"""One negotiation cycle, as a value: what it gives, what it refuses and why."""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from types import MappingProxyType
from typing import Final

import msgspec

from kettle.classad import NOTHING, Context
from kettle.matchmaking import (
    NO_GROUPS,
    NO_RANKS,
    Allocation,
    Claimant,
    Concurrency,
    GroupShare,
    LimitRules,
    Policy,
    Ranks,
    allocate,
    shares,
)
from kettle_services.negotiator.domain.accountant import Standing
from kettle_services.negotiator.domain.concurrency_limits import SETTLES
from kettle_services.negotiator.domain.pool import Pool
from kettle_services.negotiator.domain.preemption import USUAL, Preempting, Preemption
from kettle_services.negotiator.domain.preemption_refusals import PreemptionRefusals
from kettle_services.negotiator.domain.rejections import Holding, Reasons
from kettle_services.negotiator.domain.reservations import Reservations, ReservationTerms
from kettle_wire.commands.schedd import MatchedSlot
from kettle_wire.events import Match, Rejection

UNGROUPED: Final = Policy(NO_GROUPS)
UNLIMITED: Final = LimitRules()


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What a cycle decided: the record of it, and the messages that follow from it."""

    slots: int
    idle: int
    matches: list[Match]
    rejections: list[Rejection]
    messages: dict[str, list[MatchedSlot]]
    """Schedd -> its matches, with the capabilities."""
    again: float | None = None
    """When another cycle is of use even if no ad comes, on the caller's clock."""
    groups: list[GroupShare] = []
    """How the accounting groups stand after it, the one of those without a group first."""


def negotiate(
    pool: Pool,
    reasons: Reasons,
    *,
    now: float,
    trust: float,
    context: Context = NOTHING,
    standings: Mapping[str, Standing] = MappingProxyType({}),
    groups: Policy = UNGROUPED,
    limits: LimitRules = UNLIMITED,
    ranks: Ranks = NO_RANKS,
    preemption: Preemption = USUAL,
    recorded: AbstractSet[str] = frozenset(),
    cycle: int = 0,
    reservations: Reservations | None = None,
) -> Outcome:
    """
    Match open demand with free slots; remember in `pool` what was given, in `reasons` why the rest was not.

    `standings` are those of submitters with the accountant; who has none is new. `recorded` are those who had slots when that
    was last recorded, whose schedds may be away. `cycle` is the number that this one will have on record if it gives anything.
    `reservations` remember which jobs of several nodes have waited how long; without them nothing is kept for any.
    """
    pool.expire(now)
    offer = pool.offer()
    used = pool.used(recorded)
    claimants = pool.claimants(used, standings)
    concurrency = Concurrency(limits, pool.in_use())
    reservations = reservations or Reservations(ReservationTerms())
    demands = pool.demands()
    allocation = allocate(
        offer,
        demands,
        context,
        claimants=claimants,
        pie=pool.weight,
        groups=groups,
        used=used,
        concurrency=concurrency,
        ranks=ranks,
        keeps=reservations.holder(pool, demands, now, context),
    )
    preempting = Preempting(
        rules=preemption,
        claimants=claimants,
        standings=standings,
        groups=groups,
        used=used,
        concurrency=concurrency,
        ranks=ranks,
        context=context,
    )
    allocation = preempting.extend(pool, allocation)
    reservations.note(allocation.unmet, now)
    pool.stirred = False  # what has not been given now cannot be given until something changes
    matches: list[Match] = []
    messages: dict[str, list[MatchedSlot]] = {}
    for grant in allocation.grants:
        demand = grant.demand
        name, secret = pool.name_of(grant.row), pool.secret_of(grant.row)
        parts = [pool.occupied(row) for row in grant.instead]
        pool.give(grant, cycle, now=now, trust=trust)
        matches.append(
            Match(
                submitter=demand.submitter,
                schedd=demand.schedd,
                autocluster=demand.autocluster,
                slot=name,
                startd=secret.startd,
                count=grant.count,
                limits=grant.uses,
            )
        )
        messages.setdefault(demand.schedd, []).append(
            MatchedSlot(
                submitter=demand.submitter,
                autocluster=demand.autocluster,
                count=grant.count,
                slot=parts[0].slot if parts else name,
                startd=secret.startd,
                capability=parts[0].capability if parts else secret.capability,
                limits=grant.uses,
                also=parts[1:],
                nodes=grant.nodes,
            )
        )
    pool.pendings.add(matches, cycle, now + SETTLES)
    rejections, later = reasons.give(
        pool,
        allocation.unmet,
        now=now,
        context=context,
        holdings=_holdings(claimants, groups, used, allocation, pool.weight),
        withholding=lambda: PreemptionRefusals(pool, preempting, allocation),
    )
    return Outcome(
        slots=len(offer.rows),
        idle=pool.idle,
        matches=matches,
        rejections=rejections,
        messages=messages,
        again=min(
            (at for at in (pool.expires(), later, reservations.changes(now)) if at is not None), default=None
        ),
        groups=allocation.groups,
    )


def fresh(rejections: list[Rejection], before: dict[tuple[str, str, int], Rejection]) -> list[Rejection]:
    """
    The rejections that differ from the earlier ones, or of which a part was given.

    Changes of how many jobs wait, what their submitter has and who else has slots are not news, because they change all
    the time.
    """
    news: list[Rejection] = []
    for rejection in rejections:
        old = before.get((rejection.submitter, rejection.schedd, rejection.autocluster))
        if old is None or rejection.given or _without_figures(old) != _without_figures(rejection):
            news.append(rejection)
    return news


def _without_figures(rejection: Rejection) -> Rejection:
    cause = "busy" if rejection.cause == "share" else rejection.cause
    return msgspec.structs.replace(
        rejection, count=0, asked=0, given=0, cause=cause, share=0.0, used=0.0, withheld=[]
    )


def _holdings(
    claimants: Sequence[Claimant],
    groups: Policy,
    used: Mapping[str, float],
    allocation: Allocation,
    pie: float,
) -> dict[str, Holding]:
    """What every submitter has after the cycle, and its share among those of its accounting group."""
    members: dict[int, list[Claimant]] = {}
    for one in claimants:
        members.setdefault(groups.tree.number_of(one.name), []).append(one)
    holdings: dict[str, Holding] = {}
    for number, together in members.items():
        whole = min(pie, allocation.groups[number].allotted) if allocation.groups else pie
        for name, part in shares(together).items():
            has = used.get(name, 0.0) + allocation.taken.get(name, 0.0)
            holdings[name] = Holding(has, part * whole, len(together) == 1)
    return holdings
