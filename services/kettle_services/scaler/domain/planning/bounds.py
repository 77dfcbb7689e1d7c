"""How many more machines there may be, and which bound it is that says so."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

import msgspec

from kettle_wire.events.plan import Bound
from kettle_wire.worker_pools import HostState, PoolKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from kettle_services.scaler.domain.leases.lease import Lease
    from kettle_services.scaler.domain.planning.inputs import Inputs, OfferInput

HOUR_S: Final = 3600.0
DAY_S: Final = 86_400.0
_ENDLESS: Final = 1_000_000
_EXACTLY: Final = 1e-9


class _Limit(msgspec.Struct):
    """Something of which machines of some offers use up a part each."""

    bound: Bound
    left: float
    each: dict[int, float]
    """What a machine of an offer uses up."""

    def room(self, offer: int) -> int:
        """So many machines of an offer more."""
        part = self.each.get(offer, 0.0)
        return _ENDLESS if part <= 0 else max(0, int(min(_ENDLESS, (self.left + _EXACTLY) / part)))


class Bounds:
    """What may be made in one plan; it is used up while machines are planned."""

    def __init__(self, inputs: Inputs) -> None:
        self._hard: Final = list(_hard(inputs))
        self._soft: Final = list(_soft(inputs))

    def room(self, offer: int) -> int:
        """So many more of an offer as there may ever be, as things are now."""
        return min((limit.room(offer) for limit in self._hard), default=_ENDLESS)

    def take(self, offer: int, machines: int) -> None:
        """So many of them are planned."""
        for limit in self._hard:
            limit.left -= limit.each.get(offer, 0.0) * machines

    def reached(self, offer: int) -> Bound:
        """What keeps an offer from more, if something does."""
        return (
            min(self._hard, key=lambda limit: limit.room(offer)).bound if not self.room(offer) else Bound.NEED
        )

    def waits(self, offer: int) -> Bound:
        """What keeps one more from being asked for at once, if something does."""
        strictest = min(self._soft, key=lambda limit: limit.room(offer), default=None)
        return Bound.NEED if strictest is None or strictest.room(offer) else strictest.bound

    def now(self, offer: int, machines: int) -> tuple[int, Bound]:
        """How many of those that are planned are asked for at once, and why it is not all of them."""
        strictest = min(self._soft, key=lambda limit: limit.room(offer), default=None)
        most = machines if strictest is None else min(machines, strictest.room(offer))
        for limit in self._soft:
            limit.left -= limit.each.get(offer, 0.0) * most
        if strictest is None or most == machines:
            return machines, Bound.NEED
        return most, strictest.bound


def _hard(inputs: Inputs) -> Iterable[_Limit]:
    """Bounds for which another offer is an answer."""
    offers = list(enumerate(inputs.offers))
    held = Counter(lease.requested.pool for lease in inputs.leases)
    of_offer = Counter((lease.requested.pool, lease.offer.name) for lease in inputs.leases)
    for state in inputs.pools:
        pool = state.pool
        if pool.kind is PoolKind.STATIC:
            continue
        mine = [number for number, one in offers if one.pool.name == pool.name]
        yield _Limit(Bound.POOL_MAX, pool.max - held[pool.name], dict.fromkeys(mine, 1.0))
        if pool.budget:
            prices = {number: committed(one) for number, one in offers if one.pool.name == pool.name}
            yield _Limit(Bound.BUDGET, pool.budget - bill(inputs, pool.name).committed, prices)
    for number, one in offers:
        if one.asleep is not None:
            yield _Limit(Bound.AWAKE, float(one.asleep), {number: 1.0})
            continue
        if one.offer.max:
            left = one.offer.max - of_offer[one.pool.name, one.offer.name]
            yield _Limit(Bound.OFFER_MAX, left, {number: 1.0})
        if (ramp := one.ramp) is not None:
            yield _Limit(Bound.RAMP, ramp - _starting(inputs, one), {number: 1.0})
    yield from _rooms(inputs, offers)


def _rooms(inputs: Inputs, offers: Sequence[tuple[int, OfferInput]]) -> Iterable[_Limit]:
    for provider, room in inputs.rooms.items():
        mine = [(number, one) for number, one in offers if one.offer.provider == provider]
        since = [lease for lease in inputs.leases if lease.provider == provider and lease.made > room.at]
        for most, parts, used in (
            (room.machines, {number: 1.0 for number, _ in mine}, float(len(since))),
            (
                room.cpus,
                {n: float(one.offer.cpus) for n, one in mine},
                float(sum(each.offer.cpus for each in since)),
            ),
            (
                room.memory,
                {n: float(one.offer.memory) for n, one in mine},
                float(sum(each.offer.memory for each in since)),
            ),
        ):
            if most is not None:
                yield _Limit(Bound.ROOM, most - used, parts)


def _soft(inputs: Inputs) -> Iterable[_Limit]:
    """Bounds that hold for a moment: it is better to wait than to buy elsewhere."""
    templates: dict[str, list[int]] = {}
    for number, one in enumerate(inputs.offers):
        if one.limit:
            templates.setdefault(one.template, []).append(number)
    for numbers in templates.values():
        one = inputs.offers[numbers[0]]
        yield _Limit(Bound.CANARY, float((one.limit or 0) - one.coming), dict.fromkeys(numbers, 1.0))
    for state in inputs.pools:
        pool = state.pool
        if pool.hibernates and pool.waking:
            mine = [number for number, one in enumerate(inputs.offers) if one.pool.name == pool.name]
            now = sum(
                each.host.state is HostState.WAKING for each in inputs.members if each.pool.name == pool.name
            )
            yield _Limit(Bound.WAKING, float(pool.waking - now), dict.fromkeys(mine, 1.0))
    yield _Limit(Bound.ACTIONS, inputs.max_actions, dict.fromkeys(range(len(inputs.offers)), 1.0))


def _starting(inputs: Inputs, one: OfferInput) -> int:
    """Leases of an offer that are not ready yet."""
    return sum(
        not lease.ready and lease.requested.pool == one.pool.name and lease.offer.name == one.offer.name
        for lease in inputs.leases
    )


class Bill(msgspec.Struct, frozen=True):
    """What a pool costs on a day."""

    spent: float
    """So far."""
    committed: float
    """With what the machines that it has will cost at least."""


def committed(one: OfferInput) -> float:
    """What a new machine costs at least: an hour, or its whole life."""
    return one.offer.price * min(HOUR_S, one.life) / HOUR_S


def bill(inputs: Inputs, pool: str) -> Bill:
    """What a pool costs on this day, which begins at midnight UTC."""
    leases = inputs.of_pool(pool)
    spent = inputs.spent.get(pool, 0.0) + running_costs(leases, inputs.now)
    more = 0.0
    for lease in leases:
        least = max(0.0, min(HOUR_S, lease.requested.life) - (inputs.now - (lease.accepted or inputs.now)))
        more += lease.offer.price * least / HOUR_S
    return Bill(spent, spent + more)


def running_costs(leases: Iterable[Lease], now: float) -> float:
    """What machines that are not over have cost since the last midnight UTC."""
    midnight = day_of(now)
    return sum(
        lease.offer.price * max(0.0, now - max(midnight, lease.accepted)) / HOUR_S
        for lease in leases
        if lease.accepted
    )


def day_of(now: float) -> float:
    """When the day began, in seconds since the epoch: days are those of UTC, which knows no summer time."""
    return now - now % DAY_S
