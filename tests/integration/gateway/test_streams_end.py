"""Streams end when who reads them may not ask any more."""

import asyncio
from pathlib import Path
from typing import cast

import aiohttp

from kettle.accounts.lookup import own_name
from kettle.bus.ports import Bus
from kettle.testing.patience import PATIENCE_S
from kettle_services.gateway.rest.connections import PersonConnections
from kettle_services.gateway.rest.event_feed import EventFeed
from kettle_services.gateway.rest.event_hub import EventHub
from kettle_services.gateway.rest.past import PastQuestions
from kettle_services.gateway.rest.streams import Streams
from kettle_wire.rest import streams

from .browsing import PROGRAM, gateway_at, sent

NO_TOTAL = aiohttp.ClientTimeout(PATIENCE_S)


async def read(session: aiohttp.ClientSession, path: str, begun: asyncio.Queue[str]) -> str:
    """All that a stream says before it ends."""
    async with session.get(path, timeout=NO_TOTAL) as response:
        assert (200, "text/event-stream") == (response.status, response.content_type)
        begun.put_nowait(path)
        return await response.text()


def feed() -> EventFeed:
    """Of a pool in which nothing happens."""
    bus, nobody, past = cast("Bus", None), cast("PersonConnections", None), cast("PastQuestions", None)
    return EventFeed(bus, "events", nobody, past, EventHub(bus, "events"), Streams(9, 9))


async def test_who_may_come_no_more_is_told_nothing_more(tmp_path: Path) -> None:
    """
    When a session ends, the streams of that browser end, of REST and pages, with the reason and within seconds, and no others; when
    somebody is banned all do, also those that came by a token.
    """
    handlers = {streams.FOLLOW_CHANGES: feed().follow_changes}
    begun: asyncio.Queue[str] = asyncio.Queue()
    async with (
        gateway_at(tmp_path, handlers=handlers) as gateway,
        gateway.signed_in() as one,
        gateway.signed_in() as two,
        aiohttp.ClientSession(gateway.url, headers=PROGRAM) as program,
        asyncio.TaskGroup() as tasks,
    ):
        read_by_one = [tasks.create_task(read(one, path, begun)) for path in ("/v2/changes", "/live/")]
        read_by_others = [
            tasks.create_task(read(two, "/live/", begun)),
            tasks.create_task(read(two, "/v2/changes", begun)),
            tasks.create_task(read(program, "/v2/changes", begun)),
        ]
        for _ in (*read_by_one, *read_by_others):
            await begun.get()
        _, response = await sent(one, "GET", "/v2/browser-sessions")
        ended = [each["id"] for each in (await response.json())["sessions"] if each["current"]]
        assert 200 == (await sent(program, "POST", "/v2/browser-sessions:end", json={"ids": ended}))[0]
        changes, _ = await asyncio.gather(*read_by_one)
        assert "event: cut" in changes
        assert "the session is over" in changes
        assert [] == [each for each in read_by_others if each.done()]
        path = gateway.rules
        path.write_text(f'[[bans]]\nowner = "{own_name()}"\nreason = "mines coins"\n')
        assert gateway.policy.changed()
        said = await asyncio.gather(*read_by_others)
        assert [False, True, True] == ["mines coins" in each for each in said]
