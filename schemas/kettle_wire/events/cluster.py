"""What happens to a cluster of jobs."""

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
