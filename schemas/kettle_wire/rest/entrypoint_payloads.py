"""What pilots run for others, reported to a compute entrypoint over HTTP and asked of it."""

import msgspec

from kettle_wire.jobs import Name
from kettle_wire.payloads import Payload, PayloadReport
from kettle_wire.rest.entrypoint_jobs import AnyName
from kettle_wire.rest.route import CE_PREFIX, Moment, Route


class ReportPilot(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """
    Say what a pilot of one's own has begun for others, and what of it is over. A repeat changes nothing.
    """

    job: AnyName
    schedd: Name = ""


class PilotReported(msgspec.Struct, frozen=True, kw_only=True):
    """That is recorded."""

    id: str
    """The pilot."""
    running: int
    """So many payloads it runs now."""


class ListPilot(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """
    List all that a pilot of one's own has run for others, also when it is over; administrators see each pilot.
    """

    job: AnyName
    schedd: Name = ""


class ListRunning(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """List what one's own pilots run for others now; administrators see that of all pilots."""

    owner: Name = ""
    """Whose payloads; empty: everybody's."""
    schedd: Name = ""


class PayloadOf(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A payload, and when it ran."""

    job: str
    """The pilot."""
    by: str
    """Whose job that is."""
    payload: Payload
    began: Moment
    ended: Moment | None = None
    """Absent: it runs."""
    exit_code: int | None = None
    """Absent: not known."""
    with_pilot: bool = False
    """It is over because its pilot is; nobody has said more of it."""


class PilotPayloads(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """In the order in which they began."""

    payloads: list[PayloadOf]
    left_out: int = 0
    """So many older ones there are besides."""


REPORT_PILOT = Route(
    "POST",
    "/jobs/{job}/payloads",
    "report_ce_payloads",
    parameters=ReportPilot,
    body=PayloadReport,
    reply=PilotReported,
    level="WRITE",
    errors=(404, 409, 413, 415, 422),
    prefix=CE_PREFIX,
)
LIST_PILOT = Route(
    "GET",
    "/jobs/{job}/payloads",
    "list_ce_payloads",
    parameters=ListPilot,
    reply=PilotPayloads,
    errors=(404, 422),
    prefix=CE_PREFIX,
)
LIST_RUNNING = Route(
    "GET",
    "/payloads",
    "list_ce_running_payloads",
    parameters=ListRunning,
    reply=PilotPayloads,
    errors=(404,),
    prefix=CE_PREFIX,
)
