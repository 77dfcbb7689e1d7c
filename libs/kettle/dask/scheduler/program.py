"""
A scheduler in a job, from its start to its end.

It listens at free ports, publishes them as the services `dask` and `dashboard`, and tells its session where it is.
"""

from typing import Final

from kettle.dask.comm import listen_as
from kettle.dask.membership import Membership
from kettle.dask.placement import Placement
from kettle.dask.programs import call_at_signals
from kettle.dask.scheduler.agent import SessionAgent
from kettle.dask.scheduler.job_scheduler import JobScheduler
from kettle.dask.security import security_of
from kettle.dask.versions import own_versions

DASK: Final = "dask"
DASHBOARD: Final = "dashboard"
"""The names of its services."""


async def run_scheduler(
    membership: Membership, placement: Placement, *, port: int = 0, dashboard_port: int = 0
) -> None:
    """Until it is told to end, by its session or by a signal."""
    listen_as(placement, DASK)
    async with JobScheduler(
        protocol="kettle",
        host=placement.binds,
        port=port,
        security=security_of(membership.credentials, membership.open_stream),
        dashboard_address=f"127.0.0.1:{dashboard_port}",
    ) as scheduler:
        # Clients and workers are told, not left with a silent peer.
        call_at_signals(lambda: scheduler.close(reason="the job of the scheduler is ended"))
        await membership.publish(DASK, scheduler.port, "tcp")
        if (dashboard := getattr(scheduler, "http_server", None)) is not None:
            await membership.publish(DASHBOARD, dashboard.port, "http")
        await membership.announce(scheduler.address)
        if membership.superior is not None:
            await SessionAgent(membership.superior, own_versions()).serve(scheduler)
        await scheduler.finished()
