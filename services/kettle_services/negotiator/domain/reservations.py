"""
Slots that are kept for the job of several nodes that has waited longest, for a bounded time.

Single jobs take each slot that becomes free, so a job that needs more slots than are ever free at once would wait without end.
It has to go without for a while first; then what there is for it is kept, and after that time others have it for as long.
Only one job has slots kept at a time, and only one that the pool could run if it were empty, so that at most its nodes less one
stand idle.
"""

import math
from collections.abc import Sequence

import msgspec

from kettle.classad import Context
from kettle.matchmaking import Demand, Offer, Unmet, allocate
from kettle_services.negotiator.domain.pool import Pool

Key = tuple[str, str, int]
"""Submitter, schedd and autocluster."""


class ReservationTerms(msgspec.Struct, frozen=True, kw_only=True):
    """When slots are kept."""

    patience: float = math.inf
    """Seconds for which a job has to go without before."""
    longest: float = 0.0
    """Seconds for which they are kept, and then are not."""


class Reservations:
    """Since when the jobs of several nodes wait that nothing but other jobs keeps from their slots."""

    def __init__(self, terms: ReservationTerms) -> None:
        self._terms = terms
        self._since: dict[Key, float] = {}

    def holder(self, pool: Pool, demands: Sequence[Demand], now: float, context: Context) -> Key | None:
        """For whose jobs slots are kept in this cycle."""
        asked = {_key(demand): demand for demand in demands}
        for key in sorted(self._since, key=self._since.__getitem__):
            if key in asked and self._holds(key, now) and could_run(pool, asked[key], context):
                return key
        return None

    def note(self, unmet: Sequence[Unmet], now: float) -> None:
        """What a cycle has left: who gets something, or waits for something else, begins to wait again."""
        waiting = [_key(one.demand) for one in unmet if _lacks_slots(one)]
        self._since = {key: self._since.get(key, now) for key in waiting}

    def changes(self, now: float) -> float | None:
        """When slots begin to be kept, or are no longer, the next time."""
        if not math.isfinite(self._terms.patience):
            return None
        return min((self._next(since, now) for since in self._since.values()), default=None)

    def _holds(self, key: Key, now: float) -> bool:
        waited = now - self._since[key] - self._terms.patience
        return waited >= 0 and waited % (2 * self._terms.longest) < self._terms.longest

    def _next(self, since: float, now: float) -> float:
        first = since + self._terms.patience
        if now < first:
            return first
        return first + (math.floor((now - first) / self._terms.longest) + 1) * self._terms.longest


def could_run(pool: Pool, demand: Demand, context: Context) -> bool:
    """Whether the pool could run one of these jobs if it were empty."""
    offer = Offer(pool.slots, pool.machines(), emptied=True)
    one = msgspec.structs.replace(demand, count=demand.nodes)
    return not allocate(offer, [one], context).unmet


def _key(demand: Demand) -> Key:
    return demand.submitter, demand.schedd, demand.autocluster


def _lacks_slots(unmet: Unmet) -> bool:
    return unmet.demand.nodes > 1 and unmet.fault is None and not unmet.limit
