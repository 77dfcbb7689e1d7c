"""
What follows from what providers have: leases and machines are compared in both directions.

That a machine is not shown means little: a list may be incomplete or late, and a credential may be the wrong one. A machine is given
up when a complete list is without it, another machine of ours is in it or its worker is silent, it is old enough to be shown, and
its provider says twice, asked for it alone, that it is gone.
"""

import hashlib
from collections.abc import Iterable, Sequence

from kettle_services.scaler.domain.leases.answers import accept
from kettle_services.scaler.domain.leases.book import Book, Decision, Look
from kettle_services.scaler.domain.leases.breakers import PROVIDER
from kettle_services.scaler.domain.leases.ending import close_provider, gone, terminate
from kettle_services.scaler.domain.leases.lease import LEAVING, ORPHAN, STARTING, Lease
from kettle_services.scaler.domain.leases.seen import Absence
from kettle_wire.commands.provisioner import (
    MachineLooked,
    MachineRemoved,
    MachinesFound,
    Trouble,
)
from kettle_wire.events.lease import (
    LeaseBooting,
    LeaseConsole,
    LeaseDuplicated,
    LeaseDuplicateGone,
    LeaseFailed,
    OrphanFound,
    OrphanGone,
    ProviderFrozen,
    ProviderOpened,
    ProviderThawed,
)
from kettle_wire.leases import ErrorClass, LeaseState, MachineFound, MachineState

_TWICE = 2
_UNKNOWN = frozenset({ErrorClass.AUTH, ErrorClass.CONFIG})
"""Classes of errors that say that the provider does not know us."""


def listed(decision: Decision, provider: str, found: MachinesFound) -> None:
    """A provider has said which machines of ours it has."""
    if found.trouble is not None:
        troubled(decision, provider, found.trouble)
        return
    decision.seen.listed[provider] = decision.now
    decision.seen.visibility[provider] = found.visibility
    decision.seen.trouble.pop(provider, None)
    _known_again(decision, provider)
    there = [machine for machine in found.machines if machine.state is not MachineState.GONE]
    by_lease: dict[str, list[MachineFound]] = {}
    for machine in there:
        by_lease.setdefault(machine.lease, []).append(machine)
    for name, machines in by_lease.items():
        lease = decision.book.leases.get(name)
        if lease is None or lease.provider != provider or not lease.attempt:
            _orphaned(decision, provider, machines)
        else:
            _compare(decision, lease, machines)
    if found.complete:
        _missing(decision, provider, {machine.handle for machine in there}, by_lease.keys())


def troubled(decision: Decision, provider: str, trouble: Trouble) -> None:
    """It could not be asked, which says nothing of any machine, but perhaps of our credential."""
    decision.seen.trouble[provider] = trouble.words
    _close_if_unknown(decision, provider, trouble)


def _close_if_unknown(decision: Decision, provider: str, trouble: Trouble) -> None:
    if trouble.error is ErrorClass.AUTH or trouble.error is ErrorClass.CONFIG:
        close_provider(decision, provider, trouble.words, trouble.error)


def _known_again(decision: Decision, provider: str) -> None:
    record = decision.book.providers.get(provider)
    if record is not None and record.closed is not None and record.closed.error in _UNKNOWN:
        decision.record(f"{PROVIDER}/{provider}", ProviderOpened(why="it answers again"))


def _compare(decision: Decision, lease: Lease, machines: Sequence[MachineFound]) -> None:
    """A lease and the machines that carry its name."""
    ours = next((machine for machine in machines if machine.handle == lease.handle), None)
    if not lease.handle:
        if lease.state is LeaseState.SUBMITTING:
            return  # the answer comes
        ours = min(machines, key=lambda machine: (machine.created, machine.handle))
        accept(decision, lease, ours.handle, found=True)
    elif ours is not None:
        decision.seen.there(lease.id, lease.provider, lease.handle)
        _how_it_is(decision, lease, ours)
    for machine in machines:
        if machine is not ours and machine.handle not in lease.duplicates:
            until = decision.now + decision.removal_pause(f"{lease.id}{machine.handle}", 1)
            decision.on(lease, LeaseDuplicated(handle=machine.handle, removal=1, until=until))
            decision.remove(lease.provider, machine.handle)


def _how_it_is(decision: Decision, lease: Lease, machine: MachineFound) -> None:
    """What a provider says of a machine that is there."""
    if lease.state is LeaseState.TERMINATING:
        return
    match machine.state:
        case MachineState.BROKEN:
            words = machine.words or "its provider says that it will never work"
            terminate(decision, lease, words, failed=True, error=machine.error)
        case MachineState.RUNNING if lease.state is LeaseState.ACCEPTED:
            decision.on(lease, LeaseBooting(until=lease.until))
        case MachineState.STOPPING:
            terminate(decision, lease, machine.words or "its provider takes it back")
        case _:
            pass


def _orphaned(decision: Decision, provider: str, machines: Iterable[MachineFound]) -> None:
    """
    Machines that no lease wants are removed after a while: they may be wanted by a record that was set back.
    """
    known = {each.found.handle for each in decision.book.orphans.values() if each.found.provider == provider}
    for machine in machines:
        if machine.handle in known:
            continue
        digest = hashlib.sha256(machine.handle.encode()).hexdigest()[:16]
        event = OrphanFound(
            provider=provider,
            handle=machine.handle,
            lease=machine.lease,
            state=machine.state,
            until=decision.now + decision.timers.orphan_grace,
        )
        decision.record(f"{ORPHAN}/{provider}.{digest}.{decision.now:.0f}", event)


def _missing(decision: Decision, provider: str, handles: set[str], names: Iterable[str]) -> None:
    """What a complete list is without."""
    leases = [lease for lease in decision.book.leases.values() if lease.provider == provider]
    for lease in leases:
        if lease.state is LeaseState.IN_DOUBT and lease.id not in names:
            _not_made(decision, lease)
    held = [lease for lease in leases if lease.handle and lease.state is not LeaseState.TERMINATING]
    missing = [lease for lease in held if lease.handle not in handles and _is_shown(decision, lease)]
    for lease in missing:
        absence = decision.seen.absent.setdefault(lease.id, Absence(decision.now))
        absence.lists += 1
        absence.witness = len(missing) < len(held)
        decision.look(provider, lease.handle)
    wanted = [lease for lease in held if lease.state not in LEAVING]
    _guard(decision, provider, sum(_seems_lost(decision, lease) for lease in wanted), len(wanted))
    for orphan in decision.book.orphans.values():
        if orphan.found.provider == provider and orphan.found.handle not in handles:
            decision.look(provider, orphan.found.handle)


def _seems_lost(decision: Decision, lease: Lease) -> bool:
    return lease.id in decision.seen.absent or (
        lease.ready > 0 and decision.seen.silent(lease.id, decision.now) > decision.timers.dead
    )


def _is_shown(decision: Decision, lease: Lease) -> bool:
    return decision.now - lease.accepted > _visibility(decision, lease.provider)


def _visibility(decision: Decision, provider: str) -> float:
    return decision.seen.visibility.get(provider, decision.timers.visibility)


def _not_made(decision: Decision, lease: Lease) -> None:
    """
    An attempt of which nobody heard was never made if it is not shown twice, after the time in which it may still be made.
    """
    settled = lease.asked + decision.timers.answer + _visibility(decision, lease.provider)
    if decision.now <= settled or lease.id in decision.seen.heard:
        return
    absence = decision.seen.absent.setdefault(lease.id, Absence(decision.now))
    absence.lists += 1
    if absence.lists >= _TWICE:
        decision.on(lease, LeaseFailed(words=f"the request was lost: {lease.words}"))
        decision.seen.forget(lease.id, lease.provider, lease.handle)


def _guard(decision: Decision, provider: str, missing: int, of: int) -> None:
    """Many that are missing at the same time are believed only when they stay missing."""
    record, timers = decision.book.providers.get(provider), decision.timers
    frozen = record.frozen if record is not None else 0.0
    many = missing >= timers.guard_least and missing > timers.guard_part * of
    if many and not frozen:
        event = ProviderFrozen(missing=missing, of=of, until=decision.now + timers.guard)
        decision.record(f"{PROVIDER}/{provider}", event)
    elif frozen and not many:
        decision.record(f"{PROVIDER}/{provider}", ProviderThawed(why=f"{of - missing} of {of} are there"))


def looked(decision: Decision, provider: str, seen: MachineLooked | MachineRemoved) -> None:
    """A provider has said how one machine is, perhaps after it was asked to remove it."""
    if seen.trouble is not None:
        _close_if_unknown(decision, provider, seen.trouble)
    machine = seen.machine
    lease = holder(decision.book, provider, seen.handle)
    if lease is not None and isinstance(seen, MachineRemoved) and seen.console and not lease.console:
        decision.on(lease, LeaseConsole(size=len(seen.console)))
    if machine is None:
        return
    if lease is None:
        if machine.state is MachineState.GONE:
            _rest_gone(decision, provider, seen.handle)
    elif machine.state is not MachineState.GONE:
        decision.seen.absent.pop(lease.id, None)
        _how_it_is(decision, lease, machine)
    elif _is_proven(decision, lease, at_once=machine.proven):
        gone(decision, lease, machine.words or "its provider says that it is gone")


def ended(decision: Decision, provider: str, handle: str) -> None:
    """Somebody has noticed that a machine has ended: its provider is asked, whenever it was asked last."""
    if provider in decision.seen.listed and holder(decision.book, provider, handle) is not None:
        decision.acts.append(Look(provider, handle))


def holder(book: Book, provider: str, handle: str) -> Lease | None:
    """The lease whose machine it is."""
    leases = book.leases.values()
    return next((each for each in leases if each.handle == handle and each.provider == provider), None)


def _rest_gone(decision: Decision, provider: str, handle: str) -> None:
    """A machine that no lease wanted is gone, or one too many of a lease."""
    for name, orphan in decision.book.orphans.items():
        if orphan.found.provider == provider and orphan.found.handle == handle:
            decision.record(f"{ORPHAN}/{name}", OrphanGone(words="its provider says that it is gone"))
    for lease in decision.book.leases.values():
        if lease.provider == provider and handle in lease.duplicates:
            decision.on(lease, LeaseDuplicateGone(handle=handle))


def _is_proven(decision: Decision, lease: Lease, *, at_once: bool) -> bool:
    """
    Whether it is certain that the machine of a lease is gone, now that its provider has said so once more; `at_once`: to have said
    it once is enough.
    """
    if lease.duplicates:
        return False  # the lease ends with the last machine of its name
    if at_once:
        return True
    if not _is_shown(decision, lease):
        return False  # so young a machine may be there and not be shown, however often that is said
    timers, now = decision.timers, decision.now
    absence = decision.seen.absent.setdefault(lease.id, Absence(now))
    if not absence.gone or now - absence.at >= min(_visibility(decision, lease.provider), timers.look):
        absence.gone += 1
        absence.at = now
    if lease.state in LEAVING:
        return True  # it was asked to go, or has said that it goes: once is enough
    if absence.gone < _TWICE:
        return False
    record = decision.book.providers.get(lease.provider)
    if record is not None and record.frozen > now:
        return False
    silent = lease.state in STARTING or decision.seen.silent(lease.id, now) > timers.dead
    return absence.lists > 0 and (absence.witness or silent)
