"""
Interactive sessions: a cluster of Dask, a notebook, or a program with which somebody works.

A session has one *head*, the job that makes it what it is (the scheduler of Dask, the server of the notebook, the program), and as many
*workers* as are wanted. Both are jobs of the session's owner.
"""

from typing import Annotated, Final, Literal

import msgspec

from kettle_wire.job_tokens import NeededToken
from kettle_wire.jobs import Name

SessionKind = Literal["dask", "notebook", "process"]
SessionState = Literal["requested", "queued", "starting", "ready", "degraded", "stopping", "ended"]
"""
`requested`: nothing was submitted yet. `queued`: the head waits. `starting`: it runs, and is not ready. `ready`: it can be worked with.
`degraded`: something is missing, and is being replaced. `stopping`: its jobs are being ended. `ended`: it has none.
"""
SessionOutcome = Literal["", "stopped", "completed", "failed", "expired", "idle"]
"""
How a session ended: somebody stopped it, its program ended with code 0, it could not go on, its life was over, nobody used it.
"""
MemberRole = Literal["head", "worker"]
MemberStatus = Literal["ordered", "idle", "matched", "running", "held", "removing", "gone"]
"""
`ordered`: its job is not in the queue yet. `matched`: it has a slot, and its program does not run yet.
`removing`: somebody has removed its job, whose program is being ended.
"""

InteractiveMembers = Literal["none", "head", "all"]
"""Which members are interactive jobs, for which machines may keep room."""

MOST_WORKERS: Final = 10_000
SessionId = Annotated[str, msgspec.Meta(pattern=r"^[a-z0-9]{8,32}$")]
SessionName = Annotated[
    str, msgspec.Meta(min_length=1, max_length=64, pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$")
]
Count = Annotated[int, msgspec.Meta(ge=0, le=MOST_WORKERS)]
Word = Annotated[str, msgspec.Meta(max_length=4096, pattern=r"^[^\x00]*$")]
Span = Annotated[float, msgspec.Meta(ge=0, le=3.2e9)]
"""Seconds; 0: without end."""


class SessionSize(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """
    How large a session is: how many workers, and what each takes. Of a session without workers: what the head takes.
    """

    workers: Count | None = None
    """None: as many as the profile says."""
    cpus: Annotated[int, msgspec.Meta(ge=1, le=100_000)] | None = None
    memory: Annotated[int, msgspec.Meta(ge=1, le=10**9)] | None = None
    """MiB."""
    gpus: Annotated[int, msgspec.Meta(ge=0, le=10_000)] | None = None
    disk: Annotated[int, msgspec.Meta(ge=1, le=10**9)] | None = None
    """MiB."""


class SessionAdapt(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Between which numbers of workers the scheduler of a session has its way."""

    minimum: Count = 0
    maximum: Count = MOST_WORKERS


class MemberPlan(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the jobs of one role are."""

    command: list[str]
    cpus: int = 1
    memory: int = 1024
    """MiB."""
    gpus: int = 0
    disk: int = 1024
    """MiB."""
    services: str = ""
    """What they publish, in the words of the submit command `services`."""
    environment: dict[str, str] = {}


class SessionPlan(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """
    What a session was made of: a profile, and what was asked for. A profile that changes later changes nothing of it.
    """

    profile: str
    head: MemberPlan
    worker: MemberPlan | None = None
    """None: a session of this kind has no workers."""
    image: str = ""
    requirements: str = ""
    """An expression that a slot must meet."""
    site: str = ""
    """The SiteName of the machines of all members; empty: of the workers, that of the head."""
    spread: bool = False
    """Workers are not bound to the site of the head."""
    worker_life: float = 0.0
    """Seconds after which a worker is replaced; 0: never."""
    interactive: InteractiveMembers = "none"
    local: bool = False
    """Its scheduler is a program of its owner's, and no job: there is no head."""
    files: list[str] = []
    """The names of the files that its owner has given to it."""
    tokens: list[NeededToken] = []
    """Those that the head has."""
    grace: float = 60.0
    """Seconds that a worker has to hand over what it holds."""


class SessionTarget(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the owner wants now."""

    workers: int = 0
    adapt: SessionAdapt | None = None
    """None: as many workers as were said."""
    life: float = 0.0
    """Seconds from the beginning; 0: without end."""
    idle: float = 0.0
    """Seconds without use after which it ends; 0: never."""
    shared_with: list[str] = []
    """People by their names, and `group:NAME`."""


Shares = Annotated[list[Name], msgspec.Meta(max_length=100)]
