"""What a plan follows from, besides slots and demand: pools, leases, and how their offers stand."""

from collections import Counter
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

import msgspec

from kettle_services.scaler.domain.hosts.census import Member, members
from kettle_services.scaler.domain.hosts.host import Host
from kettle_services.scaler.domain.leases.book import Book, standing
from kettle_services.scaler.domain.leases.breakers import OfferRecord, template_of
from kettle_services.scaler.domain.leases.lease import COMING, SERVING, Lease
from kettle_services.scaler.domain.pools import PoolState
from kettle_wire.ads.types import Ad
from kettle_wire.worker_pools import Offer, PoolKind, WorkerPool

LATELY_S: Final = 600.0
"""Machines that became ready within so many seconds show that an offer works."""
TRUSTED: Final = 0.8
"""An offer of which more is expected to come up is not held back: what was never tried is expected to be so good."""


class Room(msgspec.Struct, frozen=True, kw_only=True):
    """How much more a provider lets us have, when it was asked; None: it does not say."""

    machines: int | None = None
    cpus: int | None = None
    memory: int | None = None
    """MB."""
    at: float = 0.0
    """When it was asked; leases that were made after it are not in it."""


class OfferInput(msgspec.Struct, frozen=True, kw_only=True):
    """One offer, and how it stands."""

    pool: WorkerPool
    offer: Offer
    grows: bool
    """Whether machines may be made for its pool at all."""
    limit: int | None
    """So many may be on their way; 0: it is closed; None: as many as are wanted."""
    words: str
    until: float
    template: str
    success: float
    """Which part of its machines is expected to become ready."""
    boot: float
    """Seconds until one is expected to be ready."""
    coming: int
    """Of its template, those that are being made or are planned."""
    ready_lately: int
    asleep: int | None = None
    """Of a static pool: so many of its machines could be woken; None: machines are made."""
    slot: Ad | None = None
    """What the slot of such a machine said when it was awake."""

    @property
    def life(self) -> float:
        """Seconds that a machine lives, from when it is made."""
        return min(filter(None, (self.pool.life, self.offer.life)), default=self.pool.life)

    @property
    def ramp(self) -> int | None:
        """So many more may be made while machines of it fail; None: as many as are wanted."""
        return None if self.success >= TRUSTED else max(4, 2 * self.ready_lately)


class Inputs(msgspec.Struct, frozen=True, kw_only=True):
    """All of it, at one moment."""

    now: float
    """Seconds since the epoch."""
    number: int
    """Of the plan."""
    pools: list[PoolState]
    leases: list[Lease]
    offers: list[OfferInput]
    rooms: dict[str, Room] = {}
    """By provider."""
    spent: dict[str, float] = {}
    """What leases that are over have cost on this day (UTC), by pool."""
    max_actions: int = 250
    settles: float = 0.0
    """Seconds until what is said of jobs and of slots agrees: a job may be shown as idle that has just got a slot."""
    sparse: dict[str, float] = {}
    """Machines with few jobs, for which others have room, and since when."""
    members: list[Member] = []
    """Machines of static pools that hibernate."""
    idle: dict[str, float] = {}
    """Machines of static pools that have no job, and since when."""
    sound: bool = True
    """Whether what is said on the bus is heard: else that nothing waits, or nothing runs, means nothing."""

    def of_pool(self, pool: str) -> list[Lease]:
        """Its leases."""
        return [lease for lease in self.leases if lease.requested.pool == pool]


def gathered(
    book: Book,
    pools: Mapping[str, PoolState],
    *,
    now: float,
    number: int,
    rooms: Mapping[str, Room],
    spent: Mapping[str, float],
    max_actions: int,
    settles: float = 0.0,
    sparse: Mapping[str, float] = MappingProxyType({}),
    hosts: Mapping[str, Host] = MappingProxyType({}),
    idle: Mapping[str, float] = MappingProxyType({}),
    sound: bool = True,
) -> Inputs:
    """The inputs, from what is recorded."""
    leases = sorted(book.leases.values(), key=lambda lease: (lease.made, lease.id))
    coming = Counter(
        template_of(lease.requested.pool, lease.offer) for lease in leases if lease.state in COMING
    )
    lately = Counter(
        (lease.requested.pool, lease.offer.name) for lease in leases if lease.ready > now - LATELY_S
    )
    kept = [pools[name] for name in sorted(pools)]
    known = list(members(kept, hosts))
    return Inputs(
        now=now,
        number=number,
        pools=kept,
        leases=leases,
        offers=[
            _sleeping(state, offer, known, now)
            if state.pool.hibernates
            else _offer(book, state, offer, coming, lately, now)
            for state in kept
            if not state.retired and (state.pool.kind is not PoolKind.STATIC or state.pool.hibernates)
            for offer in state.pool.offers
        ],
        rooms=dict(rooms),
        spent=dict(spent),
        max_actions=max_actions,
        settles=settles,
        sparse=dict(sparse),
        members=known,
        idle=dict(idle),
        sound=sound,
    )


def _offer(
    book: Book,
    state: PoolState,
    offer: Offer,
    coming: Mapping[str, int],
    lately: Mapping[tuple[str, str], int],
    now: float,
) -> OfferInput:
    pool = state.pool.name
    stands, template = standing(book, pool, offer, now), template_of(pool, offer)
    record = book.offers.get(f"{pool}.{offer.name}", OfferRecord())
    return OfferInput(
        pool=state.pool,
        offer=offer,
        grows=state.may_grow,
        limit=stands.limit,
        words=stands.words,
        until=stands.until,
        template=template,
        success=record.success(now),
        boot=usual_boot(record, offer),
        coming=coming.get(template, 0),
        ready_lately=lately.get((pool, offer.name), 0),
    )


def _sleeping(state: PoolState, offer: Offer, known: Sequence[Member], now: float) -> OfferInput:
    """Machines of a static pool that sleep are an offer that costs nothing, of as many as there are."""
    mine = [each for each in known if (each.pool.name, each.offer.name) == (state.pool.name, offer.name)]
    asleep = [each for each in mine if each.may_be_woken(now)]
    said = [slot for each in [*asleep, *mine] for slot in each.host.slots]
    return OfferInput(
        pool=state.pool,
        offer=offer,
        grows=state.may_grow,
        limit=None,
        words="",
        until=0.0,
        template=template_of(state.pool.name, offer),
        success=1.0,
        boot=offer.boot,
        coming=0,
        ready_lately=0,
        asleep=len(asleep),
        slot=said[0] if said else None,
    )


def usual_boot(record: OfferRecord, offer: Offer) -> float:
    """
    Seconds that a machine of an offer usually takes to be ready: measured ones, else what its pool file says.
    """
    boots = sorted(record.boots)
    return boots[len(boots) // 2] if boots else offer.boot


def is_coming(lease: Lease) -> bool:
    """Whether it may become ready, and somebody wants it."""
    return lease.state in COMING and not lease.unwanted


def serves(lease: Lease) -> bool:
    """Whether it takes jobs."""
    return lease.state in SERVING
