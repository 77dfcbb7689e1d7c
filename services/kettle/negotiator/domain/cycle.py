"""One negotiation cycle, as a value: what it gives, what it refuses and why."""

from collections.abc import Sequence

import msgspec

from kettle.matchmaking import Slot, Unmet, allocate, explain
from kettle.negotiator.domain.pool import Pool, keys_of
from kettle.wire.commands.schedd import MatchedSlot
from kettle.wire.events import Clause, Match, Rejection

NO_MATCH = "no match found"
BUSY = "all matching slots are busy"
NO_SLOTS = "there are no slots in the pool"
_CLAUSES = 20


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What a cycle decided: the record of it, and the messages that follow from it."""

    slots: int
    idle: int
    matches: list[Match]
    rejections: list[Rejection]
    messages: dict[str, list[MatchedSlot]]
    """Schedd -> its matches, with the capabilities."""


def negotiate(pool: Pool, *, now: float, trust: float) -> Outcome:
    """Match open demand with free slots and remember in `pool` what was given."""
    offers, demands = pool.offers(now), pool.demands(now)
    keys = keys_of(pool.submitters.items())
    allocation = allocate(offers, demands)
    matches: list[Match] = []
    messages: dict[str, list[MatchedSlot]] = {}
    for grant in allocation.grants:
        demand, slot = grant.demand, grant.slot
        pool.give(keys[demand.submitter, demand.schedd], demand, slot, grant.count, now + trust)
        matches.append(
            Match(
                submitter=demand.submitter,
                schedd=demand.schedd,
                autocluster=demand.autocluster,
                slot=slot.name,
                startd=slot.startd,
                count=grant.count,
            )
        )
        messages.setdefault(demand.schedd, []).append(
            MatchedSlot(
                submitter=demand.submitter,
                autocluster=demand.autocluster,
                count=grant.count,
                slot=slot.name,
                startd=slot.startd,
                capability=pool.capability(slot),
            )
        )
    return Outcome(
        slots=len(offers),
        idle=pool.idle,
        matches=matches,
        rejections=_rejections(pool, allocation.unmet),
        messages=messages,
    )


def _rejections(pool: Pool, unmet: Sequence[Unmet]) -> list[Rejection]:
    slots = pool.machines() if unmet else []
    return [_reject(slots, one) for one in unmet]


def _reject(slots: Sequence[Slot], unmet: Unmet) -> Rejection:
    able, refusals = explain(unmet.demand.job, slots)
    reason = NO_SLOTS if not slots else BUSY if able else NO_MATCH
    return Rejection(
        submitter=unmet.demand.submitter,
        schedd=unmet.demand.schedd,
        autocluster=unmet.demand.autocluster,
        count=unmet.count,
        reason=reason,
        slots=len(slots),
        clauses=[]
        if able
        else [Clause(side=r.side, text=r.text, refuses=r.refuses) for r in refusals[:_CLAUSES]],
    )


def fresh(rejections: list[Rejection], before: dict[tuple[str, str, int], Rejection]) -> list[Rejection]:
    """The rejections that say something other than what was said before; how many jobs wait is no news."""
    news: list[Rejection] = []
    for rejection in rejections:
        old = before.get((rejection.submitter, rejection.schedd, rejection.autocluster))
        if old is None or msgspec.structs.replace(old, count=rejection.count) != rejection:
            news.append(rejection)
    return news
