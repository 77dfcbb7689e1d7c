"""
Sharing the free slots out among submitters.

Each submitter gets an equal share of the free cores first (spin by spin, the shares of those who do not need them flow to the
others), each of its autoclusters in its own order of priority, each on the slots that its jobs rank highest.
"""

from collections.abc import Sequence

import msgspec

from kettle.classad import NOTHING, ClassAd, Context, matches, rank
from kettle.matchmaking.request import Amounts, Request
from kettle.matchmaking.slots import Slot


class Demand(msgspec.Struct, frozen=True, kw_only=True):
    """Idle jobs of one autocluster of one submitter."""

    submitter: str
    schedd: str
    autocluster: int
    count: int
    job: ClassAd


class Grant(msgspec.Struct, frozen=True, kw_only=True):
    """So many jobs of a demand may go to a slot, each taking `amounts` of it."""

    demand: Demand
    slot: Slot
    count: int
    amounts: Amounts


class Unmet(msgspec.Struct, frozen=True, kw_only=True):
    """What is left of a demand; `fault` says what is wrong with the demand itself, if that is the reason."""

    demand: Demand
    count: int
    fault: str | None = None


class Allocation(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of one cycle."""

    grants: list[Grant]
    unmet: list[Unmet]


class _Open:
    """A demand that is being served."""

    def __init__(self, demand: Demand, context: Context) -> None:
        self.demand = demand
        self.request = Request(demand.job, context)
        self.left = demand.count
        self.stuck = self.request.fault is not None
        self.granted: dict[str, Grant] = {}
        self._context = context

    def serve(self, slots: Sequence[Slot], budget: float) -> float:
        """Take what the budget of cores allows; returns what it cost."""
        spent = 0.0
        for slot, amounts in self._candidates(slots):
            cost = max(amounts.quantized("Cpus"), 1.0)
            while self.left and spent < budget:  # may exceed the budget by one job: 'rounding up a crumb'
                count = min(self.left, slot.room(amounts), max(1, int((budget - spent) // cost)))
                if count < 1:
                    break
                self._grant(slot, amounts, count)
                spent += cost * count
            if not self.left or spent >= budget:
                return spent
        self.stuck = True
        return spent

    def _grant(self, slot: Slot, amounts: Amounts, count: int) -> None:
        slot.take(amounts, count)
        self.left -= count
        before = self.granted.get(slot.key)
        total = count if before is None else before.count + count
        self.granted[slot.key] = Grant(demand=self.demand, slot=slot, count=total, amounts=amounts)

    def _candidates(self, slots: Sequence[Slot]) -> list[tuple[Slot, Amounts]]:
        job = self.demand.job
        fitting: list[tuple[Slot, Amounts]] = []
        for slot in slots:
            amounts = self.request.of(slot.key, slot.ad)
            if amounts is not None and slot.room(amounts) > 0 and matches(job, slot.ad, self._context):
                fitting.append((slot, amounts))
        return sorted(fitting, key=lambda found: -rank(job, found[0].ad, self._context))

    def unmet(self) -> Unmet:
        """What is left."""
        return Unmet(demand=self.demand, count=self.left, fault=self.request.failure())


def allocate(slots: Sequence[Slot], demands: Sequence[Demand], context: Context = NOTHING) -> Allocation:
    """
    Share `slots` (which are changed by it) among `demands`, given in each submitter's order of priority.

    Nothing that an ad says makes it fail: what cannot be evaluated does not match.
    """
    offered = [slot for slot in slots if slot.weight > 0]
    queues: dict[str, list[_Open]] = {}
    for demand in demands:
        queues.setdefault(demand.submitter, []).append(_Open(demand, context))
    everything = [one for queue in queues.values() for one in queue]
    while hungry := [queue for queue in queues.values() if any(o.left and not o.stuck for o in queue)]:
        pie = sum(slot.weight for slot in offered)
        if pie <= 0:
            break
        share = pie / len(hungry)
        for queue in hungry:
            _spin(queue, offered, share)
    return Allocation(
        grants=[grant for one in everything for grant in one.granted.values()],
        unmet=[one.unmet() for one in everything if one.left],
    )


def _spin(queue: Sequence[_Open], slots: Sequence[Slot], share: float) -> None:
    for one in queue:
        if share <= 0:
            return
        if one.left and not one.stuck:
            share -= one.serve(slots, share)
