"""Parts of pages that are sent again."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Self, cast

import pytest
from aiohttp import ClientSession, web
from aiohttp.test_utils import TestClient, TestServer, make_mocked_request

from kettle.testing.patience import PATIENCE_S
from kettle_services.gateway.pages.live import LiveParts, SharedSubject, part_event
from kettle_services.gateway.pages.live_subject import LiveSubject
from kettle_services.gateway.pages.pacing import Costs, Pace
from kettle_services.gateway.pages.table_watch import TableWatch
from kettle_services.gateway.pages.watched_part import MadePart
from kettle_services.gateway.rest.admission import Admission
from kettle_services.gateway.rest.application import Asked
from kettle_services.gateway.rest.job_tables import JobTables, frames_tag
from kettle_services.gateway.rest.persons import Person
from kettle_services.gateway.rest.refusals import RequestRefused
from kettle_services.gateway.rest.streams import Streams


class Tables:
    """Tables of jobs, as far as somebody asks where they are."""

    def __init__(self, **frames: int) -> None:
        self.now: Mapping[str, int] = frames
        self.looked_at = asyncio.Event()
        self.looks = 0

    @asynccontextmanager
    async def read(self) -> AsyncGenerator[Self]:
        yield self

    async def frames(self) -> Mapping[str, int]:
        self.looked_at.set()
        self.looks += 1
        await asyncio.sleep(0)  # others come meanwhile
        return self.now


async def test_what_a_page_has_already_is_not_sent_again() -> None:
    """
    Who says at which place of the tables he has a part is sent it at the next change, and at once if the tables are not there any more.
    """
    tables = Tables(ap=4)
    watch = TableWatch(cast("JobTables", tables))
    live = LiveParts(watch, Streams(9, 9))
    subject = SharedSubject(LiveSubject(public=True), "jobs")
    made: list[str] = []

    async def make() -> MadePart:
        made.append(frames_tag(tables.now))
        return MadePart(part_event("a list", place=made[-1]))

    async def still() -> None:
        pass

    async def answer(request: web.Request) -> web.StreamResponse:
        person = cast("Person", SimpleNamespace(name="ada", expires=None))
        asked = Asked(person, None, None, request, admission=Admission(still))
        return await live.send(asked, make, lambda: True, subject)

    application = web.Application()
    application.router.add_get("/live", answer)
    async with TestClient(TestServer(application)) as client:

        async def first(place: str) -> bytes:
            async with client.get("/live", headers={"Last-Event-ID": place} if place else {}) as response:
                return await response.content.readuntil(b"\n\n")

        assert b'id: "ap:4"\ndata: a list\n\n' == await first("")
        tables.looked_at.clear()
        later = asyncio.create_task(first('"ap:4"'))
        await tables.looked_at.wait()
        tables.now = {"ap": 5}
        await watch.look(tables.now)
        assert b'id: "ap:5"\ndata: a list\n\n' == await later
        assert b'id: "ap:5"\ndata: a list\n\n' == await first('"ap:4"')
    assert ['"ap:4"', '"ap:5"', '"ap:5"'] == made


async def test_many_who_come_together_ask_the_tables_once() -> None:
    """
    A look that began after all of them tells where the tables are; who comes later is told by another one.
    """
    tables = Tables(ap=4)
    watch = TableWatch(cast("JobTables", tables))
    assert {'"ap:4"'} == set(await asyncio.gather(*(watch.place() for _ in range(500))))
    assert tables.looks < 3
    tables.now = {"ap": 5}
    assert '"ap:5"' == await watch.place()


async def test_one_person_watches_so_many_pages() -> None:
    """One more is refused before its answer begins, and says what to do; somebody else's is not."""
    streams = Streams(2, most_of_one=1)
    live = LiveParts(TableWatch(cast("JobTables", None)), streams)

    async def part() -> MadePart:
        raise AssertionError("nobody is shown it")

    async def still() -> None:
        raise AssertionError("nobody is looked up again so soon")

    def asked(name: str) -> Asked:
        person = cast("Person", SimpleNamespace(name=name, expires=0.0))  # whose credential is over by now
        return Asked(person, None, None, make_mocked_request("GET", "/"), admission=Admission(still))

    with streams.one_more("ada"):
        with pytest.raises(RequestRefused, match="close one") as refused:
            await live.send(asked("ada"), part, lambda: True)
        assert 200 == (await live.send(asked("eve"), part, lambda: True)).status
    assert 429 == refused.value.status
    assert 0 == streams.count


async def test_who_watches_a_page_does_not_keep_the_service_from_its_end() -> None:
    """
    Answers without an end of their own end with the application; aiohttp would wait for each as long as it waits for any.
    """
    tables, streams, application = Tables(ap=4), Streams(9, 9), web.Application()
    streams.end_with(application)
    live = LiveParts(TableWatch(cast("JobTables", tables)), streams)

    async def make() -> MadePart:
        return MadePart(part_event("a list"))

    async def still() -> None:
        pass

    async def answer(request: web.Request) -> web.StreamResponse:
        person = cast("Person", SimpleNamespace(name="ada", expires=None))
        asked = Asked(person, None, None, request, admission=Admission(still))
        return await live.send(asked, make, lambda: True, SharedSubject(LiveSubject(public=True), "jobs"))

    application.router.add_get("/live", answer)
    runner = web.AppRunner(application, shutdown_timeout=100 * PATIENCE_S)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    host, port = runner.addresses[0]
    async with ClientSession() as session, session.get(f"http://{host}:{port}/live") as response:
        assert b"data: a list\n\n" == await response.content.readuntil(b"\n\n")
        async with asyncio.timeout(PATIENCE_S):
            await runner.cleanup()
    assert 0 == streams.count


def test_parts_that_are_made_together_share_what_they_cost() -> None:
    """Two that are made at once have taken half of that time each, and one alone has taken all of it."""
    now = [10.0]
    costs = Costs(lambda: now[0])
    one = costs.begin()
    now[0] += 1.0
    two = costs.begin()
    now[0] += 4.0
    assert 3.0 == costs.end(one)
    now[0] += 2.0
    assert 4.0 == costs.end(two)
    now[0] += 100.0
    three = costs.begin()
    now[0] += 0.5
    assert 0.5 == costs.end(three)


def test_what_is_made_now_and_then_is_not_waited_for() -> None:
    """
    Parts that take more than their share together wait until they have it again; what takes less, and some at once, does not.
    """
    now = [100.0]
    pace = Pace(0.25, 0.5, lambda: now[0])
    waits: list[float] = []
    for _ in range(4):
        waits.append(pace.wait(0.25))
        pace.took(0.25, 0.25)
    assert [0.0, 0.0, 0.0, 1.0] == waits
    now[0] += 60.0
    assert 0.0 == pace.wait(0.01)
    pace.took(0.01, 10.0)
    assert 38.0 == pytest.approx(pace.wait(0.0))
