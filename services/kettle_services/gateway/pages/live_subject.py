"""What the live part of a page shows, which says when it is made again and for whom it is the same."""

import math
from collections.abc import Iterable

import msgspec

from kettle_services.gateway.rest.event_hub import Happening
from kettle_wire.jobs import JobId


class ChangedThings(msgspec.Struct):
    """The owners, clusters and jobs that events are about."""

    owners: set[str] = msgspec.field(default_factory=set)
    clusters: set[int] = msgspec.field(default_factory=set)
    jobs: set[tuple[int, int | None]] = msgspec.field(default_factory=set)
    """None in the place of a process: all jobs of the cluster."""

    @classmethod
    def of(cls, happenings: Iterable[Happening]) -> "ChangedThings":
        """What these are about."""
        things = cls()
        for each in happenings:
            things.owners.add(each.owner)
            if each.cluster is not None:
                things.clusters.add(each.cluster)
                things.jobs.add((each.cluster, each.proc))
        return things


class LiveSubject(msgspec.Struct, frozen=True, kw_only=True):
    """The jobs that a part is about: those of which all is true that is named here."""

    owners: frozenset[str] = frozenset()
    """None: of anybody."""
    clusters: frozenset[int] = frozenset()
    """None: of any."""
    job: JobId | None = None
    """One of them, at whatever access point."""
    again_s: float = math.inf
    """So long after it was made last it is made again when anything has happened in the pool, for what it shows besides."""
    choices: str = ""
    """A cookie with a choice of the reader that it heeds."""
    public: bool = False
    """Everybody sees the same of it, besides the owners of what it shows."""

    def shows(self, changed: ChangedThings) -> bool:
        """Whether it may be another one now."""
        job = self.job
        return (
            (not self.owners or not self.owners.isdisjoint(changed.owners))
            and (not self.clusters or not self.clusters.isdisjoint(changed.clusters))
            and (
                job is None or (job.cluster, job.proc) in changed.jobs or (job.cluster, None) in changed.jobs
            )
        )
