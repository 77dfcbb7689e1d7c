"""
The routes of one file, compiled: nothing here changes, so that a decision can name the version that it follows.
"""

from collections.abc import Mapping
from enum import StrEnum

import msgspec

from kettle.classad import Node
from kettle.routes.clauses import Clause
from kettle.transforms import Transform
from kettle_wire.codes import Universe


class Selection(StrEnum):
    """Which of the routes that would take a job gets it."""

    FIRST = "first"
    """In the order of JOB_ROUTER_ROUTE_NAMES."""
    ROUND_ROBIN = "round_robin"
    """In turn."""
    WEIGHT = "weight"
    """In proportion to their `Weight`."""
    LEAST_LOAD = "least_load"
    """The one with the fewest idle jobs, compared with its MaxIdleJobs."""
    RANK = "rank"
    """The one whose `Rank` is highest: an expression over the job, with the route as TARGET."""


class OnLocalRemove(StrEnum):
    """What becomes of a job that somebody removed from where its route had brought it."""

    FAIL = "fail"
    """It is removed, with the reason."""
    HOLD = "hold"
    RETRY = "retry"
    """It is routed again."""


class Route(msgspec.Struct, frozen=True, kw_only=True):
    """Where jobs may go, which ones, and how they are changed for it."""

    name: str
    line: int
    """Of the route file, on which it begins."""
    requirements: str = "true"
    clauses: tuple[Clause, ...] = ()
    """What the requirements join by `&&`; all are true of the jobs that it takes, before anything changes them."""
    universe: int = Universe.GRID
    grid_resource: str = ""
    """Where it leads to, for the grid universe: `batch slurm`."""
    max_jobs: int = 100
    max_idle_jobs: int = 50
    failure_rate_threshold: float = 0.03
    """Failures per second, above which it takes fewer jobs."""
    job_failure_test: str = ""
    """An expression over a job that has left it: true of one that failed.  Empty: only what is removed has."""
    edit_job_in_place: Node | None = None
    """An expression over the job: if it is true, the job is changed and goes nowhere."""
    weight: float = 1.0
    rank: Node | None = None
    on_local_remove: OnLocalRemove = OnLocalRemove.FAIL
    retries: int = 0
    """How often, with `OnLocalRemove = retry(n)`."""
    transform: Transform

    @property
    def is_of_this_pool(self) -> bool:
        """Whether its jobs stay in the pool of their schedd."""
        return self.universe != Universe.GRID


class RouteTable(msgspec.Struct, frozen=True, kw_only=True):
    """All routes of a file, in their order."""

    version: str
    """Equal texts have one version."""
    source: str
    routes: tuple[Route, ...]
    before: tuple[Transform, ...] = ()
    """Carried out before each route (JOB_ROUTER_PRE_ROUTE_TRANSFORM_NAMES)."""
    after: tuple[Transform, ...] = ()
    """Carried out after it (JOB_ROUTER_POST_ROUTE_TRANSFORM_NAMES)."""
    macros: Mapping[str, str] = {}
    """Of the file, by lower-case name: what statements find that define no macro of this name."""
    constraint: str = ""
    """True of all jobs that may be routed (JOB_ROUTER_SOURCE_JOB_CONSTRAINT)."""
    clauses: tuple[Clause, ...] = ()
    max_jobs: int | None = None
    """On all routes together (JOB_ROUTER_MAX_JOBS)."""
    selection: Selection = Selection.FIRST
    systems: Mapping[str, str] | None = None
    """The batch systems that there are, kinds by names; None: it is not known which."""

    def named(self, name: str) -> Route | None:
        """The route of this name, however it is spelled; None if there is none."""
        return next((each for each in self.routes if each.name.lower() == name.lower()), None)
