"""Work in threads."""

import asyncio
import threading

import pytest

from kettle.testing.patience import PATIENCE_S
from kettle.threads.to_the_end import to_the_end


async def test_the_result_or_the_failure_comes() -> None:
    """As from the work itself."""
    assert 1 == await to_the_end(int, "1")
    with pytest.raises(ValueError, match="invalid literal"):
        await to_the_end(int, "x")


@pytest.mark.parametrize("fails", [False, True])
async def test_who_is_cancelled_ends_when_the_work_has(*, fails: bool) -> None:
    """Also who is cancelled again meanwhile; a failure of the work is not lost."""
    begun, go = threading.Event(), threading.Event()
    over: list[str] = []

    def work() -> None:
        begun.set()
        assert go.wait(PATIENCE_S)
        over.append("work")
        if fails:
            raise ValueError

    task = asyncio.create_task(to_the_end(work))
    assert await asyncio.to_thread(begun.wait, PATIENCE_S)
    for _ in range(2):
        task.cancel()
        await asyncio.wait([task], timeout=0.02)
        assert not task.done()
    go.set()
    with pytest.raises(ValueError if fails else asyncio.CancelledError):
        await task
    assert ["work"] == over


def test_the_end_of_a_loop_waits_as_well() -> None:
    """It cancels all tasks at once, also those that others wait for."""
    begun, go = threading.Event(), threading.Event()
    over: list[str] = []

    def work() -> None:
        begun.set()
        assert go.wait(PATIENCE_S)
        over.append("work")

    async def waiter() -> None:
        try:
            await to_the_end(work)
        finally:
            over.append("waiter")

    async def main() -> asyncio.Task[None]:
        task = asyncio.create_task(waiter())
        assert await asyncio.to_thread(begun.wait, PATIENCE_S)
        asyncio.get_running_loop().call_later(0.05, go.set)
        return task

    assert asyncio.run(main()).cancelled()
    assert ["work", "waiter"] == over
