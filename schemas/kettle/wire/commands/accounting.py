"""What accounting is asked: the past."""

import msgspec

from kettle.wire.ads.types import Ad
from kettle.wire.endpoint import Endpoint, Position
from kettle.wire.jobs import JobId, Name, Number


class QueryHistory(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Ads of jobs that have left the queue, newest first."""

    jobs: list[JobId] = []
    clusters: list[Number] = []
    owners: list[Name] = []
    limit: Number = 100
    at_least: Position | None = None


class History(msgspec.Struct, frozen=True, kw_only=True):
    """Newest first."""

    jobs: list[Ad]


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


QUERY_HISTORY = Endpoint("accounting", "query_history", QueryHistory, History)
QUERY_USAGE = Endpoint("accounting", "query_usage", QueryUsage, UsageReport)

ENDPOINTS = (QUERY_HISTORY, QUERY_USAGE)
