"""Waiting before another try, in loops of their own."""

import asyncio
from contextlib import suppress

import pytest

from kettle.bus.ports import BusError
from kettle.retry.backoff import Backoff
from kettle.retry.loop import Waits, attempt


def test_waits_double_up_to_the_longest() -> None:
    """Each is cut by up to half; after an answer the first length comes again."""
    waits = Waits(Backoff(first=1.0, longest=4.0))
    for length in (1.0, 2.0, 4.0, 4.0):
        assert length / 2 <= waits.delay() <= length
    waits.reset()
    assert waits.delay() <= 1.0


async def test_who_is_cancelled_at_the_moment_of_a_failure_does_not_try_again() -> None:
    """Task groups of Python 3.11 and 3.12 hide the one behind the other."""
    begun = asyncio.Event()

    async def fails_when_ended() -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            raise BusError("while it was ended") from None

    async def work() -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(fails_when_ended())

    async def tried() -> None:
        with suppress(BaseExceptionGroup):
            await attempt(work())

    task = asyncio.create_task(tried())
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_an_attempt_fails_as_its_work_does() -> None:
    """And returns what it returns."""

    async def work(answer: str) -> str:
        if not answer:
            raise BusError("no answer")
        return answer

    assert "yes" == await attempt(work("yes"))
    with pytest.raises(BusError, match="no answer"):
        await attempt(work(""))
