"""What the planner and people want of leases."""

from kettle_services.scaler.domain.leases.book import Decision
from kettle_services.scaler.domain.leases.ending import terminate
from kettle_services.scaler.domain.leases.lease import SERVING, STARTING, Lease
from kettle_wire.events.lease import LeaseDraining, LeaseFailed, LeaseUnwanted
from kettle_wire.leases import LeaseState


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
    else:
        withdraw(decision, lease, why)


def drained(decision: Decision, lease: Lease, why: str) -> None:
    """Nothing is claimed on a machine, and it takes nothing any more: it is removed."""
    if lease.handle and lease.state is not LeaseState.TERMINATING:
        terminate(decision, lease, why)
