"""One negotiation cycle, as a value: what it gives, what it refuses and why."""

import msgspec

from kettle.classad import NOTHING, Context
from kettle.matchmaking import Allocation, allocate
from kettle.negotiator.domain.pool import Pool
from kettle.negotiator.domain.reasons import Reasons
from kettle.wire.commands.schedd import MatchedSlot
from kettle.wire.events import Match, Rejection


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


def negotiate(
    pool: Pool, reasons: Reasons, *, now: float, trust: float, context: Context = NOTHING
) -> Outcome:
    """Match open demand with free slots; remember in `pool` what was given, in `reasons` why the rest was not."""
    pool.expire(now)
    offer = pool.offer()
    allocation = allocate(offer, pool.demands(), context)
    allocation = _preempting(pool, allocation, context)
    pool.stirred = False  # what has not been given now cannot be given until something changes
    matches: list[Match] = []
    messages: dict[str, list[MatchedSlot]] = {}
    for grant in allocation.grants:
        demand = grant.demand
        name, secret = pool.name_of(grant.row), pool.secret_of(grant.row)
        pool.give(grant, now + trust)
        matches.append(
            Match(
                submitter=demand.submitter,
                schedd=demand.schedd,
                autocluster=demand.autocluster,
                slot=name,
                startd=secret.startd,
                count=grant.count,
            )
        )
        messages.setdefault(demand.schedd, []).append(
            MatchedSlot(
                submitter=demand.submitter,
                autocluster=demand.autocluster,
                count=grant.count,
                slot=name,
                startd=secret.startd,
                capability=secret.capability,
            )
        )
    rejections, later = reasons.give(pool, allocation.unmet, now=now, context=context)
    return Outcome(
        slots=len(offer.rows),
        idle=pool.idle,
        matches=matches,
        rejections=rejections,
        messages=messages,
        again=min((at for at in (pool.expires(), later) if at is not None), default=None),
    )


def _preempting(pool: Pool, allocation: Allocation, context: Context) -> Allocation:
    """With the slots whose startds rank what found no free slot higher than what they run."""
    offer = pool.preemptible() if allocation.unmet else None
    if offer is None:
        return allocation
    faulty = [unmet for unmet in allocation.unmet if unmet.fault is not None]
    left = [
        msgspec.structs.replace(unmet.demand, count=unmet.count)
        for unmet in allocation.unmet
        if unmet.fault is None
    ]
    more = allocate(offer, left, context)
    return Allocation(grants=[*allocation.grants, *more.grants], unmet=[*faulty, *more.unmet])


def fresh(rejections: list[Rejection], before: dict[tuple[str, str, int], Rejection]) -> list[Rejection]:
    """The rejections that say something other than what was said before; how many jobs wait is no news."""
    news: list[Rejection] = []
    for rejection in rejections:
        old = before.get((rejection.submitter, rejection.schedd, rejection.autocluster))
        if old is None or msgspec.structs.replace(old, count=rejection.count) != rejection:
            news.append(rejection)
    return news
