"""
Jobs that belong together, as one row of a table: those of a batch, or those of a job set.

What `condor_q` shows unless it is asked for single jobs.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

import msgspec

from kettle.client.jobs.status import id_of, status_of
from kettle_services.cli.output.quantities import clock
from kettle_services.cli.output.screen import Cell
from kettle_services.cli.tables.jobs import number
from kettle_wire.ads.types import Ad
from kettle_wire.commands.schedd import Unmade
from kettle_wire.jobs import JobId

ATTRIBUTES: Final = (
    "ClusterId", "ProcId", "Owner", "QDate", "JobStatus", "JobBatchName", "JobSetName", "JobSetId", "TotalSubmitProcs",
)  # fmt: skip
BATCH_TITLES: Final = ("OWNER", "BATCH_NAME", "SUBMITTED", "DONE", "RUN", "IDLE", "HOLD", "TOTAL", "JOB_IDS")
SET_TITLES: Final = ("OWNER", "JOB_SET", "SUBMITTED", "DONE", "RUN", "IDLE", "HOLD", "TOTAL", "JOB_IDS")
RIGHT: Final = frozenset({"DONE", "RUN", "IDLE", "HOLD", "TOTAL"})
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

    @property
    def row(self) -> list[Cell]:
        """For a table."""
        ids = self.first if self.first == self.last else _between(self.first, self.last)
        waiting = self.idle + self.unmade
        counts = (self.done, self.running, waiting, self.held, self.total)
        return [self.owner, self.name, clock(self.submitted), *counts, ids]


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
    for ad in ads:
        if (key := key_of(ad)) is None:
            continue
        job = id_of(ad)
        if key not in found:
            of_set = int(number(ad, "JobSetId")) if key_of is by_set else 0
            found[key] = Batch(
                owner=key[0],
                name=key[1],
                number=of_set,
                submitted=int(number(ad, "QDate")),
                clusters=[],
                first=str(job),
            )
        _count(found[key], job, status_of(ad))
        sizes.setdefault(key, {})[job.cluster] = int(number(ad, "TotalSubmitProcs"))
    for key, batch in found.items():
        _sum(batch, sizes[key], coming)
        yield batch


def _count(batch: Batch, job: JobId, status: str) -> None:
    batch.last = str(job)
    if not batch.clusters or batch.clusters[-1] != job.cluster:
        batch.clusters.append(job.cluster)
    if status in _RUNS:
        batch.running += 1
    elif status == "held":
        batch.held += 1
    elif status == "idle":
        batch.idle += 1


def _sum(batch: Batch, sizes: Mapping[int, int], coming: Mapping[int, int]) -> None:
    batch.total = sum(sizes.values())
    batch.unmade = sum(coming.get(cluster, 0) for cluster in sizes)
    batch.done = batch.total - batch.unmade - batch.idle - batch.running - batch.held


def _between(first: str, last: str) -> str:
    """`12.0-99`, or of several clusters `12.0 ... 15.3`, as condor_q writes it."""
    cluster, _, proc = last.partition(".")
    return f"{first}-{proc}" if first.partition(".")[0] == cluster else f"{first} ... {last}"
