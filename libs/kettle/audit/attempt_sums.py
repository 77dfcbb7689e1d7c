"""
Usage added up from the attempts, by other code than that which fills the tables. Pure.

It reads the events alone, never a job ad: the owner of a cluster, the cores that its jobs ask for, also by an edit, and what
each attempt that ended has used.
"""

from typing import Final

import msgspec

from kettle_wire.ads.types import Ad, Scalar
from kettle_wire.events import (
    ClusterSubmitted,
    Event,
    JobCompleted,
    JobEdited,
    JobRemoved,
    JobVacated,
    Usage,
)
from kettle_wire.jobs import JobId

_PREFIX: Final = "job/"
_US: Final = 1_000_000


class Sum(msgspec.Struct):
    """What the attempts of one owner have used; times in whole microseconds."""

    jobs_completed: int = 0
    attempts: int = 0
    wall: int = 0
    slot_time: int = 0
    cpu: int = 0


class _Cluster(msgspec.Struct, frozen=True):
    owner: str
    cores: Scalar
    """
    The request of all its jobs; an expression counts as one core, because its value cannot be known afterwards.
    """
    column: list[Scalar] | None
    """What each of its jobs asks for."""


class Sums:
    """Fed the events of one shard from the first one on."""

    def __init__(self) -> None:
        self.owners: dict[str, Sum] = {}
        self._clusters: dict[int, _Cluster] = {}
        self._edited: dict[str, Scalar] = {}
        """What jobs ask for now that have been edited, by stream."""
        self._removed: set[str] = set()

    def feed(self, stream: str, event: Event) -> str:
        """Look at the next event; returns whose sum it changed, empty: nobody's."""
        match event:
            case ClusterSubmitted():
                self._clusters[event.cluster] = _cluster(event)
            case JobEdited(attributes=attributes):
                if (cores := _cores(attributes)) is not None:
                    self._edited[stream] = cores
            case JobRemoved():
                # Also of one that has completed and stays: nothing is added of it any more.
                self._removed.add(stream)
            case JobVacated(usage=usage):
                return self._add(stream, usage, completed=False)
            case JobCompleted(usage=usage):
                return self._add(stream, usage, completed=stream not in self._removed)
            case _:
                pass
        return ""

    def _add(self, stream: str, usage: Usage, *, completed: bool) -> str:
        job = JobId.parse(stream.removeprefix(_PREFIX))
        cluster = self._clusters.get(job.cluster)
        self._removed.discard(stream)
        if cluster is None:
            return ""  # never submitted: every other check says so
        submitted = cluster.cores if cluster.column is None else cluster.column[job.proc]
        cores = self._edited.get(stream, submitted)
        wall = round(usage.wall * _US)
        total = self.owners.setdefault(cluster.owner, Sum())
        total.jobs_completed += completed
        total.attempts += 1
        total.wall += wall
        total.slot_time += round(wall * cores) if isinstance(cores, int | float) else wall
        total.cpu += round(usage.user_cpu * _US) + round(usage.system_cpu * _US)
        return cluster.owner


def _cluster(event: ClusterSubmitted) -> _Cluster:
    for index, name in enumerate(event.columns):
        if name.lower() == "requestcpus":
            return _Cluster(event.owner, 1, [row[index] for row in event.rows])
    cores = _cores(event.ad)
    return _Cluster(event.owner, 1 if cores is None else cores, None)


def _cores(ad: Ad) -> Scalar | None:
    """The cores that an ad asks for; None: it says nothing of them."""
    return next((value for name, value in ad.items() if name.lower() == "requestcpus"), None)
