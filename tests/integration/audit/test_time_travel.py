"""The past of a pool that really lived, beside what it said of itself while it did."""

import asyncio
from pathlib import Path
from typing import cast

import pytest

from kettle.client import select
from kettle.testing.patience import PATIENCE_S
from kettle.testing.throwaway_pool import throwaway_pool
from kettle_services.cli.log.at import fold
from kettle_services.cli.log.databases import Places, places
from kettle_services.cli.log.folds import QueueThen
from kettle_wire.ads.types import Ad

SHARD = "schedd.schedd"
SWEEP = """
executable = /bin/sleep
arguments = 0.$(Process)
transfer_executable = false
request_memory = 16
queue 6
"""
STAYS = """
executable = /bin/sleep
arguments = 600
transfer_executable = false
request_memory = 16
queue 3
"""
"""One more than there are processors: two run and one waits, until they are removed."""
RENEWAL = "LastJobLeaseRenewal"
WITHIN_S = 90.0


def nowhere(name: str, done: int, total: int) -> None:
    """No bar."""


async def frame_of(found: Places) -> int:
    (place,) = found.named([SHARD])
    tenure = await place.log.tenure(SHARD)
    assert tenure is not None
    return tenure.frame


@pytest.mark.scenario
async def test_the_past_is_what_was_seen(tmp_path: Path, template: Path) -> None:
    """
    At every moment at which the queue was looked at, the log says what the queue said, of every attribute.
    """
    seen: dict[int, list[Ad]] = {}
    async with (
        throwaway_pool(tmp_path, cpus=2, template=template) as pool,
        places(pool.home, patience=PATIENCE_S) as found,
        asyncio.timeout(WITHIN_S),
    ):
        over = asyncio.Event()

        async def watch() -> None:
            while not over.is_set():
                before = await frame_of(found)
                ads = await pool.client.jobs()
                if before == await frame_of(found):  # nothing was recorded meanwhile
                    seen[before] = ads

        async def looked_at(*statuses: int) -> None:
            """Until jobs of these statuses were seen at a moment at which nothing was recorded."""
            while not {*statuses} <= {ad["JobStatus"] for ads in seen.values() for ad in ads}:
                assert not watching.done()
                await asyncio.sleep(0.01)

        watching = asyncio.create_task(watch())
        first = await pool.client.submit(SWEEP)
        held = await pool.client.submit(SWEEP)
        await pool.client.hold(select(held.cluster), reason="by hand")
        await looked_at(5)
        await pool.client.wait(select(first.cluster))
        await pool.client.release(select(held.cluster))
        await pool.client.remove(select(f"{held.cluster}.5"))
        await pool.client.wait(select(held.cluster))
        staying = await pool.client.submit(STAYS)
        await looked_at(1, 2)
        await pool.client.remove(select(staying.cluster))
        await pool.client.wait(select(staying.cluster))
        over.set()
        await watching
        (place,) = found.named([SHARD])
        for frame, ads in seen.items():
            then = await fold(place, frame, nowhere)
            assert isinstance(then, QueueThen)
            queue = then.queue
            folded = [queue.ad(job) for job in sorted(queue.jobs)]
            # That a worker is still heard is known to the living alone: theirs is the recorded time, or a later one.
            for ad, past in zip(ads, folded, strict=True):
                assert cast("int", ad.pop(RENEWAL, 0)) >= cast("int", past.pop(RENEWAL, 0))
            assert ads == folded
        audit = await pool.log_check()
        assert audit.clean, audit.said
