"""
What accounting is asked: the past.
"""

from typing import Annotated

import msgspec

from kettle.wire.ads.types import Ad
from kettle.wire.endpoint import Endpoint, Position
from kettle.wire.jobs import JobId, Name, Number

Constraint = Annotated[str, msgspec.Meta(max_length=65_536)]
"""A ClassAd expression."""

Moment = Annotated[float, msgspec.Meta(ge=0, lt=253_402_300_800)]
"""Seconds since the epoch, up to the year 9999."""


class HistoryPlace(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """
    A job's place in the history, which is ordered by when jobs left the queue.
    """

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
    """
    Newest first.
    """

    jobs: list[Ad]
    more: HistoryPlace | None = None
    """The search ended here, because it has as many as were asked for, or as fit, or because it took too long."""
    examined: int = 0
    """How many jobs were looked at."""


class QueryUsage(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """
    What principals have used.
    """

    owners: list[Name] = []


class OwnerUsage(msgspec.Struct, frozen=True, kw_only=True):
    """
    Sums over all recorded attempts, those that did not finish their job included.
    """

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
    """
    In the order of the owners' names.
    """

    owners: list[OwnerUsage]


QUERY_HISTORY = Endpoint("accounting", "query_history", QueryHistory, History)
QUERY_USAGE = Endpoint("accounting", "query_usage", QueryUsage, UsageReport)

ENDPOINTS = (QUERY_HISTORY, QUERY_USAGE)
