"""SubmitResult: the result of a submission."""

from kettle.bindings.ads import ClassAd


class SubmitResult:
    """A cluster that is in the queue; `int()` of it is its number."""

    def __init__(
        self,
        clusterID: int,
        procID: int,
        num_procs: int,
        clusterAd: ClassAd,
        spooled_proc_ads: list[ClassAd] | None = None,
    ) -> None:
        self._cluster = clusterID
        self._first = procID
        self._count = num_procs
        self._ad = clusterAd
        self._spooled = spooled_proc_ads

    def cluster(self) -> int:
        """ClusterId."""
        return self._cluster

    def first_proc(self) -> int:
        """ProcId of the first job."""
        return self._first

    def num_procs(self) -> int:
        """How many jobs."""
        return self._count

    def clusterad(self) -> ClassAd:
        """What the jobs share."""
        return self._ad

    @property
    def spooled(self) -> list[ClassAd]:
        """The ads of jobs whose input is still to be sent."""
        return self._spooled or []

    def __int__(self) -> int:
        return self._cluster

    def __str__(self) -> str:
        return f"Submitted {self._count} jobs into cluster {self._cluster},{self._first} :\n{self._ad}"

    def __repr__(self) -> str:
        return (
            f"SubmitResult(cluster={self._cluster}, first_proc={self._first}, num_procs={self._count}, "
            f"clusterad={self._ad})"
        )
