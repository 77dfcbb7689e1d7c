"""
What a compute entrypoint decides about jobs of its schedd and about its routes, in its own shard.

`routes/file` has the files that it was given, `door/drain` whether it is drained, `decision/<cluster>` what was decided about jobs, `route/<name>` how a route fares.
What becomes of a job by a decision is recorded by its schedd (`job.routed`, `job.unrouted`).
"""

import msgspec

from kettle_wire.ads.types import Ad
from kettle_wire.events.base import Event
from kettle_wire.routes import RouteRefusal, RouteStep


class RoutedProc(msgspec.Struct, frozen=True, array_like=True):
    """One job of a decision's cluster."""

    proc: int
    number: int
    """Counts what was decided about the job from 1: `JobRouted.number` if it got a route."""


class RoutesLoaded(Event, frozen=True, tag="routes.loaded/1"):
    """The routes are these from now on; jobs that have a route already keep what was decided."""

    version: str
    """Of the text: a digest."""
    text: str
    source: str = ""
    """The file that it was read from."""


class RoutesRefused(Event, frozen=True, tag="routes.refused/1"):
    """A file with routes cannot be used; those before stay in force."""

    version: str
    source: str = ""
    problems: list[str] = []
    """Sentences, with file, line and statement."""


class RouteDecided(Event, frozen=True, tag="route.decided/1"):
    """Jobs of one cluster that are alike got a route, or none takes them."""

    jobs: list[RoutedProc]
    version: str
    """Of the routes."""
    owner: str
    """Whose jobs they are."""
    route: str = ""
    """Its name; empty: none takes them."""
    turn: int = 0
    """The place in the turns of routes that are taken one after the other, after this decision."""
    attributes: Ad = {}
    """What the route sets."""
    removed: list[str] = []
    """What it takes away."""
    refusals: list[RouteRefusal] = []
    """Of the routes before the one that was taken, or of all."""
    trace: list[RouteStep] = []
    """What each statement did, in their order."""


class RouteFailed(Event, frozen=True, tag="route.failed/1"):
    """Jobs of a route failed so often that it takes fewer for a while."""

    failures: int
    """Of jobs that left it, in the time over which they are counted."""
    until: float
    """When it takes as many as before, seconds since the epoch."""
    reason: str = ""
    """How the last one failed."""


class DrainBegun(Event, frozen=True, tag="drain.begun/1"):
    """An administrator has the entrypoint take no jobs, and give none a route; those that have one go on."""

    by: str
    reason: str = ""


class DrainOver(Event, frozen=True, tag="drain.over/1"):
    """It takes jobs again."""

    by: str


class RouteForgotten(Event, frozen=True, tag="route.forgotten/1"):
    """No job of the cluster is in the queue any more: nothing will be decided about it."""


RouteEvent = (
    RoutesLoaded | RoutesRefused | RouteDecided | RouteFailed | DrainBegun | DrainOver | RouteForgotten
)
