"""
Jobs of one owner that start one after the other.
"""

import asyncio
import time

from kettle_services.schedd.shadows.start_delay import StartPace
from kettle_wire.ads import Ad, Expr
from kettle_wire.jobs import JobId

SLOW: Ad = {"NextJobStartDelay": Expr("1 / 10.0")}
A, B, C = JobId(1, 0), JobId(1, 1), JobId(1, 2)


async def test_the_next_one_waits() -> None:
    """
    As long as the one before says; then it is started, and the one after it waits anew.
    """
    started: list[tuple[JobId, float]] = []
    done = asyncio.Event()

    def start(job: JobId) -> None:
        started.append((job, time.monotonic()))
        pace.started("ada", SLOW)
        if len(started) == 2:
            done.set()

    pace = StartPace(longest=600.0, start=start)
    assert not pace.holds_back("ada", A)
    began = time.monotonic()
    pace.started("ada", SLOW)
    assert [True, True, True] == [pace.holds_back("ada", job) for job in (B, C, B)]
    assert not pace.holds_back("bob", A)
    async with asyncio.timeout(10):
        await done.wait()
    assert [B, C] == [job for job, _ in started]
    assert all(at - began >= 0.1 * number for number, (_, at) in enumerate(started, 1))
    pace.close()


async def test_nobody_waits_for_ever() -> None:
    """
    The site says how long at most; what is no number is no delay.
    """
    pace = StartPace(longest=0.0, start=lambda _: None)
    pace.started("ada", {"NextJobStartDelay": 1000})
    assert not pace.holds_back("ada", A)
    pace = StartPace(longest=600.0, start=lambda _: None)
    pace.started("ada", {"NextJobStartDelay": "long"})
    assert not pace.holds_back("ada", A)
