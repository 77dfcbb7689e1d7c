"""The pages of task queues, in a real browser."""

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from tests.scenario.evidence import Evidence

from kettle.client import Client, select
from kettle.task_queues.worker_jobs import WorkerJobs, description
from kettle.testing.patience import PATIENCE_S
from kettle.testing.throwaway_pool import ThrowawayPool
from kettle_wire.task_queues import TaskPlan

from .browser import Looks

pytestmark = [pytest.mark.scenario, pytest.mark.embedded, pytest.mark.asyncio(loop_scope="session")]

EVIL = "<img src=x onerror=alert(1)>"


@pytest_asyncio.fixture(loop_scope="session")
async def client(pool: ThrowawayPool) -> AsyncIterator[Client]:
    """The pool's, whose task queues are over afterwards."""
    yield pool.client
    for each in await pool.client.tasks.list():
        await pool.client.tasks.cancel(each.id, "the test is over")


async def test_queues_say_how_far_they_are_and_why_and_are_cancelled(
    look: Looks, client: Client, evidence: Evidence
) -> None:
    """
    The list and the page of a queue follow what happens: that nobody works for one, its end, one of its tasks with its exit and what it
    printed, and another one that somebody cancels; axe finds nothing, light or dark, wide or narrow.
    """
    go = evidence.directory / "go"
    tasks = [f"until [ -e {go} ]; do sleep 0.05; done; echo '{EVIL}'; exit 3".encode(), b"true", b"true"]
    first = await client.tasks.create(TaskPlan(), tasks, name="fits")
    await client.tasks.create(TaskPlan(), [b"true"], name="idle")
    async with look.at("/task-queues") as seen:
        await seen.page.wait_for_selector("[data-live-state=on]")
        await seen.page.wait_for_selector("tr:has(th a:text-is('fits')) .queue-closed")
        assert [] == await seen.violations()

        await seen.page.click("th a:text-is('fits')")
        await seen.page.wait_for_selector("[data-live-state=on]")
        assert "kettle tasks workers fits 2" in await seen.text(".note")
        jobs = WorkerJobs(memory=16, disk=1)
        workers = (await client.submit(description(first.id, first.name, jobs))).cluster
        await seen.page.wait_for_selector("[aria-label='Table of workers'] th a")
        assert [] == await seen.violations()
        go.touch()
        await seen.page.wait_for_selector(".title .queue-done")
        assert "2 of 3 done" in " ".join((await seen.text(".counts .total")).split())
        async with asyncio.timeout(PATIENCE_S):
            await client.wait(select(workers))

        await seen.page.fill("[name=task]", "1")
        await seen.page.click("text=How is it, and why?")
        await seen.page.wait_for_selector("#task")
        assert EVIL in await seen.text(".card pre")
        assert "exit code 3" in await seen.text(".card")

        await seen.go("/task-queues/idle")
        await seen.page.click("text=Cancel it")
        await seen.page.fill("[name=reason]", "not needed")
        await seen.page.click("text=Cancel what is left of it")
        await seen.page.wait_for_selector("[role=status]:has-text('is cancelled')")
        assert "not needed" in await seen.text(".title")
        for path in ("/task-queues?ended=1", "/task-queues/fits?task=1", "/task-queues/idle"):
            await seen.require_readable(path)
        assert 404 == await seen.go("/task-queues/nobody")
        assert [] == seen.elsewhere
