"""A scheduler that is being closed when who waits for it is cancelled, as at the end of a program."""

# distributed has no types:
# pyright: reportUnknownMemberType=false

import asyncio

from distributed.diagnostics.plugin import SchedulerPlugin

from kettle.dask.scheduler.job_scheduler import JobScheduler
from kettle.testing.patience import PATIENCE_S


class Slow(SchedulerPlugin):
    """Has something to do before the scheduler closes."""

    def __init__(self) -> None:
        self.begun, self.over = asyncio.Event(), asyncio.Event()

    async def before_close(self) -> None:
        self.begun.set()
        await self.over.wait()


async def being_closed() -> tuple[JobScheduler, Slow, asyncio.Task[None]]:
    scheduler, slow = (
        JobScheduler(protocol="tcp", host="127.0.0.1", port=0, dashboard_address="127.0.0.1:0"),
        Slow(),
    )
    await scheduler
    scheduler.add_plugin(slow)
    closing = asyncio.create_task(scheduler.close())
    await slow.begun.wait()
    return scheduler, slow, closing


async def test_a_close_goes_on_when_who_waits_for_it_is_cancelled() -> None:
    scheduler, slow, closing = await being_closed()
    closing.cancel()
    await asyncio.wait([closing])
    slow.over.set()
    async with asyncio.timeout(PATIENCE_S):
        await scheduler.close()
        await scheduler.finished()  # type: ignore[no-untyped-call]


async def test_nobody_waits_without_end_when_everything_is_cancelled() -> None:
    """
    Each task once, as the event loop's runner does it at the end; who leaves the scheduler's context closes it then.
    """
    before = asyncio.all_tasks()
    scheduler, slow, _ = await being_closed()

    async def leave() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await scheduler.close()

    leaving = asyncio.create_task(leave())
    await asyncio.sleep(0)
    for task in asyncio.all_tasks() - before:
        task.cancel()
    _, waiting = await asyncio.wait([leaving], timeout=PATIENCE_S)
    slow.over.set()
    assert not waiting
    scheduler.stop()  # what a scheduler whose closing was cancelled has left to the end of the process
    scheduler.http_server.stop()
