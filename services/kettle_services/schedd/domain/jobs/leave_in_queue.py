"""Which jobs say something about staying in the queue after their end, and which stay."""

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from kettle.jobs.lower_names import lower_names
from kettle_services.schedd.domain.queue.alike import JobsAlike
from kettle_wire.ads import Scalar
from kettle_wire.jobs import JobId

ATTRIBUTE: Final = "LeaveJobInQueue"
_LOWER: Final = ATTRIBUTE.lower()


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
        name = lower_names(ad).get(_LOWER)
        if (name is not None and ad[name] is not False) or _LOWER in map(str.lower, columns):
            self.clusters.add(cluster)

    def enter(self, alike: JobsAlike) -> None:
        """Keep jobs in mind that have ended and stay."""
        state = alike.entry.job
        if state.kept and state.ended:
            self.kept.update(alike.jobs)

    def leave(self, alike: JobsAlike) -> None:
        """Inverse of `enter`."""
        if alike.entry.job.kept:
            self.kept.difference_update(alike.jobs)
