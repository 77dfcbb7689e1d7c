"""
What people decided about pools of workers, on the stream `pool/<name>`.

`by` is who did it: a login name.  Times are seconds since the epoch.
"""

from kettle_wire.events.base import Event
from kettle_wire.worker_pools import WorkerPool


class PoolChanged(Event, frozen=True, kw_only=True, tag="pool.changed/1"):
    """A pool file was applied that says something new."""

    pool: WorkerPool
    digest: str
    """SHA-256 of what the file says, whatever its form: the same again changes nothing."""
    by: str
    at: float


class PoolPaused(Event, frozen=True, kw_only=True, tag="pool.paused/1"):
    """No machine is made for it until it is resumed."""

    reason: str = ""
    drain: bool = False
    """The machines that it has take no more jobs, and are removed."""
    by: str
    at: float


class PoolResumed(Event, frozen=True, kw_only=True, tag="pool.resumed/1"):
    """It may have machines again."""

    by: str
    at: float


class PoolRetired(Event, frozen=True, kw_only=True, tag="pool.retired/1"):
    """
    It is given up: its machines take no more jobs and are removed, and none is made; a file applied later begins it again.
    """

    by: str
    at: float


PoolEvent = PoolChanged | PoolPaused | PoolResumed | PoolRetired
