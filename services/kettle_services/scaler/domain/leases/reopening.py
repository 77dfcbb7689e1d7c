"""What is closed of a pool is tried again, because somebody says so."""

from collections.abc import Iterator

from kettle_services.scaler.domain.leases.book import Book
from kettle_services.scaler.domain.leases.breakers import (
    OFFER,
    PROVIDER,
    TEMPLATE,
    OfferRecord,
    ProviderRecord,
    TemplateRecord,
    template_of,
)
from kettle_wire.events.base import Event
from kettle_wire.events.lease import OfferOpened, ProviderOpened, TemplateOpened
from kettle_wire.worker_pools import Offer, WorkerPool


def reopened(book: Book, pool: WorkerPool, why: str) -> list[tuple[str, Event]]:
    """Open all that is closed of a pool: each once, providers and templates that offers share too."""
    closed = {
        stream: event
        for offer in pool.offers
        for stream, record, event in _records(book, pool, offer, why)
        if record is not None and record.closed is not None
    }
    return list(closed.items())


def _records(
    book: Book, pool: WorkerPool, offer: Offer, why: str
) -> Iterator[tuple[str, ProviderRecord | TemplateRecord | OfferRecord | None, Event]]:
    """What an offer may be closed by, and the event that opens it."""
    name, key = f"{pool.name}.{offer.name}", template_of(pool.name, offer)
    yield f"{PROVIDER}/{offer.provider}", book.providers.get(offer.provider), ProviderOpened(why=why)
    yield f"{TEMPLATE}/{key}", book.templates.get(key), TemplateOpened(why=why)
    yield f"{OFFER}/{name}", book.offers.get(name), OfferOpened(why=why)
