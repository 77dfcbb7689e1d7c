"""Jobs at other batch systems: what is asked of them, and what they say, in the same words for all."""

from enum import StrEnum
from typing import Annotated

import msgspec

Word = Annotated[str, msgspec.Meta(max_length=256, pattern=r"^[A-Za-z0-9][A-Za-z0-9._@:+,=/%-]*$|^$")]
"""A name in the batch system (queue, account, feature): it can be no other directive and no other argument."""
Intent = Annotated[str, msgspec.Meta(pattern=r"^k[a-z2-7]{14}$")]
"""The name of a job there, made from its claim and attempt before it is submitted; short enough for all of them."""
BatchId = Annotated[str, msgspec.Meta(min_length=1, max_length=256)]
"""What the batch system calls a job."""
Said = Annotated[str, msgspec.Meta(max_length=1000)]
"""What a batch system said, as one line."""


class BatchKind(StrEnum):
    """Which batch system it is."""

    SLURM = "slurm"
    SGE = "sge"
    PBS = "pbs"
    """OpenPBS, and PBS Professional."""
    TORQUE = "torque"
    LSF = "lsf"
    HTCONDOR = "htcondor"
    """HTCondor, or another Kettle pool, by their commands."""
    KETTLE = "kettle"
    """Another Kettle pool, by its own client."""
    LOCAL = "local"
    """This machine itself: the entrypoint starts the jobs."""


class BatchState(StrEnum):
    """Where a job is there."""

    QUEUED = "queued"
    """It waits for its machine."""
    HELD = "held"
    """It waits for somebody to release it."""
    RUNNING = "running"
    SUSPENDED = "suspended"
    """It has its machine, and its processes are stopped."""
    ENDED = "ended"


class EndCause(StrEnum):
    """Why a job is over, by the word of the batch system."""

    EXITED = "exited"
    """Its program ran to its end."""
    REMOVED = "removed"
    """Somebody removed it there."""
    MEMORY = "memory"
    """It used more memory than it had asked for."""
    TIME = "time"
    """It used more time than it had asked for."""
    NODE = "node"
    """Its machine failed."""
    PREEMPTED = "preempted"
    """Another job took its machine."""
    NOT_STARTED = "not-started"
    """It could not be started."""
    UNKNOWN = "unknown"
    """It is not there any more, and nobody knows how it ended."""


class BatchEnd(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How a job ended there."""

    cause: EndCause
    exit_code: int | None = None
    """None: not known, which is not 0."""
    signal: int | None = None
    words: Said = ""
    """The batch system's own word, and its reason."""
    began: float = 0.0
    """Seconds since the epoch; 0: not known."""
    ended: float = 0.0
    cpu: float = 0.0
    """Seconds of all its processes; 0: not known."""
    memory_kib: int = 0
    """Peak, KiB; 0: not known."""


class BatchRequest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a job asks of a batch system, with one meaning for all of them."""

    cpus: Annotated[int, msgspec.Meta(ge=1, le=1_000_000)] = 1
    """On each node."""
    memory: Annotated[int, msgspec.Meta(ge=0, le=1 << 40)] = 0
    """MB on each node; 0: what is usual there."""
    wall: Annotated[int, msgspec.Meta(ge=0, le=1 << 31)] = 0
    """Seconds after which it is ended; 0: what is usual there."""
    gpus: Annotated[int, msgspec.Meta(ge=0, le=10_000)] = 0
    """On each node."""
    nodes: Annotated[int, msgspec.Meta(ge=1, le=100_000)] = 1
    whole_node: bool = False
    """No other job is on its nodes."""
    queue: Word = ""
    """Partition, or queue; empty: the usual one."""
    account: Word = ""
    """Who is charged: account or project."""
    arguments: list[str] = []
    """More words for the command that submits."""
    strict: bool = False
    """These words are the job's own, and a route has brought it here: they may not say what its route was chosen by."""
    extra: dict[str, str] = {}
    """What the site's own program is told, which says more directives."""
