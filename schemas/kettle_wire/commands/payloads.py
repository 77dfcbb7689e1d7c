"""What a compute entrypoint is told by pilots of what they run for others, and asked about it."""

import msgspec

from kettle_wire.endpoint import Caller, Endpoint, Position, Repeat
from kettle_wire.jobs import JobId, Name
from kettle_wire.payloads import Payload, PayloadReport


class ReportPayloads(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Say what a pilot has begun for others, and what of it is over; said again it changes nothing."""

    job: JobId
    """The pilot."""
    report: PayloadReport


class PayloadsReported(msgspec.Struct, frozen=True, kw_only=True):
    """That is recorded."""

    position: Position
    running: int
    """So many the pilot runs now."""


class ListPayloads(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """
    Which payloads pilots run now; of one job, all that it has ever run. People see those of their own pilots, administrators all.
    """

    job: JobId | None = None
    """The pilot; None: all."""
    owner: Name = ""
    """Whose payloads; empty: everybody's."""


class ReportedPayload(msgspec.Struct, frozen=True, kw_only=True):
    """A payload, and when it ran."""

    job: JobId
    """The pilot."""
    by: str
    """Whose job that is."""
    payload: Payload
    began: float
    """When that was recorded, seconds since the epoch, here and below."""
    ended: float | None = None
    """None: it runs."""
    exit_code: int | None = None
    """None: not known."""
    with_pilot: bool = False
    """It is over because its pilot is; nobody has said more of it."""


class PayloadsListed(msgspec.Struct, frozen=True, kw_only=True):
    """In the order in which they began."""

    payloads: list[ReportedPayload]
    left_out: int = 0
    """So many older ones there are besides."""


REPORT_PAYLOADS = Endpoint(
    "ce",
    "report_payloads",
    ReportPayloads,
    PayloadsReported,
    callers=(Caller.USER,),
    repeat=Repeat.HARMLESS,
)
LIST_PAYLOADS = Endpoint(
    "ce", "list_payloads", ListPayloads, PayloadsListed, callers=(Caller.USER,), repeat=Repeat.QUERY
)
