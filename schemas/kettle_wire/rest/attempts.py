"""Runs of jobs that have ended: where, for how long, and how each ended."""

import msgspec

from kettle_wire.jobs import Name
from kettle_wire.rest.jobs import JobName, Limit, Page
from kettle_wire.rest.route import Moment, Route


class ListAttempts(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """List runs of jobs that have ended, the last ones first, those of a week unless a job is named."""

    job: JobName | None = None
    """Only runs of this one."""
    owner: list[Name] = []
    machine: list[Name] = []
    """The names of startds."""
    project: list[Name] = []
    """ProjectName."""
    since: Moment | None = None
    """Only runs that were over then or later; else a week before `until`."""
    until: Moment | None = None
    """Only runs that were over before then."""
    limit: Limit = 50
    page: Page = ""
    """`next` of the answer before."""


class Attempt(msgspec.Struct, frozen=True, kw_only=True):
    """One run of a job."""

    job: str
    """`CLUSTER.PROC@SCHEDD`."""
    attempt: int
    """Counts the runs of the job from 1."""
    owner: str
    machine: str
    slot: str
    begun: Moment
    """When it was assigned."""
    ended: Moment
    """When its end was recorded."""
    wall: float
    """Seconds, as the machine measured."""
    cpu: float
    """Seconds in which processors worked for it."""
    completed: bool
    """The job is completed by it."""
    code: int
    """Why it ended early: VacateReasonCode, or below 1000 HoldReasonCode; 0: its program ended."""
    said: str
    """The code in words."""


class Attempts(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A page of runs."""

    attempts: list[Attempt]
    next: str | None = None
    """The page token of what comes behind; absent: that was all."""
    frames: dict[str, int] = {}
    """How far each queue has been read: the number of its last frame in this answer."""


LIST_ATTEMPTS = Route(
    "GET", "/attempts", "list_attempts", parameters=ListAttempts, reply=Attempts, headers=("If-None-Match",)
)
