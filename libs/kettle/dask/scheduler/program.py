"""
A scheduler in a job, from its start to its end.

It listens at free ports, publishes them as the services `dask` and `dashboard`, and tells its session where it is.
"""

import asyncio
import re
from typing import Any, Final

from tornado.web import RedirectHandler

from kettle.dask.comm import listen_as
from kettle.dask.membership import Membership
from kettle.dask.placement import Placement
from kettle.dask.scheduler.agent import SessionAgent
from kettle.dask.scheduler.job_scheduler import JobScheduler
from kettle.dask.security import security_of
from kettle.dask.versions import own_versions

DASK: Final = "dask"
DASHBOARD: Final = "dashboard"
"""The names of its services."""


def lead_to_status(scheduler: JobScheduler, prefix: str) -> None:
    """
    Have the address of the service lead to the first page of the dashboard: Dask does that at the root of the server alone, whatever prefix
    its pages have.
    """
    application: Any = scheduler.http_application
    to_status = {"url": f"{prefix}/status", "permanent": False}
    application.add_handlers(r".*", [(rf"{re.escape(prefix)}/?", RedirectHandler, to_status)])


async def run_scheduler(
    membership: Membership,
    placement: Placement,
    end: asyncio.Event,
    *,
    port: int = 0,
    dashboard_port: int = 0,
) -> None:
    """Until it is told to end, by its session or by `end`."""
    listen_as(placement, DASK)
    async with JobScheduler(
        protocol="kettle",
        host=placement.binds,
        port=port,
        security=security_of(membership.credentials, membership.open_stream),
        dashboard_address=f"127.0.0.1:{dashboard_port}",
        http_prefix=f"/jobs/{placement.job}/{DASHBOARD}",
    ) as scheduler:
        lead_to_status(scheduler, f"/jobs/{placement.job}/{DASHBOARD}")
        await membership.announce(scheduler.address)
        async with asyncio.TaskGroup() as tasks:
            published = [
                tasks.create_task(membership.publish(DASK, scheduler.port, "tcp")),
                tasks.create_task(membership.publish(DASHBOARD, scheduler.http_server.port, "http-prefix")),
            ]
            ended = tasks.create_task(end.wait())
            serving = [tasks.create_task(scheduler.finished())]
            if membership.superior is not None:
                agent = SessionAgent(membership.superior, own_versions())
                serving.append(tasks.create_task(agent.serve(scheduler)))
            await asyncio.wait((ended, *serving), return_when=asyncio.FIRST_COMPLETED)
            # Clients and workers are told, not left with a silent peer.
            await scheduler.close(reason="the job of the scheduler is ended")
            for each in (ended, *published, *serving):
                each.cancel()
