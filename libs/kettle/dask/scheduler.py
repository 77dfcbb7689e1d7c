"""
The program of a session's scheduler: `python -m kettle.dask.scheduler`, in a job.

It listens at free ports, publishes them as the services `dask` and `dashboard`, and tells its session where it is.
"""

import argparse
import asyncio
import signal
import sys
from pathlib import Path
from typing import Final

from distributed import Scheduler

from kettle.dask.comm import listen_as
from kettle.dask.credentials import CredentialsError
from kettle.dask.membership import Membership, SharedDirectory
from kettle.dask.placement import NotInJobError, Placement, placement_of_job
from kettle.dask.versions import own_versions

DASK: Final = "dask"
DASHBOARD: Final = "dashboard"
"""The names of its services."""


async def run_scheduler(
    membership: Membership, placement: Placement, *, port: int = 0, dashboard_port: int = 0
) -> None:
    """Until it is told to end, by its session or by a signal."""
    listen_as(placement, DASK)
    async with Scheduler(
        protocol="kettle",
        host=placement.listens_to or "0.0.0.0",  # noqa: S104  who has no certificate of the session gets no further
        port=port,
        security=membership.credentials.security(membership.open_stream),
        dashboard_address=f"127.0.0.1:{dashboard_port}",
        idle_timeout=None,
    ) as scheduler:
        await membership.publish(DASK, scheduler.port, "tcp")
        if (dashboard := scheduler.services.get("dashboard")) is not None:
            await membership.publish(DASHBOARD, dashboard.port, "http")
        await membership.announce(scheduler.address, own_versions())
        close_at_signals(scheduler)
        await scheduler.finished()


def close_at_signals(scheduler: Scheduler) -> None:
    """A job that is vacated or removed gets SIGTERM: its clients and workers are told, not left with a silent peer."""
    loop = asyncio.get_running_loop()
    closing: list[asyncio.Task[None]] = []

    def close() -> None:
        if not closing:
            closing.append(asyncio.create_task(scheduler.close(reason="the job of the scheduler is ended")))

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, close)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m kettle.dask.scheduler", description=__doc__)
    parser.add_argument(
        "--shared", type=Path, metavar="DIRECTORY", help="files that the programs of a session share"
    )
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--dashboard-port", type=int, default=0)
    options = parser.parse_args()
    try:
        membership = SharedDirectory(options.shared)
        placement = placement_of_job()
    except (CredentialsError, NotInJobError) as error:
        print(f"kettle.dask.scheduler: {error}", file=sys.stderr)
        return 1
    asyncio.run(
        run_scheduler(membership, placement, port=options.port, dashboard_port=options.dashboard_port)
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
