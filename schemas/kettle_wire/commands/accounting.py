"""What accounting is asked: the past."""

from typing import Annotated, Literal, TypeAlias

import msgspec

from kettle_wire.ads.types import Ad
from kettle_wire.endpoint import Caller, Endpoint, Position, Repeat
from kettle_wire.jobs import JobId, Name, Number

Constraint = Annotated[str, msgspec.Meta(max_length=65_536)]
"""A ClassAd expression."""

Moment = Annotated[float, msgspec.Meta(ge=0, lt=253_402_300_800)]
"""Seconds since the epoch, up to the year 9999."""


class HistoryPlace(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A job's place in the history, which is ordered by when jobs left the queue."""

    left_at: int
    """Microseconds since the epoch."""
    shard: Name
    job: JobId


class QueryHistory(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """
    Ads of jobs that have left the queue, newest first: those that are listed, or in a listed cluster, or of a listed
    owner (all, if nothing is listed), and that meet the constraint and left in the span of time.
    """

    jobs: list[JobId] = []
    clusters: list[Number] = []
    owners: list[Name] = []
    constraint: Constraint = ""
    since: Moment | None = None
    """That left the queue then or later."""
    until: Moment | None = None
    """That left it before then."""
    limit: Number = 100
    """The most ads; 0: no limit."""
    after: HistoryPlace | None = None
    """Go on behind this place: where the answer before has ended."""
    at_least: Position | None = None


class History(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Newest first."""

    jobs: list[Ad]
    more: HistoryPlace | None = None
    """
    The search ended here, because it has as many as were asked for, or as fit, or because it took too long.
    """
    examined: int = 0
    """How many jobs were looked at."""
    behind: int = 0
    """
    So many frames are recorded and not in the history yet: jobs that have just left a queue may be missing.
    """


class QueryUsage(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What principals have used."""

    owners: list[Name] = []


class OwnerUsage(msgspec.Struct, frozen=True, kw_only=True):
    """Sums over all recorded attempts, those that did not finish their job included."""

    owner: str
    jobs_completed: int
    attempts: int
    wall: float
    """Seconds."""
    slot_time: float
    """Seconds times cores."""
    cpu: float
    """Seconds, user and system."""


class UsageReport(msgspec.Struct, frozen=True, kw_only=True):
    """In the order of the owners' names."""

    owners: list[OwnerUsage]


Axis: TypeAlias = Literal["owner", "group", "project", "machine", "job", "time"]
"""
What usage is added up by: whose jobs, their AcctGroup and ProjectName, where they ran, which job (`12.3@schedd`), and in which
slice of time.
"""

Text: TypeAlias = Annotated[str, msgspec.Meta(max_length=4096)]


class ReportUsage(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """
    What the attempts that ended have used between the first and the last of some moments, added up by one or two things.

    What an attempt has used counts in the slices of time in which it ran, evenly over its wall-clock time; the attempt
    itself, and the job that it completed, count where its end was recorded.
    """

    by: Annotated[list[Axis], msgspec.Meta(min_length=1, max_length=2)]
    cuts: Annotated[list[Moment], msgspec.Meta(min_length=2, max_length=10_001)]
    """The slices of time, each from one moment up to the next, rising."""
    owners: list[Name] = []
    """Only these; none: all. The same holds of the next three."""
    groups: list[Text] = []
    projects: list[Text] = []
    machines: list[Text] = []
    at_least: Position | None = None


class UsageRow(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What was used by one combination; times in microseconds."""

    key: list[str | int]
    """One for each of `by`: a name, empty if the jobs have none, or the number of the slice, from 0."""
    jobs: int = 0
    """That ran to their end."""
    attempts: int = 0
    """Runs that ended."""
    wall: int = 0
    slot_time: int = 0
    """Wall-clock time times cores: the sum of the next two."""
    good: int = 0
    """Slot time of programs that ran to their end, or up to their last checkpoint."""
    lost: int = 0
    """Slot time of attempts that ended early, since their last checkpoint."""
    cpu: int = 0
    """User and system."""
    uncharged: int = 0
    """Slot time that queues saw attempts take and no machine told of."""


class ReportedUsage(msgspec.Struct, frozen=True, kw_only=True):
    """In the order of the keys. Rows without anything are left out."""

    rows: list[UsageRow]


class QueryProgress(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Wait until the tables of jobs have everything up to a frame."""

    at_least: Position


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """How far the tables of jobs are."""

    frame: int
    """The last frame of that shard that they have."""


QUERY_HISTORY = Endpoint(
    "accounting",
    "query_history",
    QueryHistory,
    History,
    callers=(Caller.USER, Caller.JOB, Caller.SHADOW),
    repeat=Repeat.QUERY,
)
QUERY_USAGE = Endpoint(
    "accounting", "query_usage", QueryUsage, UsageReport, callers=(Caller.USER,), repeat=Repeat.QUERY
)
REPORT_USAGE = Endpoint(
    "accounting",
    "report_usage",
    ReportUsage,
    ReportedUsage,
    callers=(Caller.USER, Caller.GATEWAY),
    repeat=Repeat.QUERY,
)
QUERY_PROGRESS = Endpoint(
    "accounting",
    "query_progress",
    QueryProgress,
    Progress,
    callers=(Caller.USER, Caller.GATEWAY),
    repeat=Repeat.QUERY,
)
