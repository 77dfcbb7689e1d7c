"""
How many machines of a pool there may be for the jobs of one person, so that one queue does not take a shared pool and its
budget.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from kettle_services.scaler.domain.planning.inputs import Inputs
    from kettle_services.scaler.domain.planning.packing import Budget
    from kettle_wire.events.lease import LeaseRequested

_ENDLESS: Final = 1_000_000


def person_of(submitter: str) -> str:
    """Who is behind a submitter: the same person in whatever accounting group."""
    return submitter.partition("@")[0].rpartition(".")[2]


def made_for(request: LeaseRequested) -> str:
    """
    For whose jobs a machine was ordered, those of the first where it is for several people's; empty: for nobody's.
    """
    return person_of(request.demand[0].submitter) if request.demand else ""


class OwnerBounds:
    """What may be made for each person in one plan; it is used up while machines are planned."""

    def __init__(self, inputs: Inputs) -> None:
        self._offers: Final = inputs.offers
        self._held: Final = Counter(
            (lease.requested.pool, made_for(lease.requested)) for lease in inputs.leases
        )

    def room(self, offer: int, person: str) -> int:
        """So many more of an offer for this person's jobs."""
        pool = self._offers[offer].pool
        most = pool.max_machines_per_owner
        return max(0, most - self._held[pool.name, person]) if most and person else _ENDLESS

    def take(self, offer: int, person: str, machines: int) -> None:
        """So many of them are planned."""
        self._held[self._offers[offer].pool.name, person] += machines

    def within(self, budget: Budget, person: str) -> Budget:
        """What there is room for in a budget and for this person."""
        return _Within(budget, self, person)


class _Within:
    def __init__(self, budget: Budget, owners: OwnerBounds, person: str) -> None:
        self._budget = budget
        self._owners = owners
        self._person = person

    def room(self, offer: int) -> int:
        return min(self._budget.room(offer), self._owners.room(offer, self._person))

    def take(self, offer: int, machines: int) -> None:
        self._budget.take(offer, machines)
        self._owners.take(offer, self._person, machines)
