"""
The program of a session's worker: `python -m kettle.dask.worker`, in a job whose id is the worker's name.

A worker whose scheduler is gone joins the next one; it ends when it was retired, when no scheduler comes in time, or at the
end of its life.
"""

import argparse
import asyncio
import signal
import sys
from enum import IntEnum
from pathlib import Path
from typing import Any, Final

from distributed import Worker

from kettle.dask.comm import listen_as
from kettle.dask.credentials import CredentialsError
from kettle.dask.membership import Membership, SharedDirectory
from kettle.dask.placement import NotInJobError, Placement, placement_of_job
from kettle.dask.versions import mismatch, own_versions

WORKER: Final = "worker"
"""The name of its service."""
DEATH_TIMEOUT_S: Final = 120.0
_LOST: Final = frozenset({"worker-handle-scheduler-connection-broken", "worker-heartbeat-missing"})
"""Reasons of Dask for which a worker closes that may join another scheduler."""


class Ended(IntEnum):
    """Why the program ended, as its job's exit code."""

    DISMISSED = 0
    UNUSABLE = 1
    ALONE = 3
    """No scheduler came in time."""
    UNEQUAL = 4
    """The scheduler's versions are others."""


class JobWorker(Worker):
    """A worker that knows why it was closed."""

    closed_for = ""

    async def close(self, *args: Any, reason: str = "worker-close", **options: Any) -> str | None:
        """As Dask's own."""
        self.closed_for = self.closed_for or reason
        return await super().close(*args, reason=reason, **options)


class WorkerProgram:
    """One worker after the other, until the job is no longer needed."""

    def __init__(
        self,
        membership: Membership,
        placement: Placement,
        *,
        lifetime_s: float = 0.0,
        death_timeout_s: float = DEATH_TIMEOUT_S,
    ) -> None:
        """`lifetime_s`: after so long it moves its data to others and ends; 0: never."""
        self._membership = membership
        self._placement = placement
        self._lifetime_s = lifetime_s
        self._death_timeout_s = death_timeout_s
        self._worker: JobWorker | None = None
        self._ended = False

    async def run(self) -> Ended:
        """Until it ends."""
        listen_as(self._placement, WORKER)
        contact = ""
        while not self._ended:
            try:
                async with asyncio.timeout(self._death_timeout_s):
                    contact, theirs = await self._membership.scheduler(after=contact)
            except TimeoutError:
                print(f"kettle.dask.worker: no scheduler in {self._death_timeout_s:g} s", file=sys.stderr)
                return Ended.ALONE
            if said := mismatch(own_versions(), theirs, we="this worker's image", they="the scheduler"):
                print(f"kettle.dask.worker: {said}", file=sys.stderr)
                return Ended.UNEQUAL
            if not await self._serve(contact):
                break
        return Ended.DISMISSED

    async def end(self) -> None:
        """Move the data of the worker to others, as far as there is time, and end."""
        self._ended = True
        if self._worker is not None:
            await self._worker.close_gracefully(reason="the job of the worker is ended")

    async def _serve(self, contact: str) -> bool:
        """Work for this scheduler; whether another one may have us afterwards."""
        place = self._placement
        self._worker = worker = JobWorker(
            contact,
            name=place.job,
            protocol="kettle",
            host=place.listens_to or "0.0.0.0",  # noqa: S104  as of the scheduler
            nthreads=place.cores,
            memory_limit=place.memory_bytes or "auto",
            security=self._membership.credentials.security(self._membership.open_stream),
            lifetime=self._lifetime_s or None,
            lifetime_restart=False,
            death_timeout=self._death_timeout_s,
            dashboard=False,
            dashboard_address="127.0.0.1:0",
        )
        await worker
        await self._membership.publish(WORKER, worker.port, "tcp")
        await worker.finished()
        return worker.closed_for in _LOST


async def run_worker(program: WorkerProgram) -> Ended:
    """With the signals by which jobs are ended."""
    loop = asyncio.get_running_loop()
    ending: list[asyncio.Task[None]] = []

    def end() -> None:
        if not ending:
            ending.append(asyncio.create_task(program.end()))

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, end)
    return await program.run()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m kettle.dask.worker", description=__doc__)
    parser.add_argument(
        "--shared", type=Path, metavar="DIRECTORY", help="files that the programs of a session share"
    )
    parser.add_argument("--lifetime", type=float, default=0.0, metavar="SECONDS")
    parser.add_argument("--death-timeout", type=float, default=DEATH_TIMEOUT_S, metavar="SECONDS")
    options = parser.parse_args()
    try:
        membership = SharedDirectory(options.shared)
        placement = placement_of_job()
    except (CredentialsError, NotInJobError) as error:
        print(f"kettle.dask.worker: {error}", file=sys.stderr)
        return Ended.UNUSABLE
    program = WorkerProgram(
        membership, placement, lifetime_s=options.lifetime, death_timeout_s=options.death_timeout
    )
    return asyncio.run(run_worker(program))


if __name__ == "__main__":
    sys.exit(main())
