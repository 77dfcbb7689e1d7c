"""Jobs of one owner that start one after the other."""

import asyncio
import time
from types import SimpleNamespace

import pytest

from kettle.testing.patience import PATIENCE_S
from kettle_services.schedd.shadows import start_delay
from kettle_services.schedd.shadows.start_delay import StartDelay
from kettle_wire.ads import Ad, Expr
from kettle_wire.jobs import JobId

DELAY_S = 1 / 32  # a number whose multiples are exact
SLOW: Ad = {"NextJobStartDelay": Expr("1 / 32.0")}
A, B, C = JobId(1, 0), JobId(1, 1), JobId(1, 2)


class Clock:
    """
    It goes on only when a test sets it, so that no time passes between two statements; timers are the loop's.
    """

    def __init__(self) -> None:
        self.now = 0.0

    def read(self) -> float:
        return self.now


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(start_delay, "time", SimpleNamespace(time=time.time, monotonic=clock.read))
    return clock


class Queue:
    """Jobs that are started as the schedd does it: who is asked about comes back when it has to wait."""

    def __init__(self, clock: Clock, ad: Ad = SLOW, *, over: frozenset[JobId] = frozenset()) -> None:
        self.clock = clock
        self.ad = ad
        self.pace = StartDelay(longest=600.0, start=self.start)
        self.over = over
        self.started: list[tuple[JobId, float]] = []
        self.changed = asyncio.Event()

    def start(self, job: JobId, owner: str = "ada") -> None:
        if job not in self.over and not self.pace.must_wait(owner, job):
            self.pace.record_start(owner, self.ad)
            self.started.append((job, self.clock.now))
        self.changed.set()

    async def run(self, more: int) -> None:
        """
        Set the clock on, by as much as one waits, until so many more have started: none starts before it is set on.
        """
        before = len(self.started)
        for done in range(more):
            await asyncio.sleep(2 * DELAY_S)
            assert before + done == len(self.started)
            self.clock.now += DELAY_S
            async with asyncio.timeout(PATIENCE_S):
                while len(self.started) == before + done:
                    self.changed.clear()
                    await self.changed.wait()


async def test_the_next_one_waits(clock: Clock) -> None:
    """It waits as long as the previous one says; then it is started, and the one after it waits again."""
    queue = Queue(clock)
    assert not queue.pace.must_wait("ada", A)
    queue.pace.record_start("ada", SLOW)
    assert [True, True, True] == [queue.pace.must_wait("ada", job) for job in (B, C, B)]
    assert not queue.pace.must_wait("bob", A)
    await queue.run(2)
    assert [(B, DELAY_S), (C, 2 * DELAY_S)] == queue.started
    queue.pace.close()


async def test_nobody_waits_for_ever() -> None:
    """The site says how long at most; what is no number is no delay."""
    pace = StartDelay(longest=0.0, start=lambda _: None)
    pace.record_start("ada", {"NextJobStartDelay": 1000})
    assert not pace.must_wait("ada", A)
    pace = StartDelay(longest=600.0, start=lambda _: None)
    pace.record_start("ada", {"NextJobStartDelay": "long"})
    assert not pace.must_wait("ada", A)


async def test_all_that_wait_start_one_after_the_other(clock: Clock) -> None:
    """In the order in which they came, however many wait when the time has come."""
    queue = Queue(clock)
    jobs = [JobId(2, proc) for proc in range(4)]
    for job in jobs:
        queue.start(job)
    await queue.run(3)
    assert [(job, number * DELAY_S) for number, job in enumerate(jobs)] == queue.started
    queue.pace.close()


async def test_a_job_that_is_over_meanwhile_delays_nobody(clock: Clock) -> None:
    """Its turn is the next one's."""
    queue = Queue(clock, over=frozenset({B}))
    queue.start(A)
    queue.start(B)
    queue.start(C)
    await queue.run(1)
    assert [(A, 0.0), (C, DELAY_S)] == queue.started


async def test_owners_do_not_wait_for_each_other(clock: Clock) -> None:
    """Each has a line of his own."""
    queue = Queue(clock, {"NextJobStartDelay": 500})
    queue.start(A)
    queue.start(B)
    queue.start(C, "bob")
    assert [A, C] == [job for job, _ in queue.started]
    assert queue.pace.must_wait("ada", B)
    assert queue.pace.must_wait("bob", JobId(3, 0))
    assert not queue.pace.must_wait("eve", JobId(3, 0))
    queue.pace.close()
    assert not queue.pace.must_wait("ada", B)
    assert not queue.pace.must_wait("bob", JobId(3, 0))


async def test_at_the_end_nobody_is_started_any_more(clock: Clock) -> None:
    """Not even who has waited long enough."""
    queue = Queue(clock)
    queue.start(A)
    queue.start(B)
    queue.pace.close()
    clock.now += DELAY_S
    await asyncio.sleep(3 * DELAY_S)  # later than B would have been started
    assert [(A, 0.0)] == queue.started
