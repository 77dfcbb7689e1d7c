"""Compute entrypoints over HTTP: their routes, how far jobs are, and where jobs would go."""

from typing import Annotated

import msgspec

from kettle_wire.ads.types import Ad
from kettle_wire.jobs import Name
from kettle_wire.rest.route import CE_PREFIX, Moment, Route
from kettle_wire.routes import RouteStep


class GetRoutes(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """List the routes of an entrypoint in the order in which they are tried, with how many jobs each has."""

    schedd: Name = ""
    """Of which access point, if the pool has several."""


class RouteOf(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A route."""

    name: str
    target: str
    """`pool`, or the GridResource to which it leads."""
    max_jobs: int
    max_idle_jobs: int
    jobs: int
    idle: int
    running: int
    held: int
    closed: str = ""
    """Why it takes no job now; absent: it takes some."""
    slowed_until: Moment | None = None
    """Until when it takes none because too many of its jobs failed."""
    failure: str = ""
    """How the last of its jobs failed."""


class VoOf(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The jobs of a VO that are to be routed."""

    vo: str = ""
    """Absent: those of no VO."""
    jobs: int
    """Those without a route too; the others have one."""
    idle: int
    running: int
    held: int
    max_jobs: int | None = None
    """Absent, here and below: it has no limits."""
    max_idle: int | None = None
    max_running: int | None = None
    spooled: int = 0
    """Bytes of the files that its jobs have in the spool."""
    max_spool: int | None = None
    full: str = ""
    """Why none of its jobs gets a route now; absent: they do."""


class Routes(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Those in force."""

    version: str
    source: str
    """The file."""
    loaded: Moment
    waiting: int
    """Jobs without a route."""
    routes: list[RouteOf]
    problems: list[str] = []
    """Why a newer file was refused."""
    vos: list[VoOf] = []
    draining: str = ""
    """Why the entrypoint takes no jobs; absent: it does."""


class GetChain(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Find a job by what its access point or the batch system calls it, and say how far it is."""

    job: Annotated[str, msgspec.Meta(min_length=1, max_length=300)]
    """`12.3`, the GlobalJobId, or what the batch system calls it: `4711`."""
    schedd: Name = ""


class Chain(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A job at all its stations."""

    id: str
    global_id: str = ""
    state: str
    """
    `received`, `routed`, `queued` (in the batch system), `running`, `stopped`, `ended`, or `lost`: since `since` its batch system does
    not know it any more, and nobody says how it ended.
    """
    outcome: str = ""
    """Of one that has ended: `completed` or `removed`."""
    reason: str = ""
    """Why it has no route, is held or was removed."""
    exit_code: int | None = None
    """Absent: not known, or a signal ended it."""
    route: str = ""
    resource: str = ""
    """Where its route leads; absent: to this pool."""
    grid_id: str = ""
    """GridJobId."""
    batch_id: str = ""
    """What the batch system calls it."""
    host: str = ""
    submitted: Moment
    since: Moment
    """In this status."""


class TryRoute(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Say where a job would go now, and with which ad; nothing is recorded."""

    schedd: Name = ""


class JobToRoute(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A job that does not exist."""

    ad: Ad


class RouteNotTaken(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A route that does not take it."""

    route: str = ""
    """Absent: none of them takes jobs of this kind."""
    why: str
    """`constraint`, `requirements`, `failed` (a statement), `max_jobs`, `max_idle_jobs`, `closed`, `vo_full` or
    `draining`."""
    sentence: str


class Routed(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Where it would go."""

    route: str = ""
    """Absent: no route takes it."""
    attributes: Ad = {}
    """What its ad would have there, and has not or not so."""
    removed: list[str] = []
    refusals: list[RouteNotTaken] = []
    """Of the routes that do not take it, with the first clause that is not true."""
    trace: list[RouteStep] = []
    """What each statement changes: `[BY, LINE, NAME, BEFORE, AFTER]`."""


GET_ROUTES = Route(
    "GET", "/routes", "get_ce_routes", parameters=GetRoutes, reply=Routes, errors=(404,), prefix=CE_PREFIX
)
GET_CHAIN = Route(
    "GET", "/jobs/{job}", "get_ce_job", parameters=GetChain, reply=Chain, errors=(404, 422), prefix=CE_PREFIX
)
TRY_ROUTE = Route(
    "POST",
    "/jobs:route",
    "try_ce_route",
    parameters=TryRoute,
    body=JobToRoute,
    reply=Routed,
    errors=(404, 413, 415, 422),
    prefix=CE_PREFIX,
)
