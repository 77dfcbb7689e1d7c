"""What a pool has besides jobs, over HTTP: slots, machines, submitters, the clusters of its queues."""

from typing import Annotated

import msgspec

from kettle_wire.ads.types import Ad
from kettle_wire.jobs import Name, Number
from kettle_wire.rest.jobs import Attribute, Filter, Limit, Page
from kettle_wire.rest.route import Moment, Route


class ListAds(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What all lists of ads have in common."""

    filter: Filter = ""
    """A ClassAd expression that has to be true of the ad."""
    fields: list[Attribute] = []
    """Attributes that each is to be listed with; none: all."""
    limit: Limit = 50
    page: Page = ""
    """`next` of the answer before."""


class ListSlots(ListAds, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """List slots of machines as the collector knows them now, by name."""


class ListMachines(ListAds, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """List the startds of machines as the collector knows them now, by name."""


class ListSubmitters(ListAds, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """List who has jobs in the queues, with the demand that the negotiator sees, by name."""


class AdOf(msgspec.Struct, frozen=True, kw_only=True):
    """An ad."""

    name: str
    attributes: Ad
    """A value each, or `{"expr": TEXT}`."""


class Ads(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A page of ads, by name."""

    ads: list[AdOf]
    next: str | None = None
    """The page token of what comes behind; absent: that was all."""


class ListClusters(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """
    List clusters that have jobs in the queue, the last submitted first, with how many are in which state.
    """

    owner: list[Name] = []
    schedd: list[Name] = []
    cluster: list[Number] = []
    limit: Limit = 50
    page: Page = ""
    """`next` of the answer before."""


class Cluster(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A cluster of which jobs are in the queue."""

    id: str
    """`CLUSTER@SCHEDD`."""
    schedd: str
    cluster: int
    owner: str
    submitted: Moment
    states: dict[str, Annotated[int, msgspec.Meta(ge=1)]]
    """How many of its jobs in the queue are in which state."""
    name: str = ""
    """Of the batch, if it has one; this and the command are those of its first job in the queue."""
    command: str = ""
    """The program without its directory, with its arguments."""


class Clusters(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A page of clusters."""

    clusters: list[Cluster]
    next: str | None = None
    """The page token of what comes behind; absent: that was all."""
    frames: dict[str, int] = {}
    """How far each queue has been read: the number of its last frame in this answer."""


LIST_SLOTS = Route("GET", "/slots", "list_slots", parameters=ListSlots, reply=Ads)
LIST_MACHINES = Route("GET", "/machines", "list_machines", parameters=ListMachines, reply=Ads)
LIST_SUBMITTERS = Route("GET", "/submitters", "list_submitters", parameters=ListSubmitters, reply=Ads)
LIST_CLUSTERS = Route(
    "GET", "/clusters", "list_clusters", parameters=ListClusters, reply=Clusters, headers=("If-None-Match",)
)
