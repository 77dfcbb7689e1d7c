"""Which jobs say something about staying in the queue after their end, and which stay."""

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from kettle.wire.ads import Scalar
from kettle.wire.jobs import JobId

ATTRIBUTE: Final = "LeaveJobInQueue"


class Staying(msgspec.Struct):
    """Of the jobs of one queue; empty, if none of them says anything."""

    clusters: set[int] = set()
    """In which a job says something."""
    kept: set[JobId] = set()
    """Jobs that have ended and stay."""

    def note(self, cluster: int, *ads: Mapping[str, Scalar] | Iterable[str]) -> None:
        """Jobs of a cluster have these attributes from now on, or some of these names. A literal false says nothing."""
        for ad in ads:
            said = ad.items() if isinstance(ad, Mapping) else ((name, True) for name in ad)
            if any(name.lower() == ATTRIBUTE.lower() and value is not False for name, value in said):
                self.clusters.add(cluster)
