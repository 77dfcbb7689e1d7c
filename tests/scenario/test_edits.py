"""
Jobs in the queue are given other values: they are matched, ordered and shown by them, whatever dies meanwhile.
"""

import asyncio
import signal
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

import pytest
import pytest_asyncio

from kettle.client import select
from kettle.storage import PgLog
from kettle.testing.pool import ThrowawayPool, throwaway_pool
from kettle.wire.events import JobAssigned, JobEdited, JobsChanged, decode
from kettle.wire.expansion import events_of, expanded
from kettle.wire.frames import Frame

from .persons import somebody

WITHIN_S: Final = 120.0
MANY: Final = 1000
_TOO_LARGE: Final = (
    "executable = /bin/true\ntransfer_executable = false\nrequest_memory = 1000000000\nqueue {count}\n"
)

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def pool(tmp_path_factory: pytest.TempPathFactory, template: Path) -> AsyncIterator[ThrowawayPool]:
    async with throwaway_pool(tmp_path_factory.mktemp("edits"), cpus=1, template=template) as running:
        yield running
    assert [] == running.left


async def frames(pool: ThrowawayPool) -> list[Frame]:
    async with PgLog.connect(pool.client.pool.database_url) as log:
        return [frame async for frame in log.read("schedd.schedd")]


async def test_a_job_that_fits_nowhere_is_edited_and_runs(pool: ThrowawayPool, tmp_path: Path) -> None:
    """
    Its history has the new value, also for a search, and says how often it was edited.
    """
    cluster = (await pool.client.submit(_TOO_LARGE.format(count=1), cwd=tmp_path)).cluster
    status, out, err = await pool.kettle("edit", f"{cluster}.0", "requestmemory=16", 'Why="it fits now"')
    assert (0, f"Job {cluster}.0 changed.", "") == (status, out.strip(), err)
    async with asyncio.timeout(WITHIN_S):
        await pool.client.wait(select(cluster))
        while not (
            found := await pool.client.history(select(constraint='RequestMemory == 16 && Why == "it fits now"'))
        ):
            await asyncio.sleep(0.1)
    assert [(cluster, 16, 1)] == [(ad["ClusterId"], ad["RequestMemory"], ad["NumEdits"]) for ad in found]
