"""What the planner and people want of leases."""

from kettle_services.scaler.domain.leases.book import Decision, Drain
from kettle_services.scaler.domain.leases.breakers import OFFER, PROVIDER, TEMPLATE, template_of
from kettle_services.scaler.domain.leases.ending import terminate
from kettle_services.scaler.domain.leases.lease import SERVING, STARTING, Lease
from kettle_wire.events.lease import (
    LeaseDraining,
    LeaseFailed,
    LeaseUnwanted,
    OfferOpened,
    ProviderOpened,
    TemplateOpened,
)
from kettle_wire.leases import LeaseState
from kettle_wire.worker_pools import WorkerPool


def withdraw(decision: Decision, lease: Lease, why: str) -> None:
    """
    A machine that is not ready is not wanted any more. One that is ready is drained first (`drain`), so that no job is lost.
    """
    if lease.state is LeaseState.REQUESTED:
        decision.on(lease, LeaseFailed(words=why))
    elif lease.state in {LeaseState.SUBMITTING, LeaseState.IN_DOUBT}:
        if not lease.unwanted:
            decision.on(lease, LeaseUnwanted(why=why))
    elif lease.state in STARTING:
        terminate(decision, lease, why)


def drain(decision: Decision, lease: Lease, why: str, until: float) -> None:
    """A machine takes no more jobs, and is removed when none runs on it any more, or at the deadline."""
    if lease.state in SERVING:
        decision.on(lease, LeaseDraining(why=why, until=max(until, decision.now)))
        decision.acts.append(
            Drain(lease.id, why, busy=True)
        )  # else it would take jobs until it says again how it is
    else:
        withdraw(decision, lease, why)


def release(decision: Decision, lease: Lease, why: str, *, force: bool = False) -> None:
    """
    A machine is not needed any more. One that is ready is asked to leave, and stays if a job was faster; `force`: it goes with what
    runs on it.
    """
    if lease.state not in SERVING:
        withdraw(decision, lease, why)
    elif force:
        terminate(decision, lease, why)
    else:
        decision.acts.append(Drain(lease.id, why))


def reopen(decision: Decision, pool: WorkerPool, by: str) -> None:
    """Somebody has looked at it: what is closed of a pool is used again."""
    book, why = decision.book, f"{by} has opened it"
    for offer in pool.offers:
        name, key = f"{pool.name}.{offer.name}", template_of(pool.name, offer)
        known, template = book.offers.get(name), book.templates.get(key)
        if known is not None and known.closed is not None:
            decision.record(f"{OFFER}/{name}", OfferOpened(why=why))
        if (
            template is not None
            and template.closed is not None
            and not decision.changes_of(f"{TEMPLATE}/{key}")
        ):
            decision.record(f"{TEMPLATE}/{key}", TemplateOpened(why=why))
    for name in {offer.provider for offer in pool.offers}:
        provider = book.providers.get(name)
        if provider is not None and provider.closed is not None:
            decision.record(f"{PROVIDER}/{name}", ProviderOpened(why=why))


def drained(decision: Decision, lease: Lease, why: str) -> None:
    """Nothing is claimed on a machine, and it takes nothing any more: it is removed."""
    if lease.handle and lease.state is not LeaseState.TERMINATING:
        terminate(decision, lease, why)
