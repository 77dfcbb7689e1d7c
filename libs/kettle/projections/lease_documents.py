"""
Leased machines that are gone, as documents for an accounting store; pure, and as `accounting_documents`.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from kettle.projections.accounting_documents import LONGEST, Record, Value
from kettle_wire.events import Event
from kettle_wire.events.lease import LeaseAccepted, LeaseBusy, LeaseGone, LeaseReady, LeaseRequested

LEASE_FIELDS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("RecordTime", "RequestedTime", "AcceptedTime", "ReadyTime"), "date"),
    **dict.fromkeys(("Cpus", "Memory", "GPUs"), "long"),
    **dict.fromkeys(("MachineSeconds", "CoreSeconds", "Price", "Cost"), "double"),
    **dict.fromkeys(("StartdName", "WorkerPool", "Offer", "Provider", "Owner", "Currency", "Reason"), "keyword"),
}  # fmt: skip
"""Each field of a machine's record with its type."""


def lease_record(told: Sequence[tuple[int, Event]]) -> Record:
    """
    The record of a machine that is gone, of all events of its lease with their times in seconds since the epoch.
    """
    requested, gone = told[0][1], told[-1][1]
    assert isinstance(requested, LeaseRequested), "a lease begins with its request"
    assert isinstance(gone, LeaseGone), "the machine is gone"
    offer = requested.offer
    document: dict[str, Value] = {
        "RecordTime": told[-1][0],
        "RequestedTime": told[0][0],
        "StartdName": requested.lease,
        "WorkerPool": requested.pool,
        "Offer": offer.name,
        "Provider": offer.provider,
        "Cpus": offer.cpus,
        "Memory": offer.memory,
        "GPUs": offer.gpus,
        "MachineSeconds": gone.seconds,
        "CoreSeconds": gone.seconds * offer.cpus,
        "Price": offer.price,
        "Cost": gone.cost,
        "Reason": gone.words[:LONGEST],
    }
    first: dict[str, Value] = {
        "AcceptedTime": _first(told, (LeaseAccepted,)),
        "ReadyTime": _first(told, (LeaseReady, LeaseBusy)),
        "Owner": requested.owner,
        "Currency": gone.currency,
    }
    return Record(requested.lease, document | {name: value for name, value in first.items() if value})


def _first(told: Sequence[tuple[int, Event]], kinds: tuple[type[Event], ...]) -> int:
    """When something has happened for the first time; 0: it has not."""
    return next((at for at, event in told if isinstance(event, kinds)), 0)
