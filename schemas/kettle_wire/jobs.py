"""Job ids: a cluster and a process number, written `cluster.proc`."""

from typing import Annotated

import msgspec

Number = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]
"""A cluster's or a job's number, or a count of them."""

Name = Annotated[str, msgspec.Meta(max_length=256, pattern=r"^[^\x00]*$")]
"""A name of a person or a thing, which a database can store as text."""


class JobId(msgspec.Struct, frozen=True, array_like=True, order=True, forbid_unknown_fields=True, gc=False):
    """The id of one job inside its schedd; orders as a queue does."""

    cluster: Number
    proc: Number

    def __str__(self) -> str:
        return f"{self.cluster}.{self.proc}"

    @classmethod
    def parse(cls, text: str) -> "JobId":
        """Read `C.P`; raises ValueError with a sentence for anything else."""
        cluster, dot, proc = text.partition(".")
        if not (dot and cluster.isdecimal() and proc.isdecimal()):
            raise ValueError(f"'{text}' is not a job id: expected CLUSTER.PROC, as in 12.0")
        return cls(int(cluster), int(proc))
