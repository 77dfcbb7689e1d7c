"""What is decided about leases on, and what a decision is."""

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from kettle_services.scaler.domain.leases.breakers import (
    OfferRecord,
    ProviderRecord,
    TemplateRecord,
    template_of,
)
from kettle_services.scaler.domain.leases.lease import COMING, KIND, Lease, Orphan
from kettle_services.scaler.domain.leases.seen import Seen
from kettle_services.scaler.domain.leases.timers import Timers, doubled, jittered
from kettle_wire.events.base import Event
from kettle_wire.events.lease import LeaseEvent
from kettle_wire.leases import LeaseState, Order
from kettle_wire.worker_pools import Offer


class Create(msgspec.Struct, frozen=True):
    """Have a machine made, once."""

    provider: str
    order: Order


class Remove(msgspec.Struct, frozen=True):
    """Have a machine removed."""

    provider: str
    handle: str
    console: bool = False
    """Tell what it wrote first."""


class Look(msgspec.Struct, frozen=True):
    """See how a machine is."""

    provider: str
    handle: str


class Drain(msgspec.Struct, frozen=True):
    """Have a machine take no more jobs."""

    lease: str
    why: str
    busy: bool = False
    """Also if some run on it, which end by themselves; else only if none has anything of it now."""


class Dismiss(msgspec.Struct, frozen=True):
    """Have a machine that is gone be let in no more."""

    lease: str


Act = Create | Remove | Look | Drain | Dismiss


class Book:
    """All leases and what they are made from, as they are folded from the log."""

    def __init__(
        self,
        leases: Mapping[str, Lease],
        orphans: Mapping[str, Orphan],
        offers: Mapping[str, OfferRecord],
        templates: Mapping[str, TemplateRecord],
        providers: Mapping[str, ProviderRecord],
        timers: Timers | None = None,
    ) -> None:
        """The mappings are looked at and never changed."""
        self.leases: Final = leases
        self.orphans: Final = orphans
        self.offers: Final = offers
        self.templates: Final = templates
        self.providers: Final = providers
        self.timers: Final = timers or Timers()

    def of_provider(self, provider: str) -> Iterable[Lease]:
        """The leases of a provider."""
        return [lease for lease in self.leases.values() if lease.provider == provider]


class Decision:
    """
    What is recorded, each event with its stream, and what is done when that is committed; decided at one moment of what is there.
    """

    def __init__(self, book: Book, seen: Seen, now: float) -> None:
        self.book: Final = book
        self.seen: Final = seen
        self.now: Final = now
        self.timers: Final = book.timers
        self.changes: Final[list[tuple[str, Event]]] = []
        self.acts: Final[list[Act]] = []

    def __bool__(self) -> bool:
        return bool(self.changes or self.acts)

    def record(self, stream: str, event: Event) -> None:
        """It happens."""
        self.changes.append((stream, event))

    def on(self, lease: Lease, event: LeaseEvent) -> None:
        """It happens to a lease."""
        self.changes.append((f"{KIND}/{lease.id}", event))

    def changes_of(self, stream: str) -> list[Event]:
        """What is decided already about a stream."""
        return [event for known, event in self.changes if known == stream]

    def look(self, provider: str, handle: str) -> None:
        """See how a machine is, if that was not done just now."""
        if provider in self.seen.listed and self.seen.may_look(
            provider, handle, self.now, self.timers.look, self.timers.longest_look
        ):
            self.acts.append(Look(provider, handle))

    def remove(self, provider: str, handle: str, *, console: bool = False) -> None:
        """
        Have a machine removed; not before its provider has answered once since this process began, so that a restart alone removes
        nothing.
        """
        if provider in self.seen.listed:
            self.acts.append(Remove(provider, handle, console))

    def removal_pause(self, name: str, count: int) -> float:
        """From the `count`-th request for a removal, or a machine, to the next."""
        timers = self.timers
        return jittered(doubled(timers.removal, timers.longest_removal, count), f"{name}{count}")


class Standing(msgspec.Struct, frozen=True):
    """How many machines may be asked for."""

    limit: int | None = None
    """So many may be on their way at the same time; None: as many as are wanted."""
    words: str = ""
    """Why there is a limit."""
    until: float = 0.0
    """How long, seconds since the epoch; 0: until something else happens."""


def standing(book: Book, pool: str, offer: Offer, now: float) -> Standing:
    """
    Whether machines of an offer may be asked for now: none, a single one to see, or as many as are wanted.
    """
    record = book.offers.get(f"{pool}.{offer.name}")
    template = book.templates.get(template_of(pool, offer))
    provider = book.providers.get(offer.provider)
    single = ""
    for name, each in (
        (f"provider {offer.provider}", provider),
        (f"the template of offer {offer.name}", template),
        (f"offer {offer.name}", record),
    ):
        closed = each.closed if each is not None else None
        if closed is not None and not closed.is_over(now):
            return Standing(0, f"{name} is closed: {closed.words}", closed.until)
        if closed is not None:
            single = f"{name} was closed, and is tried with one machine: {closed.words}"
    if not single and (template is None or not template.proven):
        single = (
            f"no machine of the template of offer {offer.name} has become ready yet: it is tried with one"
        )
    return Standing(1, single) if single else Standing()


def on_their_way(book: Book, pool: str, offer: Offer) -> int:
    """
    How many machines of the same template and provider are being made, those that have only been planned not counted.
    """
    key = template_of(pool, offer)
    return sum(
        lease.state in COMING
        and lease.state is not LeaseState.REQUESTED
        and lease.requested.pool == pool
        and template_of(pool, lease.offer) == key
        for lease in book.leases.values()
    )
