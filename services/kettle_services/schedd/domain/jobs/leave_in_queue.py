"""Which jobs say something about staying in the queue after their end, and which stay."""

from collections.abc import Iterable, Mapping
from itertools import chain
from typing import Final

import msgspec

from kettle_wire.ads import Scalar
from kettle_wire.jobs import JobId

ATTRIBUTE: Final = "LeaveJobInQueue"


class LeaveInQueue(msgspec.Struct):
    """Of the jobs of one queue; empty, if none of them says anything."""

    clusters: set[int] = set()
    """In which a job says something."""
    kept: set[JobId] = set()
    """Jobs that have ended and stay."""

    def note(self, cluster: int, ad: Mapping[str, Scalar], columns: Iterable[str] = ()) -> None:
        """
        Jobs of a cluster have these attributes from now on, and each a value of `columns`. A literal false says nothing.
        """
        said = (name for name, value in ad.items() if value is not False)
        if any(name.lower() == ATTRIBUTE.lower() for name in chain(said, columns)):
            self.clusters.add(cluster)
