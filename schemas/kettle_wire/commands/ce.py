"""What people ask a compute entrypoint, and how it is called where it stands for a batch system."""

from typing import Annotated

import msgspec

from kettle_wire.ads.types import Ad
from kettle_wire.commands.routing import MOST_REASON, VoCount
from kettle_wire.endpoint import Caller, Endpoint, Position, Repeat
from kettle_wire.jobs import JobId, Number
from kettle_wire.routes import RouteRefusal, RouteStep


def batch_startd(name: str) -> str:
    """
    The name under which an entrypoint answers as the startd of its batch systems; `name` is its schedd's.
    """
    return f"ce.{name}"


class ShowRoutes(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which routes are there, and how they stand."""


class RouteState(msgspec.Struct, frozen=True, kw_only=True):
    """A route, and its jobs."""

    name: str
    target: str
    """`pool`, or the `GridResource` that it sets."""
    max_jobs: int
    max_idle: int
    jobs: int
    idle: int
    running: int
    held: int
    closed: str = ""
    """Why it takes no job now; empty: it does."""
    slowed_until: float = 0.0
    """Seconds since the epoch until which it takes fewer jobs, because too many have failed."""
    failure: str = ""
    """How the last one failed."""


class VoState(VoCount, frozen=True, kw_only=True):
    """The jobs of a VO, and whether more of them get a route."""

    full: str = ""
    """Why none does now, as the end of a sentence."""


class RoutesShown(msgspec.Struct, frozen=True, kw_only=True):
    """The routes in their order."""

    version: str
    source: str
    text: str
    """Of the file."""
    loaded: float
    """When, seconds since the epoch."""
    routes: list[RouteState]
    waiting: int
    """Jobs without a route."""
    problems: list[str] = []
    """Of a newer file that was refused."""
    vos: list[VoState] = []
    draining: str = ""
    """Why it takes no jobs; empty: it does."""


class ShowDecision(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What was decided about a job."""

    job: JobId


class DecidedRoute(msgspec.Struct, frozen=True, kw_only=True):
    """One decision."""

    at: float
    """Seconds since the epoch."""
    number: Number
    version: str
    route: str
    attributes: Ad
    removed: list[str]
    refusals: list[RouteRefusal]
    trace: list[RouteStep]


class DecisionShown(msgspec.Struct, frozen=True, kw_only=True):
    """All of them, in their order."""

    decisions: list[DecidedRoute]


class TryRoute(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What would be decided about a job with this ad now; nothing is recorded."""

    ad: Ad
    text: Annotated[str, msgspec.Meta(max_length=1 << 20)] = ""
    """Other routes than those in force."""


class RouteTried(msgspec.Struct, frozen=True, kw_only=True):
    """What would be decided."""

    route: str
    attributes: Ad
    removed: list[str]
    refusals: list[RouteRefusal]
    trace: list[RouteStep]


class LoadRoutes(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Read the file with routes again."""


class RoutesRead(msgspec.Struct, frozen=True, kw_only=True):
    """These are in force; with `problems` the file was refused, and they are those before."""

    position: Position
    version: str
    problems: list[str] = []


class DrainEntrypoint(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Take no jobs, and give none a route, until it is resumed."""

    reason: Annotated[str, msgspec.Meta(max_length=MOST_REASON)] = ""
    """What submitters are told."""


class ResumeEntrypoint(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Take jobs again."""


class DrainSet(msgspec.Struct, frozen=True, kw_only=True):
    """It is so from now on."""

    position: Position
    draining: str
    """Why it takes no jobs; empty: it does."""


_LOOKS = (Caller.USER, Caller.GATEWAY)
SHOW_ROUTES = Endpoint("ce", "show_routes", ShowRoutes, RoutesShown, callers=_LOOKS, repeat=Repeat.QUERY)
SHOW_DECISION = Endpoint(
    "ce", "show_decision", ShowDecision, DecisionShown, callers=_LOOKS, repeat=Repeat.QUERY
)
TRY_ROUTE = Endpoint("ce", "try_route", TryRoute, RouteTried, callers=_LOOKS, repeat=Repeat.QUERY)
DRAIN = Endpoint(
    "ce", "drain", DrainEntrypoint, DrainSet, callers=(Caller.ADMINISTRATOR,), repeat=Repeat.HARMLESS
)
RESUME = Endpoint(
    "ce", "resume", ResumeEntrypoint, DrainSet, callers=(Caller.ADMINISTRATOR,), repeat=Repeat.HARMLESS
)
LOAD_ROUTES = Endpoint(
    "ce", "load_routes", LoadRoutes, RoutesRead, callers=(Caller.ADMINISTRATOR,), repeat=Repeat.HARMLESS
)
