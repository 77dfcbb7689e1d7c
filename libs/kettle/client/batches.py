"""
Jobs that belong together, as one row of a table: those of a batch, or those of a job set.

What `kettle q` and `condor_q` show unless they are asked for single jobs.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

import msgspec

from kettle.client.jobs.status import id_of, status_of
from kettle_wire.ads.types import Ad, Scalar
from kettle_wire.commands.queue import Unmade

ATTRIBUTES: Final = (
    "ClusterId", "ProcId", "Owner", "QDate", "JobStatus", "JobBatchName", "JobSetName", "JobSetId", "TotalSubmitProcs",
    "DAGManJobId", "DAG_NodesTotal", "DAG_NodesDone",
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
    """
    Jobs that say nothing of a batch are one with those of their cluster, and nodes with the job of their DAG.
    """
    name = ad.get("JobBatchName")
    if not isinstance(name, str) or not name:
        name = f"ID: {ad.get('DAGManJobId', ad.get('ClusterId'))}"
    return str(ad.get("Owner", "?")), name


def by_set(ad: Ad) -> Key | None:
    """Only those of a job set."""
    name = ad.get("JobSetName")
    return (str(ad.get("Owner", "?")), name) if isinstance(name, str) and name else None


class Batches:
    """Batches of jobs that come little by little, in the order of the queue."""

    def __init__(self, key_of: Callable[[Ad], Key | None]) -> None:
        """`key_of`: to which batch the job of an ad belongs, if to any."""
        self._key_of: Final = key_of
        self._found: Final[dict[Key, _Counted]] = {}

    def add(self, ads: Iterable[Ad]) -> None:
        """Some more jobs."""
        for ad in ads:
            if (key := self._key_of(ad)) is None:
                continue
            counted = self._found.get(key)
            if counted is None:
                number = _number(ad, "JobSetId") if self._key_of is by_set else 0
                counted = self._found[key] = _Counted(key, number, ad)
            counted.add(ad)

    def rows(self, unmade: Iterable[Unmade]) -> Iterator[Batch]:
        """One for each key, in the order of the first jobs."""
        coming = {one.cluster: one.total - one.made for one in unmade}
        for counted in self._found.values():
            yield counted.batch(coming)


class _Counted:
    """
    What has been seen of a batch so far.

    The job of a DAG is none of those that are counted: it says how many nodes there are and how many are done, and the jobs
    of its nodes, of which only some are in the queue at a time, count only by how they are.
    """

    def __init__(self, key: Key, number: int, first: Ad) -> None:
        self._key: Final = key
        self._number: Final = number
        self._first = first
        self._last = first
        self._submitted = _number(first, "QDate")
        self._statuses: Final[dict[Scalar, int]] = {}
        self._sizes: Final[dict[int, int]] = {}
        self._cluster: object = None
        """The cluster of the last job: what its jobs have in common is looked at once."""
        self._dags: Final = _Dags()

    def add(self, ad: Ad) -> None:
        """One more job."""
        if "DAG_NodesTotal" in ad:
            self._dags.add(ad)
            self._submitted = min(self._submitted, _number(ad, "QDate"))
            return
        if self._dags.clusters and not self._sizes:
            self._first = ad
        self._last = ad
        status, cluster = ad.get("JobStatus", 0), ad.get("ClusterId")
        self._statuses[status] = self._statuses.get(status, 0) + 1
        if cluster != self._cluster:
            self._cluster = cluster
            self._sizes[id_of(ad).cluster] = 0 if "DAGManJobId" in ad else _number(ad, "TotalSubmitProcs")
            self._submitted = min(self._submitted, _number(ad, "QDate"))

    def batch(self, coming: Mapping[int, int]) -> Batch:
        """
        All of it as a row; `coming`: of each cluster the jobs that come into the queue as there is room.
        """
        statuses: Counter[str] = Counter()
        for status, count in self._statuses.items():
            statuses[status_of({"JobStatus": status})] += count
        row = Batch(
            owner=self._key[0],
            name=self._key[1],
            number=self._number,
            submitted=self._submitted,
            clusters=[*self._dags.clusters, *self._sizes],
            first=str(id_of(self._first)),
            last=str(id_of(self._last)),
            total=max(sum(self._sizes.values()) + self._dags.nodes, statuses.total()),
            unmade=sum(coming.get(cluster, 0) for cluster in self._sizes),
            idle=statuses["idle"],
            running=sum(statuses[each] for each in _RUNS),
            held=statuses["held"],
            suspended=statuses["suspended"],
        )
        left = row.total - row.waiting - row.running - row.held
        row.done = self._dags.done if self._dags.clusters else max(0, left)
        return row


class _Dags:
    """The jobs of DAGs in a batch."""

    def __init__(self) -> None:
        self.clusters: Final[list[int]] = []
        self.nodes = 0
        self.done = 0

    def add(self, ad: Ad) -> None:
        """One more, a nested one perhaps."""
        self.clusters.append(id_of(ad).cluster)
        self.nodes += _number(ad, "DAG_NodesTotal")
        self.done += _number(ad, "DAG_NodesDone")


def grouped(
    ads: Iterable[Ad], unmade: Iterable[Unmade], key_of: Callable[[Ad], Key | None]
) -> Iterator[Batch]:
    """One for each key, in the order of the first jobs; `ads` are in the order of the queue."""
    batches = Batches(key_of)
    batches.add(ads)
    return batches.rows(unmade)


def _number(ad: Ad, name: str) -> int:
    value = ad.get(name)
    return int(value) if isinstance(value, int | float) else 0
