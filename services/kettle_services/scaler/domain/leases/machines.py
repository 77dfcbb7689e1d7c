"""What follows from what machines say of themselves."""

import re

import msgspec

from kettle_services.scaler.domain.leases.book import Decision
from kettle_services.scaler.domain.leases.breakers import OFFER, PROVIDER, TEMPLATE, template_of
from kettle_services.scaler.domain.leases.ending import terminate
from kettle_services.scaler.domain.leases.lease import LEAVING, SERVING, STARTING, Lease
from kettle_services.scaler.domain.leases.timers import jittered
from kettle_wire.commands.scaler import Phase, Renew
from kettle_wire.events.lease import (
    LeaseBusy,
    LeaseDraining,
    LeaseExtended,
    LeaseJoining,
    LeaseQuarantined,
    LeaseReady,
    LeaseValidating,
    OfferMeasured,
    OfferOpened,
    ProviderOpened,
    TemplateOpened,
)
from kettle_wire.leases import LeaseState

_CONTROLS = re.compile(r"[\x00-\x1f]")
"""Events have none of them in a line: one that was recorded with some could never be read."""
_RETIRES_EARLIER = 0.1
"""Part of its life by which a machine retires earlier than it has to, so that its jobs may end."""
_CHANGES_S = 1.0
"""Whether jobs run on a machine is recorded so often at most, however fast it says one thing and the other."""
_QUARANTINE_S = 60.0
"""So long what is in quarantine may still report what failed."""


def heard(decision: Decision, name: str, said: Renew) -> None:
    """A machine has said how it is. It goes forward through its phases only, however late a message comes."""
    lease = decision.book.leases.get(name)
    if lease is None:
        return
    decision.seen.heard[name] = decision.now
    if not lease.handle or lease.state is LeaseState.TERMINATING:
        return  # its provider's name for it is not known yet, or it is being removed
    said = msgspec.structs.replace(said, progress=_CONTROLS.sub(" ", said.progress))
    match said.phase:
        case Phase.JOINED:
            _goes_on(decision, lease, LeaseState.JOINING, said)
        case Phase.VALIDATING | Phase.STARTING:
            _goes_on(decision, lease, LeaseState.VALIDATING, said)
        case Phase.READY:
            _serves(decision, lease, busy=said.claims > 0)
        case Phase.FAILED:
            terminate(decision, lease, said.progress or "it failed its examination", failed=True)
        case Phase.ENDED:
            terminate(decision, lease, said.progress or "it has ended")
        case Phase.QUARANTINED | Phase.DRAINING if lease.state not in LEAVING:
            _leaves(decision, lease, said)
        case _:
            pass


def _leaves(decision: Decision, lease: Lease, said: Renew) -> None:
    if said.phase is Phase.QUARANTINED:
        words = said.progress or "what runs on it fails"
        decision.on(lease, LeaseQuarantined(words=words, until=decision.now + _QUARANTINE_S))
        return
    within = min((notice.within for notice in said.notices if notice.within), default=0.0)
    until = decision.now + within if within else lease.ends
    decision.on(lease, LeaseDraining(why=said.progress or "it was told to end", until=until))


def _goes_on(decision: Decision, lease: Lease, state: LeaseState, said: Renew) -> None:
    """It is in a phase of its start, or says how far it is in the one that it was in."""
    if lease.state not in STARTING:
        return
    progress = said.progress[:256] or (f"{said.step} of {said.steps}" if said.steps else "")
    until = decision.now + decision.timers.phase
    if lease.state is state:
        if progress != lease.progress and lease.extensions < decision.timers.extensions:
            decision.on(lease, LeaseExtended(progress=progress, until=until))
    elif state is LeaseState.VALIDATING:
        decision.on(lease, LeaseValidating(until=until))
    elif lease.state is not LeaseState.VALIDATING:
        decision.on(lease, LeaseJoining(until=until))


def _serves(decision: Decision, lease: Lease, *, busy: bool) -> None:
    """It takes jobs; the first time this proves its offer, its template and its provider."""
    if lease.state not in STARTING | SERVING:
        return
    state = LeaseState.BUSY if busy else LeaseState.READY
    if lease.state in SERVING and decision.now - lease.since < _CHANGES_S:
        return
    if state is not lease.state:
        until = retirement(lease)
        decision.on(lease, LeaseBusy(until=until) if busy else LeaseReady(until=until))
    if not lease.ready:
        _proven(decision, lease)


def retirement(lease: Lease) -> float:
    """
    When a machine takes no more jobs because its life is nearly over: those that were made together do not leave together.
    """
    life = lease.requested.life * (1 - _RETIRES_EARLIER)
    return lease.accepted + jittered(life, lease.id, _RETIRES_EARLIER)


def _proven(decision: Decision, lease: Lease) -> None:
    book, name, why = decision.book, f"{lease.requested.pool}.{lease.offer.name}", f"{lease.id} is ready"
    boot = max(0.001, decision.now - lease.accepted)
    decision.record(f"{OFFER}/{name}", OfferMeasured(lease=lease.id, boot=boot))
    offer = book.offers.get(name)
    if offer is not None and offer.closed is not None:
        decision.record(f"{OFFER}/{name}", OfferOpened(why=why))
    key = template_of(lease.requested.pool, lease.offer)
    template = book.templates.get(key)
    if template is None or not template.proven:
        decision.record(f"{TEMPLATE}/{key}", TemplateOpened(why=why))
    provider = book.providers.get(lease.provider)
    if provider is not None and provider.closed is not None and provider.closed.until:
        decision.record(f"{PROVIDER}/{lease.provider}", ProviderOpened(why=why))
