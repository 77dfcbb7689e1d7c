"""What happens to a cluster of jobs."""

from kettle.wire.ads.types import Ad, Scalar
from kettle.wire.events.base import Event


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
