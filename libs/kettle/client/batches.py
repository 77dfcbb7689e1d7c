"""
Jobs that belong together, as one row of a table: those of a batch, or those of a job set.

What `kettle q` and `condor_q` show unless they are asked for single jobs.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

import msgspec

from kettle.client.jobs.status import id_of, status_of
from kettle_wire.ads.types import Ad
from kettle_wire.commands.queue import Unmade
from kettle_wire.jobs import JobId

ATTRIBUTES: Final = (
    "ClusterId", "ProcId", "Owner", "QDate", "JobStatus", "JobBatchName", "JobSetName", "JobSetId", "TotalSubmitProcs",
)  # fmt: skip
_RUNS: Final = frozenset({"running", "suspended"})
Key = tuple[str, str]
"""Whose, and what it is called."""


class Batch(msgspec.Struct, kw_only=True):
    """Some clusters that are counted together."""

    owner: str
    name: str
    number: int
    """JobSetId; of a batch 0."""
    submitted: int
    """When the first was submitted, seconds since 1970."""
    clusters: list[int] = []
    first: str = ""
    last: str = ""
    """The first and the last of the jobs in the queue."""
    total: int = 0
    """All jobs of clusters of which some are in the queue."""
    done: int = 0
    """Those that have left it."""
    unmade: int = 0
    """Those that come into it as there is room."""
    idle: int = 0
    running: int = 0
    """Suspended ones too."""
    held: int = 0

    suspended: int = 0
    """Of those that run."""

    @property
    def waiting(self) -> int:
        """Idle ones, and those that come into the queue as there is room."""
        return self.idle + self.unmade

    @property
    def ids(self) -> str:
        """`12.0-99`, or of several clusters `12.0 ... 15.3`, as condor_q writes it."""
        if self.first == self.last:
            return self.first
        cluster, _, proc = self.last.partition(".")
        same = self.first.partition(".")[0] == cluster
        return f"{self.first}-{proc}" if same else f"{self.first} ... {self.last}"


def by_batch(ad: Ad) -> Key | None:
    """Jobs that say nothing of a batch are one with those of their cluster."""
    name = ad.get("JobBatchName")
    return str(ad.get("Owner", "?")), name if isinstance(name, str) and name else f"ID: {ad.get('ClusterId')}"


def by_set(ad: Ad) -> Key | None:
    """Only those of a job set."""
    name = ad.get("JobSetName")
    return (str(ad.get("Owner", "?")), name) if isinstance(name, str) and name else None


def grouped(
    ads: Iterable[Ad], unmade: Iterable[Unmade], key_of: Callable[[Ad], Key | None]
) -> Iterator[Batch]:
    """One for each key, in the order of the first jobs; `ads` are in the order of the queue."""
    coming = {one.cluster: one.total - one.made for one in unmade}
    found: dict[Key, Batch] = {}
    sizes: dict[Key, dict[int, int]] = {}
    seen: Counter[Key] = Counter()
    for ad in ads:
        if (key := key_of(ad)) is None:
            continue
        job = id_of(ad)
        if key not in found:
            of_set = _number(ad, "JobSetId") if key_of is by_set else 0
            found[key] = Batch(
                owner=key[0],
                name=key[1],
                number=of_set,
                submitted=_number(ad, "QDate"),
                clusters=[],
                first=str(job),
            )
        found[key].submitted = min(found[key].submitted, _number(ad, "QDate"))
        _count(found[key], job, status_of(ad))
        seen[key] += 1
        sizes.setdefault(key, {})[job.cluster] = _number(ad, "TotalSubmitProcs")
    for key, batch in found.items():
        _sum(batch, seen[key], sizes[key], coming)
        yield batch


def _count(batch: Batch, job: JobId, status: str) -> None:
    batch.last = str(job)
    if not batch.clusters or batch.clusters[-1] != job.cluster:
        batch.clusters.append(job.cluster)
    if status in _RUNS:
        batch.running += 1
        batch.suspended += status == "suspended"
    elif status == "held":
        batch.held += 1
    elif status == "idle":
        batch.idle += 1


def _sum(batch: Batch, seen: int, sizes: Mapping[int, int], coming: Mapping[int, int]) -> None:
    batch.total = max(sum(sizes.values()), seen)
    batch.unmade = sum(coming.get(cluster, 0) for cluster in sizes)
    batch.done = max(0, batch.total - batch.waiting - batch.running - batch.held)


def _number(ad: Ad, name: str) -> int:
    value = ad.get(name)
    return int(value) if isinstance(value, int | float) else 0
