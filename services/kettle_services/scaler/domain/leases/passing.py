"""
What happens to leases because time passes.

An attempt to have a machine made is recorded before it is sent, and is sent once. When nobody knows what became of it, the machine
is looked for (`reconciling`), and a second one is asked for only when it is certain that there is none.
"""

from kettle_services.scaler.domain.leases.book import Create, Decision, on_their_way, standing
from kettle_services.scaler.domain.leases.breakers import template_of
from kettle_services.scaler.domain.leases.ending import fail, terminate
from kettle_services.scaler.domain.leases.lease import ORPHAN, STARTING, Lease, Orphan
from kettle_services.scaler.domain.leases.wishes import drain
from kettle_wire.events.lease import (
    LeaseDuplicated,
    LeaseFailed,
    LeaseInDoubt,
    LeaseSubmitting,
    OrphanRemoving,
    Shape,
)
from kettle_wire.leases import LeaseState, Order


def restarted(decision: Decision) -> None:
    """A new process goes on: what was being asked for is in doubt, since nobody hears the answers."""
    for lease in decision.book.leases.values():
        if lease.state is LeaseState.SUBMITTING:
            doubt(decision, lease, "the scaler was started again before its provider had answered")


def due(decision: Decision) -> None:
    """What is to happen because it is time; to be asked after each change, and at least each second."""
    asked: dict[
        str, int
    ] = {}  # by the provider how many are asked for now, and by the template how many more
    leases = decision.book.leases.values()
    for lease in leases:
        if lease.state is LeaseState.SUBMITTING:
            asked[lease.provider] = asked.get(lease.provider, 0) + 1
    for lease in sorted(leases, key=lambda each: (each.made, each.requested.ordinal, each.id)):
        _due(decision, lease, asked)
    for name, orphan in decision.book.orphans.items():
        _due_orphan(decision, name, orphan)


def doubt(decision: Decision, lease: Lease, words: str) -> None:
    """Nobody knows whether there is a machine."""
    until = decision.now + decision.timers.doubt
    decision.on(lease, LeaseInDoubt(attempt=lease.attempt, until=until, words=words))


def _due(decision: Decision, lease: Lease, asked: dict[str, int]) -> None:
    over = decision.now >= lease.until
    match lease.state:
        case LeaseState.REQUESTED:
            _ask(decision, lease, asked)
        case LeaseState.SUBMITTING | LeaseState.IN_DOUBT if over:
            doubt(decision, lease, lease.words or "its provider did not answer in time")
        case LeaseState.SUBMITTING | LeaseState.IN_DOUBT:
            pass
        case _ if over and lease.state in STARTING:
            terminate(decision, lease, _late(lease, decision.now), failed=True)
        case LeaseState.READY | LeaseState.BUSY if over:
            drain(decision, lease, "its life is over", lease.ends)
        case _ if over:
            terminate(decision, lease, lease.words)
        case LeaseState.TERMINATING:
            decision.look(lease.provider, lease.handle)
        case _:
            if lease.id in decision.seen.absent:
                decision.look(lease.provider, lease.handle)
            if lease.ready:
                _silent(decision, lease)
    _due_duplicates(decision, lease)


def _late(lease: Lease, now: float) -> str:
    said = f", and said last: {lease.progress}" if lease.progress else ""
    return f"it did not become ready: it was {lease.state.value} for {now - lease.since:.0f} s{said}"


def _ask(decision: Decision, lease: Lease, asked: dict[str, int]) -> None:
    """Have its provider asked for a machine, if that is possible now."""
    pool, offer, book, now = lease.requested.pool, lease.offer, decision.book, decision.now
    key = template_of(pool, offer)
    stands = standing(book, pool, offer, now)
    records = (
        book.offers.get(f"{pool}.{offer.name}"),
        book.templates.get(key),
        book.providers.get(offer.provider),
    )
    for record in records:
        closed = record.closed if record is not None else None
        if closed is not None and not closed.is_over(now):  # the planner finds another offer
            decision.on(lease, LeaseFailed(words=stands.words, error=closed.error))
            return
    if now >= lease.until:
        trouble = decision.seen.trouble.get(offer.provider, "its provider has not answered yet")
        fail(decision, lease, lease.words or stands.words or trouble, None)
        return
    if now < lease.again or lease.provider not in decision.seen.listed:
        return
    if stands.limit is not None and on_their_way(book, pool, offer) + asked.get(key, 0) >= stands.limit:
        return
    if asked.get(offer.provider, 0) >= decision.timers.at_once:
        return
    for each in (key, offer.provider):
        asked[each] = asked.get(each, 0) + 1
    attempt = lease.attempt + 1
    decision.on(lease, LeaseSubmitting(attempt=attempt, until=now + decision.timers.answer))
    order = Order(
        lease=lease.id,
        attempt=attempt,
        offer=offer,
        life=lease.requested.life,
        pool=pool,
        owner=lease.requested.owner,
        group=_group(lease),
        attributes=lease.requested.attributes,
        start=lease.requested.start,
        whole=lease.requested.shape is Shape.DEDICATED,
    )
    decision.acts.append(Create(lease.provider, order))


def _group(lease: Lease) -> str:
    """
    The group for which iam keeps a machine; of several groups, besides owners, and of names that iam does not take, the machine's
    START alone decides.
    """
    groups = lease.requested.groups
    one = groups[0] if len(groups) == 1 and not lease.requested.owner else ""
    return one if all("!" <= letter <= "~" for letter in one) else ""


def _silent(decision: Decision, lease: Lease) -> None:
    """
    A worker that is not heard of is looked at; when it has to have ended itself by now, it is removed.

    Of many that fall silent together none is removed for a while: then something else is wrong.
    """
    timers, silent = decision.timers, decision.seen.silent(lease.id, decision.now)
    record = decision.book.providers.get(lease.provider)
    if silent <= timers.dead or (record is not None and record.frozen > decision.now):
        return
    decision.look(lease.provider, lease.handle)
    if silent > timers.dead + timers.orphan_grace:
        terminate(decision, lease, f"nothing was heard of it for {silent:.0f} s")


def _due_duplicates(decision: Decision, lease: Lease) -> None:
    for handle, removal in lease.duplicates.items():
        if decision.now < removal.until:
            decision.look(lease.provider, handle)
            continue
        count = removal.count + 1
        until = decision.now + decision.removal_pause(f"{lease.id}{handle}", count)
        decision.on(lease, LeaseDuplicated(handle=handle, removal=count, until=until))
        decision.remove(lease.provider, handle)


def _due_orphan(decision: Decision, name: str, orphan: Orphan) -> None:
    provider, handle = orphan.found.provider, orphan.found.handle
    if decision.now >= orphan.until:
        count = orphan.removal + 1
        until = decision.now + decision.removal_pause(name, count)
        decision.record(f"{ORPHAN}/{name}", OrphanRemoving(removal=count, until=until))
        decision.remove(provider, handle)
    elif orphan.removal:
        decision.look(provider, handle)
