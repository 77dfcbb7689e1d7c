"""
A scheduler in the program that has begun its session, and no job: workers of its network come to it, and it ends with the program.
"""

# distributed has no types:
# pyright: reportUnknownMemberType=false

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final

from distributed.comm.registry import backends

from kettle.dask.addresses import NO_JOB, SCHEME
from kettle.dask.comm import listen_as
from kettle.dask.placement import Placement, machine_network, of_site, own_address
from kettle.dask.reports import Orders, Report
from kettle.dask.scheduler.agent import SessionAgent
from kettle.dask.scheduler.job_scheduler import JobScheduler
from kettle.dask.scheduler.program import DASK
from kettle.dask.security import security_of
from kettle.dask.session_service import SessionService
from kettle.dask.versions import own_versions


class OwnerSuperior:
    """A session, for the agent of a scheduler that is a program of its owner's."""

    def __init__(self, service: SessionService, session: str) -> None:
        self._service: Final = service
        self._session: Final = session

    async def report(self, report: Report) -> Orders:
        """See `kettle.dask.reports.Superior`."""
        return await self._service.report_scheduler(self._session, report)


def placement_of_scheduler(site: str) -> Placement:
    """Where it is: in the network of this machine, or of a site, whose machines reach this one."""
    here = machine_network()
    if not site:
        return Placement(job=NO_JOB, networks=frozenset({here}), network=here)
    network = of_site(site)
    return Placement(job=NO_JOB, networks=frozenset({here, network}), host=own_address(), network=network)


@asynccontextmanager
async def local_scheduler(
    service: SessionService, session: str, *, site: str = ""
) -> AsyncGenerator[JobScheduler]:
    """
    One that reports to a session, which sends it workers, as long as the context lasts; `site`: the network in which they reach it.
    """
    credentials = await service.credentials(session)
    placement, before = placement_of_scheduler(site), backends[SCHEME]
    listen_as(placement, DASK)
    try:
        async with JobScheduler(
            protocol=SCHEME,
            host=placement.binds,
            port=0,
            security=security_of(credentials, service.open_stream),
            dashboard_address="127.0.0.1:0",
        ) as scheduler:
            agent = SessionAgent(OwnerSuperior(service, session), own_versions())
            serving = asyncio.create_task(agent.serve(scheduler), name=f"agent of {session}")
            try:
                yield scheduler
            finally:
                serving.cancel()
                await asyncio.wait((serving,))
                if not serving.cancelled():
                    serving.result()
    finally:
        backends[SCHEME] = before
