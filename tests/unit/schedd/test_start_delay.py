"""Jobs of one owner that start one after the other."""

import asyncio
import time

from kettle_services.schedd.shadows.start_delay import StartDelay
from kettle_wire.ads import Ad, Expr
from kettle_wire.jobs import JobId

SLOW: Ad = {"NextJobStartDelay": Expr("1 / 10.0")}
A, B, C = JobId(1, 0), JobId(1, 1), JobId(1, 2)


async def test_the_next_one_waits() -> None:
    """It waits as long as the previous one says; then it is started, and the one after it waits again."""
    started: list[tuple[JobId, float]] = []
    done = asyncio.Event()

    def start(job: JobId) -> None:
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
    async with asyncio.timeout(10):
        await done.wait()
    assert [B, C] == [job for job, _ in started]
    assert all(at - began >= 0.1 * number for number, (_, at) in enumerate(started, 1))
    pace.close()


async def test_nobody_waits_for_ever() -> None:
    """The site says how long at most; what is no number is no delay."""
    pace = StartDelay(longest=0.0, start=lambda _: None)
    pace.record_start("ada", {"NextJobStartDelay": 1000})
    assert not pace.must_wait("ada", A)
    pace = StartDelay(longest=600.0, start=lambda _: None)
    pace.record_start("ada", {"NextJobStartDelay": "long"})
    assert not pace.must_wait("ada", A)
