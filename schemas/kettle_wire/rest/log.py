"""What is recorded in the event log of a pool, as a list that can be searched."""

from typing import Annotated, Any

import msgspec

from kettle_wire.jobs import Name
from kettle_wire.rest.jobs import Filter, JobName, Limit
from kettle_wire.rest.route import Moment, Route

Kind = Annotated[
    str, msgspec.Meta(max_length=64, pattern=r"^[a-z_*]+(\.[a-z_*]+)?$", examples=["job.held", "job.*"])
]
"""A pattern of `noun.verb`, as in `job.*`."""


class ListLog(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """
    List recorded events, the newest first: of queues, the negotiator and the collector. Who may do what is not among them.
    """

    kind: list[Kind] = []
    """Only events of these kinds, as in `job.held` or `machine.*`."""
    job: JobName | None = None
    """Only what is recorded of this job."""
    machine: Name | None = None
    """Only that this machine came or left, and claims of its slots."""
    shard: list[Name] = []
    """Only the records of these, as in `schedd.ap1`, `negotiator`, `collector`."""
    stream: list[Name] = []
    """Only these streams, as in `job/12.0`, `claim/…`, `principal/ada`."""
    filter: Filter = ""
    """
    A ClassAd expression that has to be true of the event, whose fields are attributes besides Kind, Shard, Stream and Time (seconds since the
    epoch), as in `Reason == "x"`.
    """
    since: Moment | None = None
    """Only what was recorded then or later."""
    until: Moment | None = None
    """Only what was recorded before then."""
    as_of: Moment | None = None
    """The list as it was then."""
    limit: Limit = 50
    page: Annotated[str, msgspec.Meta(max_length=8192, pattern=r"^[A-Za-z0-9_-]*$")] = ""
    """`next` of the answer before."""


class LogRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One recorded event."""

    id: str
    """`SHARD:POSITION`."""
    shard: str
    frame: int
    at: Moment
    stream: str
    type: str
    """`noun.verb/N`, as the reference of events lists them."""
    sentence: str
    """What it says."""
    jobs: int = 0
    """So many jobs of a cluster are meant; absent: it is not about many."""
    event: dict[str, Any]
    """Its fields; of a submission only how many jobs it has, and whose they are."""


class LogRecords(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A page of the log."""

    records: list[LogRecord]
    next: str | None = None
    """
    The page token of what comes behind; absent: that was all. A page may be short, even empty, and yet have a next one: the search ended because
    it took too long.
    """
    archived: dict[str, str] = {}
    """By shard, what is older than this answer reaches and is in the archive: up to which frame, and how it is read."""


LIST_LOG = Route("GET", "/log", "list_log", parameters=ListLog, reply=LogRecords, errors=(404, 409))
