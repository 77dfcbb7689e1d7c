"""Calling until it succeeds, by a clock of the test's own."""

import asyncio
from collections.abc import Callable

import pytest

from kettle.retry.backoff import Backoff
from kettle.retry.deadline import Deadline
from kettle.retry.loop import retry

DOUBLING = Backoff(first=1.0, longest=4.0, spread=0.0)


class _PassingError(Exception):
    """May be gone at the next try; `after` is when that is worth while, seconds."""

    def __init__(self, after: float = 0.0) -> None:
        super().__init__(after)
        self.after = after


class _Clock:
    """Time passes only while somebody waits."""

    def __init__(self) -> None:
        self.now = 0.0
        self.waits: list[float] = []
        self.meanwhile: Callable[[], None] = lambda: None
        """Happens at the beginning of each wait."""

    def deadline(self, seconds: float) -> Deadline:
        """By this clock."""
        return Deadline(seconds, now=lambda: self.now)

    async def sleep(self, seconds: float, wake: asyncio.Event | None = None) -> bool:
        """Does not last."""
        self.waits.append(seconds)
        self.meanwhile()
        if wake is not None and wake.is_set():
            return False
        self.now += seconds
        return True


class _Service:
    """Fails with these errors, one after another, and then answers."""

    def __init__(self, *errors: Exception) -> None:
        self._errors = list(errors)
        self.asked = 0

    async def answer(self) -> str:
        """The answer, at last."""
        self.asked += 1
        if self._errors:
            raise self._errors.pop(0)
        return "yes"


def _passes(error: Exception) -> bool:
    return isinstance(error, _PassingError)


def _after(error: Exception) -> float:
    return error.after if isinstance(error, _PassingError) else 0.0


async def test_the_first_answer_counts() -> None:
    """After waits that grow from failure to failure."""
    clock, service = _Clock(), _Service(*(_PassingError() for _ in range(4)))
    assert "yes" == await retry(service.answer, DOUBLING, retryable=_passes, sleep=clock.sleep)
    assert [1.0, 2.0, 4.0, 4.0] == clock.waits


async def test_what_no_repeat_changes_is_raised_at_once() -> None:
    """As it is."""
    clock, service = _Clock(), _Service(_PassingError(), ValueError("no"))
    with pytest.raises(ValueError, match="no"):
        await retry(service.answer, DOUBLING, retryable=_passes, sleep=clock.sleep)
    assert [1.0] == clock.waits


async def test_nobody_waits_for_a_time_beyond_the_deadline() -> None:
    """The last failure is raised instead, and nobody is told of another try."""
    clock, service = _Clock(), _Service(*(_PassingError() for _ in range(9)))
    told: list[float] = []
    with pytest.raises(_PassingError):
        await retry(
            service.answer, DOUBLING, retryable=_passes, sleep=clock.sleep, deadline=clock.deadline(6.0),
            failed=lambda _, pause: told.append(pause),
        )  # fmt: skip
    assert ([1.0, 2.0], [1.0, 2.0], 3) == (clock.waits, told, service.asked)


async def test_who_is_woken_asks_at_once_and_is_no_more_patient_for_it() -> None:
    """The wait after the one that was cut short is as long as that one."""
    clock, service, wake = _Clock(), _Service(*(_PassingError() for _ in range(3))), asyncio.Event()

    async def ask() -> str:
        wake.clear()
        return await service.answer()

    def once() -> None:
        clock.meanwhile = lambda: None
        wake.set()

    clock.meanwhile = once
    assert "yes" == await retry(ask, DOUBLING, retryable=_passes, wake=wake, sleep=clock.sleep)
    assert ([1.0, 1.0, 2.0], 3.0) == (clock.waits, clock.now)


@pytest.mark.parametrize(("entropy", "wait"), [(0.0, 0.1), (0.5, 0.125), (1.0, 0.15)])
async def test_who_is_told_when_to_come_back_comes_no_sooner(entropy: float, wait: float) -> None:
    """And later by chance, because a crowd was told the same; the row of waits goes on meanwhile."""
    clock, service = _Clock(), _Service(_PassingError(0.1), _PassingError())
    await retry(
        service.answer, DOUBLING, retryable=_passes, hint=_after, sleep=clock.sleep, draw=lambda: entropy
    )
    assert [wait, 2.0] == pytest.approx(clock.waits)


async def test_a_crowd_does_not_come_back_together() -> None:
    """Pauses differ, and none is shorter than what was said."""
    clock = _Clock()
    for _ in range(100):
        await retry(
            _Service(_PassingError(0.1)).answer, DOUBLING, retryable=_passes, hint=_after, sleep=clock.sleep
        )
    assert len(set(clock.waits)) > 50
    assert min(clock.waits) >= 0.1
    assert max(clock.waits) <= 0.15


async def test_a_wait_ends_when_it_is_woken() -> None:
    """By the real clock: nobody could wait for so long."""
    wake, service = asyncio.Event(), _Service(_PassingError())
    asyncio.get_running_loop().call_soon(wake.set)
    assert "yes" == await retry(
        service.answer, Backoff(first=3600.0, longest=3600.0), retryable=_passes, wake=wake
    )


async def test_who_is_cancelled_does_not_try_again() -> None:
    """A cancellation is no failure of the call."""

    async def for_ever() -> None:
        await asyncio.Event().wait()

    task = asyncio.ensure_future(retry(for_ever, retryable=lambda _: True))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
