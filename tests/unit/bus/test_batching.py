"""Waits of readers: an hour stands for a time that does not pass."""

import asyncio

from kettle.bus.batching import Pacing

HOUR = 3600.0


async def is_over(pacing: Pacing) -> bool:
    """Whether the next wait of a reader ends without any time having passed."""
    waiting = asyncio.create_task(pacing.wait())
    for _ in range(10):
        await asyncio.sleep(0)
    over = waiting.done()
    waiting.cancel()
    return over


async def test_what_comes_after_a_pause_is_taken_at_once() -> None:
    """And what comes soon after it waits for its turn."""
    pacing = Pacing(HOUR)
    assert await is_over(pacing)
    assert not await is_over(pacing)


async def test_nothing_waits_while_that_is_not_wanted() -> None:
    """Each wait asks again."""
    wanted = False
    pacing = Pacing(HOUR, wanted=lambda: wanted)
    assert await is_over(pacing)
    assert await is_over(pacing)
    wanted = True
    assert not await is_over(pacing)
