"""What others see of a person's jobs, and what they do not."""

import asyncio
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from kettle.client import Client, select
from kettle.testing.patience import PATIENCE_S
from kettle.testing.throwaway_pool import ThrowawayPool
from kettle_wire.ads import Ad
from kettle_wire.jobs import JobId

from .persons import somebody


@pytest.fixture(scope="module")
def configuration() -> dict[str, Any]:
    return {"cpus": 1}


async def test_what_a_job_finds_in_its_environment_is_for_its_owner(
    pool: ThrowawayPool, tmp_path: Path
) -> None:
    """
    Programs hand tokens to their jobs so: nobody else is shown it, in the queue, in an explanation and in the history.
    """
    mine = (
        await pool.client.submit(
            'executable = /bin/true\nrequirements = false\nenvironment = "TOKEN=secret"\nqueue\n',
            cwd=tmp_path,
        )
    ).cluster
    async with somebody(pool, "peter", tmp_path) as peter:

        async def seen(client: Client) -> list[list[Ad]]:
            return [
                await client.jobs(select(mine)),
                await client.jobs(select(mine), projection=["Environment", "ClusterId"]),
                [explained.ad] if (explained := (await client.why(JobId(mine, 0))).explanation) else [],
                await client.history(select(mine)),
            ]

        waiting = await seen(pool.client), await seen(peter)
        await pool.client.remove(select(mine))
        async with asyncio.timeout(PATIENCE_S):
            await pool.client.wait(select(mine))
        gone = await seen(pool.client), await seen(peter)
    for own, others, parts in ((*waiting, 3), (*gone, 1)):
        assert parts == sum(map(len, own)) == sum(map(len, others))
        for ad, less in zip(chain(*own), chain(*others), strict=True):
            assert "TOKEN=secret" == ad["Environment"]
            assert {name: value for name, value in ad.items() if name != "Environment"} == less
