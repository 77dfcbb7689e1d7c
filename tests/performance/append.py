"""
How many events a shard's owner commits per second: durable, numbered, answered after the commit.

    python -m tests.performance.append DSN
"""

import asyncio
import json
import sys
import time
import uuid
from collections.abc import Sequence

from kettle.eventsourcing.shard import Shard
from kettle.storage import PgLog
from kettle_wire.events import JobAssigned

CALLERS = (1, 16, 128, 1024)
SECONDS = 2.0


async def measure(
    dsn: str, *, callers: Sequence[int] = CALLERS, seconds: float = SECONDS
) -> dict[str, dict[str, float]]:
    """
    By number of callers that each record one event, wait for its commit, and again: events/s, milliseconds of waiting.
    """
    results: dict[str, dict[str, float]] = {}
    async with PgLog.connect(dsn, patience=10.0) as log:
        for number in callers:
            results[str(number)] = await _run(log, number, seconds)
    return results


async def _run(log: PgLog, callers: int, seconds: float) -> dict[str, float]:
    name = f"bench-{uuid.uuid4().hex}"
    waited: list[float] = []
    async with Shard.own(log, name, owner="bench") as shard, asyncio.TaskGroup() as tasks:
        committer = tasks.create_task(shard.run())
        began = time.perf_counter()
        end = began + seconds

        async def call(i: int) -> None:
            stream = f"job/{i}.0"
            event = JobAssigned(
                attempt=1, claim=f"claim-{i:08d}", slot="slot1_1@worker-0001.example.org", startd="worker"
            )
            while (now := time.perf_counter()) < end:
                await shard.record([(stream, event)], now_us=int(now * 1e6))
                waited.append(time.perf_counter() - now)

        await asyncio.gather(*(call(i) for i in range(callers)))
        took = time.perf_counter() - began
        committer.cancel()
    tenure = await log.tenure(name)
    assert tenure is not None
    assert len(waited) == tenure.head, "an event was lost or counted twice"
    waited.sort()
    return {
        "events_per_s": round(tenure.head / took),
        "events_per_commit": round(tenure.head / tenure.frame, 1),
        "p50_ms": round(1e3 * waited[len(waited) // 2], 2),
        "p99_ms": round(1e3 * waited[len(waited) * 99 // 100], 2),
    }


if __name__ == "__main__":
    print(json.dumps(asyncio.run(measure(sys.argv[1])), indent=2))
