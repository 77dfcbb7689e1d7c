"""Streams over HTTP: events as they come, and which things have changed."""

from typing import Annotated

import msgspec

from kettle_wire.cloud_events import CloudEvent
from kettle_wire.jobs import Name, Number
from kettle_wire.rest.jobs import JobName
from kettle_wire.rest.route import Moment, Route

ClusterName = Annotated[
    str, msgspec.Meta(pattern=r"^[0-9]{1,10}(@[^\x00]{1,256})?$", examples=["12", "12@schedd"])
]
"""`CLUSTER`, or `CLUSTER@SCHEDD` where several access points may have one of this number."""


class Follow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What all streams of events have in common."""

    after: Annotated[int, msgspec.Meta(ge=0)] | None = None
    """Begin behind this place; 0: with the oldest that is kept."""
    since: Moment | None = None
    """Begin at this time."""
    kind: Annotated[
        str, msgspec.Meta(max_length=64, pattern=r"^[a-z_*]+(\.[a-z_*]+)?$", examples=["job.held", "job.*"])
    ] = "*"
    """A pattern of `noun.verb`, as in `job.*`."""


class FollowEvents(Follow, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """
    Follow the events of one's own jobs as they are recorded. The id of each is its place: who comes back with Last-Event-ID, or with
    `after`, misses none; an event `gap` says that some are not kept any more, and `cut` why the stream ends.
    """

    cluster: Number | None = None


class FollowJob(Follow, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Follow the events of one job of one's own."""

    id: JobName


class FollowCluster(Follow, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Follow the events of one cluster of one's own."""

    id: ClusterName


class FollowChanges(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """
    Follow which jobs of anybody's have changed, and what else of the pool, four times a second at most: for a list that is shown and
    is to be read again. There is no place to come back to: who has been away reads the list again.
    """

    owner: list[Name] = []
    """Only jobs of these persons."""
    cluster: list[Number] = []
    """Only jobs of clusters with these numbers."""
    job: list[JobName] = []
    """Only these jobs."""


class Changed(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What has changed since the last time."""

    jobs: list[str] = []
    """Their ids, `CLUSTER.PROC@SCHEDD`, in no order; of a submission `CLUSTER@SCHEDD`."""
    others: list[str] = []
    """Of the pool, if no jobs were named: `machine/NAME`, `cycle/NUMBER` and so on."""
    many: bool = False
    """More than are named here."""


FOLLOW_EVENTS = Route(
    "GET",
    "/events",
    "follow_events",
    parameters=FollowEvents,
    reply=CloudEvent,
    stream=True,
    headers=("Last-Event-ID",),
)
FOLLOW_JOB = Route(
    "GET",
    "/jobs/{id}/events",
    "follow_job",
    parameters=FollowJob,
    reply=CloudEvent,
    stream=True,
    errors=(404, 409),
    headers=("Last-Event-ID",),
)
FOLLOW_CLUSTER = Route(
    "GET",
    "/clusters/{id}/events",
    "follow_cluster",
    parameters=FollowCluster,
    reply=CloudEvent,
    stream=True,
    errors=(404, 409),
    headers=("Last-Event-ID",),
)
FOLLOW_CHANGES = Route(
    "GET",
    "/changes",
    "follow_changes",
    parameters=FollowChanges,
    reply=Changed,
    stream=True,
)
