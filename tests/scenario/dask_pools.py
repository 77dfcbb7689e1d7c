"""What tests of Dask clusters have in common: the settings of their pool, and clusters in it."""

import os
import signal
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from kettle.client import select
from kettle.dask import KettleCluster
from kettle.dask.pool_sessions import sessions_of_pool
from kettle.testing.throwaway_pool import ThrowawayPool
from kettle_wire.jobs import JobId

SERVICES: Final = [
    "collector", "negotiator", "schedd", "shadow", "startd", "accounting", "sessions", "gateway",
]  # fmt: skip
SETTINGS: Final[dict[str, dict[str, Any]]] = {
    "master": {"daemon_list": SERVICES},
    "gateway": {"rest": True},
    # Jobs run this Python, which an account of a slot may not reach.
    "startd": {"job_account": "own"},
}


def cluster_in(pool: ThrowawayPool, n: int | None = None, **options: Any) -> KettleCluster:
    """A cluster in this pool, for the event loop of the test."""
    return KettleCluster(
        n, connect=lambda: sessions_of_pool(home=pool.home), asynchronous=True, quiet=True, **options
    )


def processes_of(job: JobId) -> list[int]:
    """The processes of a job of a pool on this machine: those that have its id in their environment."""
    sign = f"{job.cluster}.{job.proc}"
    found: list[int] = []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            command = (place / "cmdline").read_bytes()
            ad = (place / "cwd" / ".job.ad").read_text()
        except OSError:
            continue
        lines = set(ad.splitlines())
        if b"kettle.dask" in command and {f"ClusterId = {job.cluster}", f"ProcId = {job.proc}"} <= lines:
            found.append(int(place.name))
    assert found, f"no process of job {sign} was found"
    return found


def kill(job: str) -> None:
    """SIGKILL for the program of a job."""
    for pid in processes_of(JobId.parse(job)):
        with suppress(ProcessLookupError):  # the end of one may have been that of the others
            os.kill(pid, signal.SIGKILL)


async def jobs_left(pool: ThrowawayPool) -> list[str]:
    """Jobs of the queue that are not over."""
    ads = await pool.client.jobs(select(), projection=["ClusterId", "ProcId", "JobStatus"])
    return [f"{ad['ClusterId']}.{ad['ProcId']}" for ad in ads if ad["JobStatus"] in {1, 2, 5}]
