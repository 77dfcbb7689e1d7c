"""Jobs of one owner that start one after the other."""

import asyncio
import time

from kettle.testing.patience import PATIENCE_S
from kettle_services.schedd.shadows.start_delay import StartDelay
from kettle_wire.ads import Ad, Expr
from kettle_wire.jobs import JobId

SLOW: Ad = {"NextJobStartDelay": Expr("1 / 2.0")}
A, B, C = JobId(1, 0), JobId(1, 1), JobId(1, 2)


async def test_the_next_one_waits() -> None:
    """It waits as long as the previous one says; then it is started, and the one after it waits again."""
    started: list[tuple[JobId, float]] = []
    done = asyncio.Event()

    def start(job: JobId) -> None:
        assert not pace.must_wait("ada", job)
        started.append((job, time.monotonic()))
        pace.record_start("ada", SLOW)
        if len(started) == 2:
            done.set()

    pace = StartDelay(longest=600.0, start=start)
    assert not pace.must_wait("ada", A)
    began = time.monotonic()
    pace.record_start("ada", SLOW)
    assert [True, True, True] == [pace.must_wait("ada", job) for job in (B, C, B)]
    assert not pace.must_wait("bob", A)
    async with asyncio.timeout(PATIENCE_S):
        await done.wait()
    assert [B, C] == [job for job, _ in started]
    assert all(at - began >= 0.5 * number for number, (_, at) in enumerate(started, 1))
    pace.close()


async def test_nobody_waits_for_ever() -> None:
    """The site says how long at most; what is no number is no delay."""
    pace = StartDelay(longest=0.0, start=lambda _: None)
    pace.record_start("ada", {"NextJobStartDelay": 1000})
    assert not pace.must_wait("ada", A)
    pace = StartDelay(longest=600.0, start=lambda _: None)
    pace.record_start("ada", {"NextJobStartDelay": "long"})
    assert not pace.must_wait("ada", A)


class Queue:
    """Jobs that are started as the schedd does it: who is asked about comes back when it has to wait."""

    def __init__(self, ad: Ad = SLOW, *, over: frozenset[JobId] = frozenset()) -> None:
        self.ad = ad
        self.pace = StartDelay(longest=600.0, start=self.start)
        self.over = over
        self.started: list[tuple[JobId, float]] = []
        self.changed = asyncio.Event()

    def start(self, job: JobId, owner: str = "ada") -> None:
        if job not in self.over and not self.pace.must_wait(owner, job):
            self.pace.record_start(owner, self.ad)
            self.started.append((job, time.monotonic()))
        self.changed.set()

    async def until(self, count: int) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while len(self.started) < count:
                self.changed.clear()
                await self.changed.wait()


async def test_all_that_wait_start_one_after_the_other() -> None:
    """In the order in which they came, however many wait when the time has come."""
    queue = Queue()
    jobs = [JobId(2, proc) for proc in range(4)]
    for job in jobs:
        queue.start(job)
    await queue.until(4)
    assert jobs == [job for job, _ in queue.started]
    first = queue.started[0][1]
    assert all(at - first >= 0.5 * number for number, (_, at) in enumerate(queue.started))
    queue.pace.close()


async def test_a_job_that_is_over_meanwhile_delays_nobody() -> None:
    """Its turn is the next one's."""
    queue = Queue(over=frozenset({B}))
    queue.start(A)
    queue.start(B)
    queue.start(C)
    await queue.until(2)
    assert [A, C] == [job for job, _ in queue.started]
    assert queue.started[1][1] - queue.started[0][1] >= 0.5


async def test_owners_do_not_wait_for_each_other() -> None:
    """Each has a line of his own."""
    queue = Queue({"NextJobStartDelay": 500})
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


async def test_at_the_end_nobody_is_started_any_more() -> None:
    """Not even who has waited long enough."""
    queue = Queue()
    queue.start(A)
    queue.start(B)
    running = asyncio.get_running_loop()
    due = asyncio.Event()
    queue.pace.close()
    before = [job for job, _ in queue.started]
    running.call_later(0.6, due.set)  # later than B would have been started
    await due.wait()
    assert before == [job for job, _ in queue.started]
    assert before[0] == A
