"""The job's end: connected as long as it is to be."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

import pytest

from kettle.published.errors import StreamRefusedError
from kettle.published.frames import Announcement
from kettle.published.job_side import JobSide, Orders, Said
from kettle.published.services import Service

from .made_up_gateway import PATIENCE_S, MadeUpGateway, made_up_gateway

WEB = Service("web", 80, "http")
NOW = Announcement(services=(WEB,))


class Running:
    """A job's end, and what it has said."""

    def __init__(self) -> None:
        self.said: asyncio.Queue[Said] = asyncio.Queue()
        self.side = JobSide(self.connect, self.said.put_nowait)

    async def connect(self, service: Service, factory: Callable[[], asyncio.BaseProtocol]) -> None:
        raise ConnectionRefusedError(f"nobody at {service.port}")

    async def heard(self) -> Said:
        return await asyncio.wait_for(self.said.get(), PATIENCE_S)


@asynccontextmanager
async def running(
    gateway: MadeUpGateway, announcement: Announcement = NOW
) -> AsyncGenerator[tuple[Running, Orders]]:
    job, orders = Running(), Orders(url=gateway.url, ticket="one", announcement=announcement)
    job.side.order(orders)
    task = asyncio.create_task(job.side.run())
    try:
        yield job, orders
    finally:
        task.cancel()
        await asyncio.wait([task])
        await asyncio.gather(*(tunnel.ended() for tunnel in gateway.taken))


async def test_it_comes_back_when_the_gateway_was_away() -> None:
    """After refusals that pass, and after a tunnel that broke; what it publishes is said each time."""
    async with made_up_gateway() as gateway:
        gateway.answers = [503, 101]
        async with running(gateway) as (job, _):
            assert (await job.heard()).text == "the gateway refuses the tunnel (503): said 503"
            for _ in range(2):
                tunnel = await gateway.tunnel()
                assert tunnel.announcement == NOW
                assert await job.heard() == Said(connected=True, services=(WEB,))
                tunnel.close("the gateway stops")
                assert (await job.heard()).text == "the gateway stops"
            assert b"Authorization: Bearer one\r\n" in gateway.requests[-1]
            assert b"Upgrade: kettle-tunnel\r\n" in gateway.requests[-1]


@pytest.mark.parametrize("status", [401, 403, 404, 410])
async def test_a_final_refusal_is_not_asked_for_again(status: int) -> None:
    """Until there is another ticket."""
    async with made_up_gateway() as gateway:
        gateway.answers = [status, 101]
        async with running(gateway) as (job, orders):
            said = await job.heard()
            assert said.over
            assert f"({status})" in said.text
            job.side.order(orders)
            job.side.order(Orders(url=gateway.url, ticket="two", announcement=NOW))
            await gateway.tunnel()
            assert [request.count(b"Bearer two") for request in gateway.requests] == [0, 1]


async def test_changes_travel_in_the_tunnel() -> None:
    """The next ticket, and what is published now; the tunnel stays."""
    async with made_up_gateway() as gateway, running(gateway) as (job, _):
        tunnel = await gateway.tunnel()
        await job.heard()
        both = Announcement(services=(WEB, Service("raw", 81, "tcp")), suspended=True)
        job.side.order(Orders(url=gateway.url, ticket="two", announcement=both))
        assert (await job.heard()).services == both.services
        assert gateway.tickets == ["two"]
        assert tunnel.announcement == both
        assert len(gateway.requests) == 1


async def test_streams_are_refused_with_reasons() -> None:
    """A service that is not published, a suspended job, a port that does not answer."""
    async with made_up_gateway() as gateway, running(gateway) as (job, _):
        tunnel = await gateway.tunnel()
        await job.heard()
        for service, code in (("raw", "no_such_service"), ("web", "unreachable")):
            with pytest.raises(StreamRefusedError) as refused:
                await tunnel.open_connection(service)
            assert refused.value.code == code
        job.side.order(
            Orders(url=gateway.url, ticket="one", announcement=Announcement(services=(WEB,), suspended=True))
        )
        await job.heard()
        with pytest.raises(StreamRefusedError, match="the job is suspended"):
            await tunnel.open_connection("web")
