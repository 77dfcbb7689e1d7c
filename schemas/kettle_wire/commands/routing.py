"""
What a compute entrypoint asks its schedd: which jobs have no route, how many each route has, and to record
routes.
"""

from typing import Annotated

import msgspec

from kettle_wire.ads.types import Ad
from kettle_wire.endpoint import Caller, Endpoint, Position, Repeat
from kettle_wire.jobs import JobId, Name, Number

MOST_JOBS = 1000
"""In one question or answer."""
LONGEST_WAIT_S = 20.0
MOST_REASON = 1000
"""Characters of why an entrypoint is drained."""


class ListUnrouted(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """
    Jobs that wait for a route, in the order in which they get one; the answer comes when something is different.
    """

    most: Annotated[int, msgspec.Meta(ge=1, le=MOST_JOBS)] = MOST_JOBS
    news: Number = 0
    """Of the last answer: what it and those before have said is known. 0: nothing is."""
    wait: Annotated[float, msgspec.Meta(ge=0, le=LONGEST_WAIT_S)] = 0.0
    """Seconds after which an answer comes even so."""
    draining: Annotated[str, msgspec.Meta(max_length=2 * MOST_REASON)] = ""
    """Why no job gets a route and none is to be submitted for one; empty: the entrypoint takes jobs."""


class UnroutedJob(msgspec.Struct, frozen=True, kw_only=True):
    """A job without a route."""

    job: JobId
    number: Number
    """So often the entrypoint has said something of it."""
    ad: Ad
    reason: str = ""
    """Why it has none, as the entrypoint has said last; empty: it has not."""


class RouteCount(msgspec.Struct, frozen=True, kw_only=True):
    """How many jobs a route has."""

    route: str
    jobs: int
    """In the queue, and not over."""
    idle: int
    running: int = 0
    held: int = 0
    failed: int = 0
    """Of jobs that failed on it, since this schedd began."""
    failure: str = ""
    """How the last of these did."""


class VoCount(msgspec.Struct, frozen=True, kw_only=True):
    """How many jobs a VO has that are to be routed, and may have."""

    vo: str
    """Empty: those of no VO."""
    jobs: int
    """In the queue, and not over."""
    idle: int
    """With a route, as those that run and are held."""
    running: int
    held: int
    max_jobs: int | None = None
    """None, here and below: it has no limits."""
    max_idle: int | None = None
    max_running: int | None = None
    spooled: int = 0
    """Bytes of the files that its jobs have in the spool."""
    max_spool: int | None = None


class Unrouted(msgspec.Struct, frozen=True, kw_only=True):
    """What waits, and what each route has."""

    news: Number
    jobs: list[UnroutedJob]
    left: list[JobId]
    """Of those that were listed, which wait no longer."""
    waiting: int
    """How many wait, those that are not listed included."""
    routes: list[RouteCount]
    vos: list[VoCount] = []


class Numbered(msgspec.Struct, frozen=True, array_like=True):
    """A job, and the number of what is said of it."""

    job: JobId
    number: Number


class Routing(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """Several jobs and what is decided of each: a route, or why they have none."""

    jobs: Annotated[list[Numbered], msgspec.Meta(max_length=MOST_JOBS)]
    route: Name = ""
    """Empty: none."""
    version: Name = ""
    attributes: Ad = {}
    removed: list[Name] = []
    reason: Annotated[str, msgspec.Meta(max_length=8192)] = ""
    """Why they have none."""
    hold: bool = False
    """They waited too long, and are held."""


class RouteJobs(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Record what was decided about jobs; said again it changes nothing."""

    routings: Annotated[list[Routing], msgspec.Meta(max_length=MOST_JOBS)]


class NotRouted(msgspec.Struct, frozen=True, array_like=True):
    """A job that cannot have its route."""

    job: JobId
    reason: str


class JobsRouted(msgspec.Struct, frozen=True, kw_only=True):
    """
    It is recorded; what came too late, because something had happened to the job, is not among `refused`.
    """

    position: Position
    stale: list[JobId] = []
    """These wait, and something else was said of them than the asker knows: it should ask again."""
    refused: list[NotRouted] = []


LIST_UNROUTED = Endpoint(
    "schedd", "list_unrouted", ListUnrouted, Unrouted, callers=(Caller.CE,), repeat=Repeat.QUERY
)
ROUTE_JOBS = Endpoint(
    "schedd", "route_jobs", RouteJobs, JobsRouted, callers=(Caller.CE,), repeat=Repeat.HARMLESS
)
