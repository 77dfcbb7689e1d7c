"""
Sharing the free slots out among submitters.

Each submitter gets an equal share of the free cores first (spin by spin, the shares of those who do not need them flow to the
others), each of its autoclusters in its own order of priority, each on the slots that its jobs rank highest.
"""

from collections.abc import Sequence

import msgspec

from kettle.classad import ClassAd, matches, rank
from kettle.matchmaking.slots import Request, Slot


class Demand(msgspec.Struct, frozen=True, kw_only=True):
    """Idle jobs of one autocluster of one submitter."""

    submitter: str
    schedd: str
    autocluster: int
    count: int
    job: ClassAd


class Grant(msgspec.Struct, frozen=True, kw_only=True):
    """So many jobs of a demand may go to a slot."""

    demand: Demand
    slot: Slot
    count: int


class Unmet(msgspec.Struct, frozen=True, kw_only=True):
    """What is left of a demand, and whether it is for want of share, of room, or of any slot that matches at all."""

    demand: Demand
    count: int


class Allocation(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of one cycle."""

    grants: list[Grant]
    unmet: list[Unmet]


class _Open:
    """A demand that is being served."""

    def __init__(self, demand: Demand) -> None:
        self.demand = demand
        self.request = Request(demand.job)
        self.left = demand.count
        self.stuck = False
        self.granted: dict[str, tuple[Slot, int]] = {}

    def serve(self, slots: Sequence[Slot], budget: float) -> float:
        """Take what the budget of cores allows; returns what it cost."""
        cost = max(self.request.quantized("Cpus"), 1.0)
        spent = 0.0
        for slot in self._candidates(slots):
            while self.left and spent < budget:  # may exceed the budget by one job: 'rounding up a crumb'
                count = min(self.left, slot.room(self.request), max(1, int((budget - spent) // cost)))
                if count < 1:
                    break
                self._grant(slot, count)
                spent += cost * count
            if not self.left or spent >= budget:
                return spent
        self.stuck = True
        return spent

    def _grant(self, slot: Slot, count: int) -> None:
        slot.take(self.request, count)
        self.left -= count
        _, before = self.granted.get(slot.name, (slot, 0))
        self.granted[slot.name] = (slot, before + count)

    def _candidates(self, slots: Sequence[Slot]) -> list[Slot]:
        fitting = [s for s in slots if s.room(self.request) > 0 and matches(self.demand.job, s.ad)]
        return sorted(fitting, key=lambda s: -rank(self.demand.job, s.ad))


def allocate(slots: Sequence[Slot], demands: Sequence[Demand]) -> Allocation:
    """Share `slots` (which are changed by it) among `demands`, given in each submitter's order of priority."""
    offered = [slot for slot in slots if slot.weight > 0]
    queues: dict[str, list[_Open]] = {}
    for demand in demands:
        queues.setdefault(demand.submitter, []).append(_Open(demand))
    everything = [one for queue in queues.values() for one in queue]
    while hungry := [queue for queue in queues.values() if any(o.left and not o.stuck for o in queue)]:
        pie = sum(slot.weight for slot in offered)
        if pie <= 0:
            break
        share = pie / len(hungry)
        for queue in hungry:
            _spin(queue, offered, share)
    return Allocation(
        grants=[
            Grant(demand=one.demand, slot=slot, count=count)
            for one in everything
            for slot, count in one.granted.values()
        ],
        unmet=[Unmet(demand=one.demand, count=one.left) for one in everything if one.left],
    )


def _spin(queue: Sequence[_Open], slots: Sequence[Slot], share: float) -> None:
    for one in queue:
        if share <= 0:
            return
        if one.left and not one.stuck:
            share -= one.serve(slots, share)
