"""How an entrypoint hears which jobs wait for a route."""

import asyncio

import pytest

from kettle.bus.ports import RefusedError
from kettle.jobs.sealed_attributes import AttributeSeal
from kettle_services.schedd.commands.routing import RoutingCommands
from kettle_wire.commands.routing import ListUnrouted
from kettle_wire.identity import daemon

from .test_policies import JOB, schedd

CE = daemon("ce")


async def test_a_job_is_told_to_who_asked_last() -> None:
    """One who was killed while he waited for an answer, or gave up, takes no news with him."""
    async with schedd() as ap:
        asked = RoutingCommands(ap.recorder, AttributeSeal([bytes(32)]))
        nothing = await asked.list_unrouted(ListUnrouted(news=0, wait=0.0), CE)
        assert [] == nothing.jobs
        request = ListUnrouted(news=nothing.news, wait=60.0)
        dead, alive = (asyncio.create_task(asked.list_unrouted(request, CE)) for _ in range(2))
        with pytest.raises(RefusedError, match="asked again since"):
            await dead
        await ap.submit({"AwaitsRoute": True, "JobUniverse": 5})
        assert [JOB] == [each.job for each in (await alive).jobs]
