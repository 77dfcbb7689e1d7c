"""Job ids: a cluster and a process number, written `cluster.proc`."""

import msgspec


class JobId(msgspec.Struct, frozen=True, array_like=True, order=True):
    """The id of one job inside its schedd; orders as a queue does."""

    cluster: int
    proc: int

    def __str__(self) -> str:
        return f"{self.cluster}.{self.proc}"

    @classmethod
    def parse(cls, text: str) -> "JobId":
        """Read `C.P`; raises ValueError with a sentence for anything else."""
        cluster, dot, proc = text.partition(".")
        if not (dot and cluster.isdecimal() and proc.isdecimal()):
            raise ValueError(f"'{text}' is not a job id: expected CLUSTER.PROC, as in 12.0")
        return cls(int(cluster), int(proc))
