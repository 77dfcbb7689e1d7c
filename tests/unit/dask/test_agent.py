"""What a scheduler's program says to its session, and how often."""

import asyncio
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from kettle.client.errors import PoolUnreachableError
from kettle.dask.reports import Report
from kettle.dask.scheduler import agent as speaking
from kettle.dask.scheduler.agent import WAIT_S, SessionAgent
from kettle.retry.backoff import Backoff
from kettle.testing.patience import PATIENCE_S


class Ordered(msgspec.Struct, frozen=True):
    retire: list[str] = []
    closing: bool = False


class Session:
    """Keeps answers that may wait until there is something to do."""

    def __init__(self) -> None:
        self.reports: list[Report] = []
        self.more = asyncio.Event()
        self.closing = asyncio.Event()
        self.unreachable = 0

    async def report(self, report: Report) -> Ordered:
        self.reports.append(report)
        self.more.set()
        if self.unreachable:
            self.unreachable -= 1
            raise PoolUnreachableError("nobody answers")
        if report.wait:
            await self.closing.wait()
        return Ordered(closing=self.closing.is_set())


class Scheduler:
    """As much of it as is asked."""

    address = "kettle://1.0/dask"

    def __init__(self) -> None:
        self.workers: dict[str, Any] = {}
        self.target = self.looks = 0
        self.closed = ""

    def check_idle(self) -> float:
        self.looks += 1
        return 5.0

    def adaptive_target(self) -> int:
        return self.target

    async def close(self, reason: str) -> None:
        self.closed = reason


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(speaking, "LOOK_S", 0.001)


async def test_an_idle_cluster_is_quiet_and_news_are_told_at_once() -> None:
    """One question is open as long as nothing happens, however often the load is looked at."""
    session, scheduler = Session(), Scheduler()
    any_scheduler: Any = scheduler
    async with asyncio.timeout(PATIENCE_S):
        serving = asyncio.create_task(SessionAgent(session, {}).serve(any_scheduler))
        while scheduler.looks < 20:
            await asyncio.sleep(0)
        assert [WAIT_S] == [each.wait for each in session.reports]
        session.more.clear()
        scheduler.target = 3
        scheduler.workers["w"] = SimpleNamespace(name="2.0", processing={}, metrics={})
        await session.more.wait()
        looks = scheduler.looks
        while scheduler.looks < looks + 20:
            await asyncio.sleep(0)
        assert [(0, 0, WAIT_S), (3, 1, 0.0)] == [
            (each.target, len(each.workers), each.wait) for each in session.reports
        ]
        session.closing.set()
        await serving
    assert "the session is stopped" == scheduler.closed


async def test_a_session_that_is_not_reached_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """And who is cancelled leaves no question open."""
    monkeypatch.setattr(speaking, "_AFTER_FAILURE", Backoff(first=0.001, longest=0.001))
    session, any_scheduler = Session(), Scheduler()
    session.unreachable = 2
    before = asyncio.all_tasks()
    scheduler: Any = any_scheduler
    serving = asyncio.create_task(SessionAgent(session, {}).serve(scheduler))
    async with asyncio.timeout(PATIENCE_S):
        while len(session.reports) < 3:
            await asyncio.sleep(0.001)
    serving.cancel()
    await asyncio.wait([serving])
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert before == asyncio.all_tasks()
