"""
What happens to leases when time passes, when a provisioner answers, when a machine speaks, and when the planner changes its mind.

An attempt to have a machine made is recorded before it is sent, and is sent once. When nobody knows what became of it, the machine
is looked for (`reconciling`), and a second one is asked for only when it is certain that there is none.
"""

from kettle_services.scaler.domain.leases.book import (
    Book,
    Create,
    Decided,
    Look,
    Remove,
    on_their_way,
    standing,
)
from kettle_services.scaler.domain.leases.breakers import OFFER, PROVIDER, TEMPLATE, template_of
from kettle_services.scaler.domain.leases.ending import fail, terminate
from kettle_services.scaler.domain.leases.lease import (
    KIND,
    LEAVING,
    ORPHAN,
    SERVING,
    STARTING,
    Lease,
    Orphan,
)
from kettle_services.scaler.domain.leases.seen import Seen
from kettle_services.scaler.domain.leases.timers import boot_limit, doubled, jittered
from kettle_wire.commands.provisioner import Created, Trouble
from kettle_wire.events.lease import (
    LeaseAccepted,
    LeaseBusy,
    LeaseDeferred,
    LeaseDraining,
    LeaseDuplicated,
    LeaseExtended,
    LeaseInDoubt,
    LeaseJoining,
    LeaseQuarantined,
    LeaseReady,
    LeaseSubmitting,
    LeaseUnwanted,
    LeaseValidating,
    OfferMeasured,
    OfferOpened,
    OrphanRemoving,
    ProviderOpened,
    TemplateOpened,
)
from kettle_wire.leases import ErrorClass, LeaseState, Order

_RETIRES_EARLIER = 0.1
"""Part of its life by which a machine may retire earlier, so that those that were made together do not leave together."""
_QUARANTINE_S = 60.0
"""So long what is in quarantine may still report what failed."""


def restarted(book: Book, now: float) -> Decided:
    """A new process goes on: what was being asked for is in doubt, since nobody hears the answers."""
    decided = Decided()
    for lease in book.leases.values():
        if lease.state is LeaseState.SUBMITTING:
            _doubt(book, decided, lease, "the scaler was started again before its provider had answered", now)
    return decided


def due(book: Book, seen: Seen, now: float) -> Decided:
    """What is to happen because it is time; asked again soon after whatever has changed, and at least each second."""
    decided = Decided()
    asked: dict[str, int] = {}
    for lease in sorted(book.leases.values(), key=lambda each: (each.made, each.requested.ordinal)):
        _due(book, seen, decided, lease, asked, now)
    for name, orphan in book.orphans.items():
        _due_orphan(book, seen, decided, name, orphan, now)
    return decided


def _due(book: Book, seen: Seen, decided: Decided, lease: Lease, asked: dict[str, int], now: float) -> None:
    match lease.state:
        case LeaseState.REQUESTED:
            _ask(book, seen, decided, lease, asked, now)
        case LeaseState.SUBMITTING | LeaseState.IN_DOUBT:
            if now >= lease.until:
                _doubt(book, decided, lease, lease.words or "its provider did not answer in time", now)
        case _ if lease.state in STARTING:
            if now >= lease.until:
                terminate(book, seen, decided, lease, _late(lease, now), now, failed=True)
        case LeaseState.TERMINATING:
            if now >= lease.until:
                terminate(book, seen, decided, lease, lease.words, now)
            else:
                _look(book, seen, decided, lease, now)
        case LeaseState.DRAINING | LeaseState.QUARANTINED | LeaseState.LOST:
            if now >= lease.until:
                terminate(book, seen, decided, lease, lease.words, now)
        case _:
            if now >= lease.until:
                drain(book, seen, decided, lease, "its life is over", lease.ends, now)
    if lease.handle and seen.silent(lease.id, now) > book.timers.dead and lease.ready:
        _silent(book, seen, decided, lease, now)
    for handle, removal in lease.duplicates.items():
        if now >= removal.until:
            again = _pause(book, f"{lease.id}{handle}", removal.count + 1)
            decided.record(
                f"{KIND}/{lease.id}",
                LeaseDuplicated(handle=handle, removal=removal.count + 1, until=now + again),
            )
            _remove(seen, decided, lease.provider, handle)
        elif seen.may_look(lease.provider, handle, now, book.timers.look, book.timers.longest_look):
            decided.acts.append(Look(lease.provider, handle))


def _ask(book: Book, seen: Seen, decided: Decided, lease: Lease, asked: dict[str, int], now: float) -> None:
    """Have its provider asked for a machine, if that is possible now."""
    pool, offer = lease.requested.pool, lease.offer
    stands = standing(book, pool, offer, now)
    record = book.offers.get(f"{pool}.{offer.name}")
    template = book.templates.get(template_of(pool, offer))
    for closed in (record.closed if record else None, template.closed if template else None):
        if closed is not None and not closed.is_over(now):  # the planner finds another offer
            decided.record(f"{KIND}/{lease.id}", _given_up(stands.words, closed.error))
            return
    if now >= lease.until:
        said = lease.words or stands.words or "its provider could not be asked"
        fail(book, decided, lease, said, None, now)
        return
    if now < lease.again or lease.provider not in seen.listed:
        return
    key = template_of(pool, offer)
    if stands.limit is not None and on_their_way(book, pool, offer) + asked.get(key, 0) >= stands.limit:
        return
    asked[key] = asked.get(key, 0) + 1
    attempt = lease.attempt + 1
    decided.record(f"{KIND}/{lease.id}", LeaseSubmitting(attempt=attempt, until=now + book.timers.answer))
    order = Order(
        lease=lease.id,
        attempt=attempt,
        offer=offer,
        life=lease.requested.life,
        owner=lease.requested.owner,
        attributes=lease.requested.attributes,
    )
    decided.acts.append(Create(lease.provider, order))
