"""What a compute entrypoint says about how it decided where a job goes."""

from enum import StrEnum

import msgspec

from kettle_wire.ads.types import Scalar


class RouteStep(msgspec.Struct, frozen=True, array_like=True):
    """What one statement changed."""

    by: str
    """The route or the transform that it is of."""
    line: int
    """Of the route file."""
    name: str
    """The attribute, or a macro as `$(name)`."""
    before: Scalar | None
    after: Scalar | None


class RefusalKind(StrEnum):
    """Why a route does not take a job."""

    CONSTRAINT = "constraint"
    """No route takes jobs of this kind (JOB_ROUTER_SOURCE_JOB_CONSTRAINT)."""
    REQUIREMENTS = "requirements"
    FAILED = "failed"
    """A statement could not be carried out on this job."""
    MAX_JOBS = "max_jobs"
    MAX_IDLE_JOBS = "max_idle_jobs"
    CLOSED = "closed"
    """The route takes none now: failures, an administrator, or what it leads to."""

    DRAINING = "draining"
    """An administrator drains the entrypoint: no job gets a route."""
    VO_FULL = "vo_full"
    """The VO has as many jobs with routes as it may."""

    @property
    def passes(self) -> bool:
        """Whether the same job may be taken later without being changed."""
        return self not in {RefusalKind.CONSTRAINT, RefusalKind.REQUIREMENTS, RefusalKind.FAILED}


class RouteRefusal(msgspec.Struct, frozen=True):
    """That one route does not take one job."""

    route: str
    """Empty: it is so for all routes."""
    why: RefusalKind
    sentence: str
