"""What happens to a cluster of jobs."""

from collections.abc import Iterator
from typing import ClassVar

from kettle_wire.ads.types import Ad, Scalar
from kettle_wire.events.base import Event


class ClusterSubmitted(Event, frozen=True, tag="cluster.submitted/1"):
    """
    One submission: every job in it, in one event.

    Job `p` has the attributes of `ad`, then `columns[i] = rows[p][i]`, then `ProcId = p`.
    """

    cluster: int
    owner: str
    """From the submitter's credential, never from the ad."""
    ad: Ad
    columns: list[str]
    rows: list[list[Scalar]]
    late: ClassVar[bool] = False
    """Whether its jobs come into the queue little by little; if not, they all are in it now."""


class FactorySubmitted(ClusterSubmitted, frozen=True, tag="factory.submitted/1"):
    """
    A submission with late materialization: none of its jobs is in the queue until `factory.materialized` says so.

    The event is in the stream of its cluster, and describes the jobs like `cluster.submitted`. It is a separate type,
    so that a reader that does not know such jobs stops, instead of treating them as jobs in the queue.
    """

    late: ClassVar[bool] = True


class ClustersSubmitted(Event, frozen=True, tag="clusters.submitted/1"):
    """
    Submissions of one job each that say nearly the same: clusters `first`, `first + 1` and so on, one for each row.

    Cluster `first + i` is what `cluster.submitted` would say of it: its job has the attributes of `ad`, then
    `columns[j] = rows[i][j]`. Its stream is that of its span of numbers: see `kettle_wire.event_expansion`.
    """

    first: int
    owner: str
    """From the submitter's credential, never from the ad."""
    ad: Ad
    columns: list[str]
    rows: list[list[Scalar]]

    def one(self, cluster: int) -> ClusterSubmitted:
        """The submission of one of the clusters. Raises IndexError if it is none of them."""
        place = cluster - self.first
        if place < 0:
            raise IndexError(f"cluster {cluster} was submitted before")
        own = dict(zip(self.columns, self.rows[place], strict=True))
        return ClusterSubmitted(
            cluster=cluster, owner=self.owner, ad={**self.ad, **own}, columns=[], rows=[[]]
        )

    def each(self) -> Iterator[ClusterSubmitted]:
        """The submissions of all of them."""
        return (self.one(self.first + place) for place in range(len(self.rows)))
