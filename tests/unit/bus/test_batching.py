"""Waits of readers: an hour stands for a time that does not pass."""

import asyncio

import pytest

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


async def test_several_are_taken_at_once_after_a_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    So often in a row and no more; a turn comes back with each time that passes, and never more than all of them.
    """
    loop = asyncio.get_running_loop()
    now = loop.time()
    monkeypatch.setattr(loop, "time", lambda: now)
    pacing = Pacing(HOUR, at_once=3)
    assert [await is_over(pacing) for _ in range(4)] == [True, True, True, False]
    now += HOUR
    assert [await is_over(pacing) for _ in range(2)] == [True, False]
    now += 100 * HOUR
    assert [await is_over(pacing) for _ in range(4)] == [True, True, True, False]


async def test_what_was_taken_meanwhile_delays_no_longer_than_one_turn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """However often was taken while nothing was to wait."""
    loop = asyncio.get_running_loop()
    now = loop.time()
    monkeypatch.setattr(loop, "time", lambda: now)
    wanted = False
    pacing = Pacing(HOUR, at_once=2, wanted=lambda: wanted)
    assert all([await is_over(pacing) for _ in range(10)])
    wanted = True
    assert not await is_over(pacing)
    now += HOUR
    assert await is_over(pacing)


async def test_nothing_waits_while_that_is_not_wanted() -> None:
    """Each wait asks again."""
    wanted = False
    pacing = Pacing(HOUR, wanted=lambda: wanted)
    assert await is_over(pacing)
    assert await is_over(pacing)
    wanted = True
    assert not await is_over(pacing)
