"""How a compute entrypoint stands, over HTTP: as one document, and under the names of HTCondor's CEView."""

import msgspec

from kettle_wire.jobs import Name
from kettle_wire.rest.jobs import Attribute, Filter
from kettle_wire.rest.route import CE_PREFIX, Moment, Route


class JobCounts(msgspec.Struct, frozen=True, kw_only=True):
    """How many jobs are in which state."""

    idle: int
    running: int
    held: int
    jobs: int
    """In any state."""


class PilotCounts(msgspec.Struct, frozen=True, kw_only=True):
    """How many jobs came with the same credential."""

    subject: str
    vo: str
    group: str
    """The first FQAN."""
    counts: JobCounts


class ScheddStanding(msgspec.Struct, frozen=True, kw_only=True):
    """An access point."""

    status: str
    """`OK`, `WARNING`, `CRITICAL` or `UNKNOWN`: how busy it says that it is."""


class GetStanding(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """
    Say how many jobs that are to be routed are in which state, in all and by VO and credential, and how the access points are. The
    numbers are counted again after some seconds.
    """

    schedd: Name = ""
    """Whose jobs are counted; empty: those of the pool's own access point."""


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """How it stands."""

    counted: Moment
    totals: JobCounts
    vos: dict[str, JobCounts]
    pilots: list[PilotCounts]
    schedds: dict[str, ScheddStanding]


class ListAttributes(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """List the jobs in the queue as CEView does: each an object of the attributes that are asked for."""

    schedd: Name = ""
    projection: list[Attribute] = []
    """Names; none: all."""
    constraint: Filter = ""


class ViewTotals(GetStanding, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Count jobs as CEView does: `Running`, `Idle`, `Held` and `UpdateDate`."""


class ViewPilots(GetStanding, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """
    Count jobs by credential as CEView does: a list of `DN`, `VO`, `VOMS`, `Running`, `Idle`, `Held` and `Jobs`.
    """


class ViewVos(GetStanding, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Count jobs by VO as CEView does: by name `Running`, `Idle`, `Held` and `Jobs`."""


class ViewSchedds(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Show the ads of access points as CEView does, by name."""


class ViewSchedd(GetStanding, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Show the ad of an access point as CEView does."""


class ViewStatuses(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Say how access points are as CEView does: by name an object with `status`."""


class ViewStatus(GetStanding, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Say how an access point is as CEView does: an object with `status`."""


class ViewTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Say which attributes of access points CEView's table has: a list of `label` and `attrib`."""


GET_STANDING = Route(
    "GET",
    "/status",
    "get_ce_status",
    parameters=GetStanding,
    reply=Standing,
    errors=(404,),
    headers=("If-None-Match",),
    prefix=CE_PREFIX,
)


def _view(name: str, parameters: type[msgspec.Struct]) -> Route:
    return Route(
        "GET",
        f"/json/{name}",
        f"get_ce_view_{name}",
        parameters=parameters,
        reply=None,
        octets="application/json",
        errors=(404, 422),
        headers=("If-None-Match",),
        prefix=CE_PREFIX,
    )


VIEW_TOTALS = _view("totals", ViewTotals)
VIEW_PILOTS = _view("pilots", ViewPilots)
VIEW_VOS = _view("vos", ViewVos)
VIEW_SCHEDDS = _view("schedds", ViewSchedds)
VIEW_SCHEDD = _view("schedd", ViewSchedd)
VIEW_STATUSES = _view("statuses", ViewStatuses)
VIEW_STATUS = _view("status", ViewStatus)
VIEW_JOBS = _view("jobs", ListAttributes)
VIEW_TABLE = _view("tableattribs", ViewTable)
