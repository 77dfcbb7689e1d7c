"""How leases end: what closes with a failure, how a machine is removed, and what proves that it is gone."""

from kettle_services.scaler.domain.leases.book import Book, Decided, Remove
from kettle_services.scaler.domain.leases.breakers import (
    OFFER,
    PROVIDER,
    TEMPLATE,
    fails_in_a_row,
    pause_end,
    template_of,
    template_trial_end,
)
from kettle_services.scaler.domain.leases.lease import KIND, LEAVING, Lease
from kettle_services.scaler.domain.leases.seen import Seen
from kettle_services.scaler.domain.leases.timers import doubled, jittered
from kettle_wire.events.lease import (
    LeaseFailed,
    LeaseGone,
    LeaseLost,
    LeaseTerminating,
    OfferClosed,
    OfferMeasured,
    ProviderClosed,
    ProviderOpened,
    TemplateClosed,
)
from kettle_wire.leases import ErrorClass, LeaseState

_HOUR_S = 3600.0


def fail(
    book: Book, decided: Decided, lease: Lease, words: str, error: ErrorClass | None, now: float
) -> None:
    """There is no machine, and there never was one."""
    decided.record(f"{KIND}/{lease.id}", LeaseFailed(words=words, error=error))
    if error is not None:
        blame(book, decided, lease, words, error, now)


def blame(
    book: Book, decided: Decided, lease: Lease, words: str, error: ErrorClass | None, now: float
) -> None:
    """
    What is not used for a while because a machine did not come up; `error`: what the provider said, if it said something.
    """
    offer = f"{lease.requested.pool}.{lease.offer.name}"
    match error:
        case ErrorClass.AUTH | ErrorClass.CONFIG | ErrorClass.QUOTA:
            close_provider(book, decided, lease.provider, words, error, now)
        case ErrorClass.IMAGE:
            _close_template(book, decided, lease, words, error, now, for_good=True)
        case ErrorClass.RATE:
            pass
        case ErrorClass.CAPACITY | ErrorClass.REQUEST | ErrorClass.TRANSIENT:
            _close_offer(book, decided, offer, words, error, now)
        case None:
            decided.record(f"{OFFER}/{offer}", OfferMeasured(lease=lease.id))
            template = book.templates.get(template_of(lease.requested.pool, lease.offer))
            if template is None or not template.proven:
                _close_template(book, decided, lease, words, None, now)
            elif fails_in_a_row(book.offers.get(offer)):
                _close_offer(book, decided, offer, words, None, now)


def close_provider(
    book: Book, decided: Decided, provider: str, words: str, error: ErrorClass, now: float
) -> None:
    """
    Nothing is asked of a provider for a while; if it does not know us, until it does. What is closed already stays as it is.
    """
    record = book.providers.get(provider)
    stream = f"{PROVIDER}/{provider}"
    if record is not None and record.closed is not None and not record.closed.is_over(now):
        return
    if any(known == stream and isinstance(event, ProviderClosed) for known, event in decided.changes):
        return
    times = (record.times if record is not None else 0) + 1
    waits = error not in {ErrorClass.AUTH, ErrorClass.CONFIG}
    until = pause_end(times, provider, now, book.timers) if waits else 0.0
    decided.record(stream, ProviderClosed(error=error, words=words, until=until, times=times))


def _close_offer(
    book: Book, decided: Decided, offer: str, words: str, error: ErrorClass | None, now: float
) -> None:
    record = book.offers.get(offer)
    stream = f"{OFFER}/{offer}"
    if record is not None and record.closed is not None and not record.closed.is_over(now):
        return
    if any(known == stream and isinstance(event, OfferClosed) for known, event in decided.changes):
        return
    times = (record.times if record is not None else 0) + 1
    until = pause_end(times, offer, now, book.timers)
    decided.record(stream, OfferClosed(words=words, until=until, times=times, error=error))


def _close_template(
    book: Book,
    decided: Decided,
    lease: Lease,
    words: str,
    error: ErrorClass | None,
    now: float,
    *,
    for_good: bool = False,
) -> None:
    key = template_of(lease.requested.pool, lease.offer)
    stream = f"{TEMPLATE}/{key}"
    record = book.templates.get(key)
    if record is not None and record.closed is not None and not record.closed.is_over(now):
        return
    if any(known == stream for known, _ in decided.changes):
        return
    times = (record.times if record is not None else 0) + 1
    until = 0.0 if for_good else template_trial_end(times, key, now, book.timers)
    decided.record(stream, TemplateClosed(words=words, until=until, times=times, error=error))


def terminate(
    book: Book,
    seen: Seen,
    decided: Decided,
    lease: Lease,
    why: str,
    now: float,
    *,
    failed: bool = False,
    error: ErrorClass | None = None,
) -> None:
    """
    Have the machine of a lease removed, which has one; `failed`: it did not come up or does not work, and is counted so.

    Until its provider has answered once since this process began, that is only recorded.
    """
    removal = lease.removal + 1
    failed = failed or lease.failed
    pause = jittered(
        doubled(book.timers.removal, book.timers.longest_removal, removal), f"{lease.id}{removal}"
    )
    decided.record(
        f"{KIND}/{lease.id}", LeaseTerminating(why=why, removal=removal, until=now + pause, failed=failed)
    )
    if failed and lease.state is not LeaseState.TERMINATING:
        blame(book, decided, lease, why, error, now)
    if lease.provider in seen.listed:
        decided.acts.append(Remove(lease.provider, lease.handle, console=failed and not lease.console))


def gone(book: Book, seen: Seen, decided: Decided, lease: Lease, words: str, now: float) -> None:
    """The machine of a lease is gone, which its provider has proven."""
    stream = f"{KIND}/{lease.id}"
    if lease.state not in LEAVING:
        decided.record(stream, LeaseLost(words=words, until=now))
        if not lease.ready:
            blame(book, decided, lease, words, None, now)
    seconds = max(0.0, now - lease.accepted)
    decided.record(
        stream,
        LeaseGone(
            words=words,
            seconds=seconds,
            cost=lease.offer.price * seconds / _HOUR_S,
            currency=lease.offer.currency,
            boot=max(0.0, lease.ready - lease.accepted) if lease.ready else 0.0,
        ),
    )
    seen.forget(lease.id, lease.provider, lease.handle)
    record = book.providers.get(lease.provider)
    if record is not None and record.closed is not None and record.closed.error is ErrorClass.QUOTA:
        decided.record(f"{PROVIDER}/{lease.provider}", ProviderOpened(why=f"{lease.id} has left room"))
