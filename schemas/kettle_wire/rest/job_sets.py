"""Job sets over HTTP: clusters of one owner that were submitted under one name (`jobset`)."""

from typing import Annotated

import msgspec

from kettle_wire.jobs import Name
from kettle_wire.rest.jobs import At, Limit, Page
from kettle_wire.rest.route import Moment, Route


class ListJobSets(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """
    List job sets that have jobs in the queue, by owner, access point and number, with how many of their jobs are in which state.
    """

    owner: list[Name] = []
    """Only sets of these persons."""
    schedd: list[Name] = []
    """Only sets of these access points."""
    name: list[Name] = []
    """Only sets that are called like this, in whatever case."""
    limit: Limit = 50
    page: Page = ""
    """`next` of the answer before."""
    at_least: At | None = None
    """Wait until this is visible: `position` of the answer to a write."""


class JobSet(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A job set."""

    id: str
    """`NUMBER@SCHEDD`."""
    schedd: str
    number: int
    """JobSetId: the number of its first cluster."""
    name: str
    """JobSetName."""
    owner: str
    submitted: Moment
    """When the first of its clusters was submitted of which jobs are in the queue."""
    clusters: list[int]
    """Its clusters of which jobs are in the queue."""
    states: dict[str, Annotated[int, msgspec.Meta(ge=1)]]
    """How many jobs of these are in which state."""
    ended: int
    """How many jobs of these have left the queue and are in the history."""


class JobSets(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A page of job sets."""

    jobsets: list[JobSet]
    next: str | None = None
    """The page token of what comes behind; absent: that was all."""
    frames: dict[str, int] = {}
    """How far each queue has been read: the number of its last frame in this answer."""


LIST_JOBSETS = Route(
    "GET", "/jobsets", "list_jobsets", parameters=ListJobSets, reply=JobSets, headers=("If-None-Match",)
)
