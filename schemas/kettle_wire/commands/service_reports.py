"""What gateways report of the published services of running jobs, for the record of each job."""

from typing import Annotated, Literal

import msgspec

from kettle_wire.endpoint import Caller, CommandId, Endpoint, Position, Repeat
from kettle_wire.events.job import ServiceUse
from kettle_wire.jobs import JobId, Number


class ReportServices(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """
    Record what happened at a gateway to the published services of an attempt; it says the same again until it is recorded.
    """

    id: CommandId
    job: JobId
    attempt: Number
    tunnel: Literal["", "up", "down"] = ""
    services: Annotated[list[Annotated[str, msgspec.Meta(max_length=64)]], msgspec.Meta(max_length=16)] = []
    reason: Annotated[str, msgspec.Meta(max_length=1000)] = ""
    uses: Annotated[list[ServiceUse], msgspec.Meta(max_length=200)] = []


class ServicesReported(msgspec.Struct, frozen=True, kw_only=True):
    """That is recorded."""

    position: Position


REPORT_SERVICES = Endpoint(
    "schedd",
    "report_services",
    ReportServices,
    ServicesReported,
    callers=(Caller.GATEWAY,),
    repeat=Repeat.FIRST_ANSWER,
)
