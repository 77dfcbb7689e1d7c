"""
The ads of jobs in the queue as they are now: as they were submitted, as their events have changed them, and what is known
of attempts that live.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Protocol, cast

from kettle.jobs import in_use, job_ads
from kettle_services.schedd.domain.claims.claim import Claim
from kettle_services.schedd.domain.queue.entry import QueuedJob
from kettle_services.schedd.domain.queue.live_reports import LiveReports
from kettle_services.schedd.domain.submission.cluster import Cluster
from kettle_wire.ads import Ad
from kettle_wire.jobs import JobId

_RENEWED = "LastJobLeaseRenewal"


class Present(Protocol):
    """What is known of the jobs in a queue: see `Queue`, which is made of more than ads need."""

    schedd: str
    clusters: dict[int, Cluster]
    claims: dict[str, Claim]
    live: LiveReports

    @property
    def jobs(self) -> Mapping[JobId, QueuedJob]:
        """Those in the queue."""
        ...


class QueuedJobAds:
    """
    Ads of one queue's jobs, whole or with the attributes `names` only, which costs as little as these do.

    What the jobs of a cluster have in common is worked out once for those that are asked for one after the other.
    """

    def __init__(self, queue: Present, names: Iterable[str] = ()) -> None:
        self._queue = queue
        self._only = frozenset(name.lower() for name in names) or None
        self._wanted = _Wanted(self._only or frozenset())
        self._cluster = -1
        self._made: Callable[[int, str], Ad] = _nothing

    def ad(self, job: JobId) -> Ad:
        """The ad of a job in the queue."""
        queue = self._queue
        entry = queue.jobs[job]
        cluster = queue.clusters[job.cluster]
        if self._cluster != job.cluster:
            self._made = job_ads(cluster.submitted, cluster.at, only=self._only)
            self._cluster = job.cluster
        ad = self._made(job.proc, queue.schedd)
        if entry.changed:
            self._add(ad, entry.changed)
            if entry.routed is not None:
                for name in entry.routed.removed:
                    ad.pop(name, None)
        if cluster.factory is not None:
            self._add(ad, cluster.factory.attributes)
        if entry.job.claim:
            self._live(ad, job, entry)
        return ad

    def _add(self, ad: Ad, more: Ad) -> None:
        if self._only is None:
            ad.update(more)
        else:
            wanted = self._wanted
            for name in more:
                if wanted[name]:
                    ad[name] = more[name]

    def _live(self, ad: Ad, job: JobId, entry: QueuedJob) -> None:
        live = self._queue.live
        if (usage := live.measured.get(job)) is not None:
            self._add(ad, in_use(usage))
        if (tries := live.reconnecting.get(job)) is not None:
            self._add(ad, {"JobCurrentReconnectAttempt": tries})
        claim = self._queue.claims.get(entry.job.claim)
        if claim is not None and (renewed := live.renewed.get(claim.granted.startd)) is not None:
            self._add(ad, {_RENEWED: max(renewed, cast("int", entry.changed[_RENEWED]))})


class _Wanted(dict[str, bool]):
    """Whether an attribute is wanted, however it is spelled: each spelling is looked at once."""

    def __init__(self, only: frozenset[str]) -> None:
        super().__init__()
        self._only = only

    def __missing__(self, name: str) -> bool:
        found = self[name] = name.lower() in self._only
        return found


def _nothing(proc: int, schedd: str) -> Ad:
    raise LookupError(f"no cluster was asked for yet: {proc} of {schedd}")
