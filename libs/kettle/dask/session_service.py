"""
What a cluster object needs of the pool: a session's life, its certificates, and the ways to its services.
"""

# distributed has no types:
# pyright: reportUnknownMemberType=false

import asyncio
from collections.abc import Mapping, Sequence
from typing import Protocol

import msgspec

from kettle.dask.addresses import JobAddress
from kettle.dask.credentials import Credentials
from kettle.dask.reports import Orders, Report


class Limits(msgspec.Struct, frozen=True):
    """Between which numbers of workers a session adapts itself to its load."""

    minimum: int
    maximum: int


class Wish(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What somebody wants of a new session; what is empty is as the profile says."""

    workers: int | None = None
    profile: str = ""
    name: str = ""
    cores: int = 0
    memory_mib: int = 0
    gpus: int = 0
    disk_mib: int = 0
    image: str = ""
    site: str = ""
    adapt: Limits | None = None
    life_s: float | None = None
    idle_s: float | None = None
    share: Sequence[str] = ()
    local: bool = False
    """Its scheduler is a program of ours, and no job."""


class Situation(msgspec.Struct, frozen=True, kw_only=True):
    """How a session is."""

    id: str
    name: str
    profile: str = ""
    state: str
    """`requested`, `queued`, `starting`, `ready`, `degraded`, `stopping` or `ended`."""
    reason: str = ""
    """Why, where the state needs one."""
    summary: str = ""
    """How many workers it has and wants, and for what the others wait."""
    wanted: int = 0
    running: int = 0
    scheduler_job: str = ""
    contact: str = ""
    """The scheduler's address; empty: there is none."""
    versions: Mapping[str, str] = {}
    adapt: Limits | None = None
    events: int = 0
    """How many there were; each change is one."""

    @property
    def over(self) -> bool:
        """Nothing comes of it any more."""
        return self.state in {"stopping", "ended"}


class SessionService(Protocol):
    """
    The pool's service of sessions, for one person.

    Each method raises ClientError: PoolUnreachableError after it was repeated for a while, CommandRefusedError at once.
    """

    async def create(self, wish: Wish) -> Situation:
        """Begin a session."""
        ...

    async def show(self, session: str) -> Situation:
        """By its id, or by its name."""
        ...

    async def scheduled_at(self, address: JobAddress) -> Situation | None:
        """The cluster that has its scheduler there; None: none that is one's own, or shared with one."""
        ...

    async def follow(self, session: str, after: int, wait_s: float) -> Situation:
        """As soon as there are more than `after` events, or after that time."""
        ...

    async def scale(self, session: str, workers: int) -> Situation:
        """To so many, whatever the load is."""
        ...

    async def adapt(self, session: str, limits: Limits) -> Situation:
        """To the load."""
        ...

    async def stop(self, session: str) -> Situation:
        """End it, and its jobs."""
        ...

    async def report_scheduler(self, session: str, report: Report) -> Orders:
        """Say how a scheduler is that is no job, and hear what it is to do."""
        ...

    async def credentials(self, session: str) -> Credentials:
        """A certificate of the session, for a key that is made here."""
        ...

    async def story(self, session: str) -> list[str]:
        """A line for each of its events."""
        ...

    async def link(self, job: str, service: str) -> str:
        """Where a browser finds a service; empty where the pool has no gateway."""
        ...

    async def open_stream(self, job: str, service: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """The way through the gateway; raises OSError."""
        ...
