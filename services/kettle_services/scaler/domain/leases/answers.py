"""What follows from what a provisioner answers to a request for machines."""

from kettle_services.scaler.domain.leases.book import Decision
from kettle_services.scaler.domain.leases.ending import fail, terminate
from kettle_services.scaler.domain.leases.lease import Lease, with_handle
from kettle_services.scaler.domain.leases.passing import doubt
from kettle_services.scaler.domain.leases.timers import boot_limit
from kettle_wire.commands.provisioner import Created, Trouble
from kettle_wire.events.lease import LeaseAccepted, LeaseDeferred, LeaseFailed
from kettle_wire.leases import ErrorClass, LeaseState

_PASSES = frozenset({ErrorClass.TRANSIENT, ErrorClass.RATE})


def answered(decision: Decision, created: Created) -> None:
    """An answer that nobody waits for any more says nothing: what it made is found."""
    lease = decision.book.leases.get(created.lease)
    waiting = {LeaseState.SUBMITTING, LeaseState.IN_DOUBT}
    if lease is None or lease.attempt != created.attempt or lease.state not in waiting:
        return
    if created.handle:
        accept(decision, lease, created.handle)
    elif created.trouble is not None:
        _refused(decision, lease, created.trouble)
    else:
        doubt(decision, lease, created.words)


def accept(decision: Decision, lease: Lease, handle: str, *, found: bool = False) -> None:
    """There is a machine; one that nobody wants any more is removed at once."""
    record = decision.book.offers.get(f"{lease.requested.pool}.{lease.offer.name}")
    limit = boot_limit(record.boots if record else (), lease.offer.boot, decision.timers)
    decision.seen.absent.pop(lease.id, None)
    decision.on(lease, LeaseAccepted(handle=handle, until=decision.now + limit, found=found))
    if lease.unwanted:
        terminate(decision, with_handle(lease, handle), lease.unwanted)


def _refused(decision: Decision, lease: Lease, trouble: Trouble) -> None:
    """Nothing was made: it is tried again soon, or the lease is over."""
    error = trouble.error or ErrorClass.TRANSIENT
    if lease.unwanted:
        decision.on(lease, LeaseFailed(words=lease.unwanted))
    elif error not in _PASSES or lease.attempt >= decision.timers.attempts:
        fail(decision, lease, trouble.words, error)
    else:
        pause = max(trouble.retry_after, decision.removal_pause(lease.id, lease.attempt))
        again = decision.now + pause
        event = LeaseDeferred(
            attempt=lease.attempt,
            error=error,
            words=trouble.words,
            again=again,
            until=again + decision.timers.answer,
        )
        decision.on(lease, event)
