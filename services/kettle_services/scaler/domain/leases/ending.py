"""
How leases end: what closes with a failure, how a machine is removed, and what is recorded when it is gone.
"""

from kettle_services.scaler.domain.leases.book import Decision, Dismiss
from kettle_services.scaler.domain.leases.breakers import (
    OFFER,
    PROVIDER,
    TEMPLATE,
    Closure,
    fails_in_a_row,
    pause_end,
    template_of,
    template_trial_end,
)
from kettle_services.scaler.domain.leases.lease import LEAVING, Lease
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


def fail(decision: Decision, lease: Lease, words: str, error: ErrorClass | None) -> None:
    """There is no machine, and there never was one; `error`: what its provider said."""
    decision.on(lease, LeaseFailed(words=words, error=error))
    if error is not None:
        blame(decision, lease, words, error)


def blame(decision: Decision, lease: Lease, words: str, error: ErrorClass | None) -> None:
    """
    Close what is not used for a while because a machine did not come up; `error` None: its provider has said nothing.
    """
    match error:
        case ErrorClass.AUTH | ErrorClass.CONFIG | ErrorClass.QUOTA:
            close_provider(decision, lease.provider, words, error)
        case ErrorClass.IMAGE:
            _close_template(decision, lease, words, error)
        case ErrorClass.RATE:
            pass  # its provisioner asks more slowly
        case ErrorClass.CAPACITY | ErrorClass.REQUEST | ErrorClass.TRANSIENT:
            _close_offer(decision, lease, words, error)
        case None:
            name = _offer(lease)
            decision.record(f"{OFFER}/{name}", OfferMeasured(lease=lease.id))
            template = decision.book.templates.get(template_of(lease.requested.pool, lease.offer))
            if template is None or not template.proven:
                _close_template(decision, lease, words, None)
            elif fails_in_a_row(decision.book.offers.get(name), len(decision.changes_of(f"{OFFER}/{name}"))):
                _close_offer(decision, lease, words, None)


def _offer(lease: Lease) -> str:
    return f"{lease.requested.pool}.{lease.offer.name}"


def _is_closed(decision: Decision, closed: Closure | None, stream: str, kind: type[object]) -> bool:
    """Whether something is closed already: one failure of many that were on their way together is enough."""
    decided = any(isinstance(event, kind) for event in decision.changes_of(stream))
    return decided or (closed is not None and not closed.is_over(decision.now))


def close_provider(decision: Decision, provider: str, words: str, error: ErrorClass) -> None:
    """Nothing is asked of a provider for a while; if it does not know us, until it does."""
    record = decision.book.providers.get(provider)
    stream = f"{PROVIDER}/{provider}"
    if _is_closed(decision, record.closed if record else None, stream, ProviderClosed):
        return
    times = (record.times if record else 0) + 1
    for_good = error in {ErrorClass.AUTH, ErrorClass.CONFIG}
    until = 0.0 if for_good else pause_end(times, provider, decision.now, decision.timers)
    decision.record(stream, ProviderClosed(error=error, words=words, until=until, times=times))


def _close_offer(decision: Decision, lease: Lease, words: str, error: ErrorClass | None) -> None:
    name = _offer(lease)
    record, stream = decision.book.offers.get(name), f"{OFFER}/{name}"
    if _is_closed(decision, record.closed if record else None, stream, OfferClosed):
        return
    times = (record.times if record else 0) + 1
    until = pause_end(times, name, decision.now, decision.timers)
    decision.record(stream, OfferClosed(words=words, until=until, times=times, error=error))


def _close_template(decision: Decision, lease: Lease, words: str, error: ErrorClass | None) -> None:
    key = template_of(lease.requested.pool, lease.offer)
    record, stream = decision.book.templates.get(key), f"{TEMPLATE}/{key}"
    if _is_closed(decision, record.closed if record else None, stream, TemplateClosed):
        return
    times = (record.times if record else 0) + 1
    for_good = error is ErrorClass.IMAGE
    until = 0.0 if for_good else template_trial_end(times, key, decision.now, decision.timers)
    decision.record(stream, TemplateClosed(words=words, until=until, times=times, error=error))


def terminate(
    decision: Decision, lease: Lease, why: str, *, failed: bool = False, error: ErrorClass | None = None
) -> None:
    """
    Have the machine of a lease removed; `failed`: it did not come up or does not work, and counts against its offer.
    """
    first = lease.state is not LeaseState.TERMINATING
    removal = lease.removal + 1
    failed = failed or lease.failed
    until = decision.now + decision.removal_pause(lease.id, removal)
    decision.on(lease, LeaseTerminating(why=why, removal=removal, until=until, failed=failed))
    if failed and first:
        blame(decision, lease, why, error)
    decision.remove(lease.provider, lease.handle, console=failed and not lease.console)


def gone(decision: Decision, lease: Lease, words: str) -> None:
    """The machine of a lease is gone, which its provider has proven."""
    if lease.state not in LEAVING:
        decision.on(lease, LeaseLost(words=words, until=decision.now))
        if not lease.ready:
            blame(decision, lease, words, None)
    seconds = max(0.0, decision.now - lease.accepted)
    boot = max(0.0, lease.ready - lease.accepted) if lease.ready else 0.0
    cost = lease.offer.price * seconds / _HOUR_S
    decision.on(
        lease,
        LeaseGone(words=words, seconds=seconds, cost=cost, currency=lease.offer.currency, boot=boot),
    )
    decision.acts.append(Dismiss(lease.id))
    decision.seen.forget(lease.id, lease.provider, lease.handle)
    record, stream = decision.book.providers.get(lease.provider), f"{PROVIDER}/{lease.provider}"
    if (
        record is not None
        and record.closed is not None
        and record.closed.error is ErrorClass.QUOTA
        and not decision.changes_of(stream)
    ):
        decision.record(stream, ProviderOpened(why=f"{lease.id} has left room"))
