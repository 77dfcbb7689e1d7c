"""How a startd comes up, or does not."""

import asyncio

import pytest

from kettle_services.startd.wiring import unless


async def test_who_is_stopped_while_it_starts_does_not_wait() -> None:
    """Given something that never ends, when the event comes, then it is cancelled, and cleans up."""
    stopping, cleaned = asyncio.Event(), False
    asyncio.get_running_loop().call_soon(stopping.set)

    async def start() -> None:
        nonlocal cleaned
        async with unless(stopping):
            try:
                await asyncio.Event().wait()
            finally:
                cleaned = True

    with pytest.raises(TimeoutError):
        await start()
    assert cleaned


async def test_who_has_started_is_not_disturbed() -> None:
    """An event that comes later changes nothing for what was begun."""
    stopping = asyncio.Event()
    async with asyncio.TaskGroup() as tasks:
        async with unless(stopping):
            begun = tasks.create_task(asyncio.sleep(0, "result"))
        stopping.set()
        await asyncio.sleep(0)

    assert "result" == begun.result()
