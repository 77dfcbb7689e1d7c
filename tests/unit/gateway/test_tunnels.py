"""Which of a job's tunnels is used."""

import asyncio
from typing import Any, cast

from kettle.published.ticket import Ticket
from kettle.published.tunnel import Tunnel
from kettle.testing.patience import PATIENCE_S
from kettle_services.gateway.published.tunnels import JobTunnel, Tunnels
from kettle_wire.jobs import JobId

JOB = JobId(7, 0)


class Line:
    """In the place of a connection."""

    def __init__(self) -> None:
        self.over: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    def close(self, why: str) -> None:
        if not self.over.done():
            self.over.set_result(why)

    async def ended(self) -> str:
        return await asyncio.shield(self.over)


def tunnel(attempt: int) -> JobTunnel:
    ticket = Ticket(schedd="s", job=JOB, attempt=attempt, owner="ada", expires=1e12)
    return JobTunnel(ticket, cast("Tunnel", cast("Any", Line())), 0.0)


async def test_a_run_that_was_replaced_does_not_come_back_with_its_first_word() -> None:
    """It had connected before the later one did, and said what it publishes when that had its place."""
    tunnels, old, new = Tunnels(10), tunnel(1), tunnel(2)
    tunnels.require_room(old.ticket)
    late = asyncio.create_task(tunnels.hold(old))
    await asyncio.sleep(0)
    new.announced.set()
    used = asyncio.create_task(tunnels.hold(new))
    while new not in tunnels:
        await asyncio.sleep(0)
    old.announced.set()
    async with asyncio.timeout(PATIENCE_S):
        assert "a later run of job 7.0 has connected" == await late
    assert [new] == tunnels.find(JOB, "s")
    new.tunnel.close("done")
    assert "done" == await used
