"""
A pool on a NATS server with the limit that NATS has by itself, 1 MB: what is larger than a message arrives all the same.
"""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from kettle.client import select
from kettle.embedded import EmbeddedNats, Limits
from kettle.testing.patience import PATIENCE_S
from kettle.testing.servers.embedded import EVERYTHING, server_directory
from kettle.testing.servers.selection import servers_are_ours
from kettle.testing.throwaway_pool import throwaway_pool
from kettle.userlog import Submitted, Terminated, parse

from .evidence import Evidence
from .job_log import written

pytestmark = pytest.mark.scenario
JOBS = 30
TEXT = 100_000
"""Characters of the environment of each job: 3 MB together."""


@pytest_asyncio.fixture
async def nats() -> AsyncIterator[EmbeddedNats]:
    with server_directory() as directory:
        async with EmbeddedNats(
            directory / "nats",
            credentials=directory / "keys",
            permissions=EVERYTHING,
            limits=Limits(max_payload="1MB"),
        ) as server:
            yield server


@pytest.mark.skipif(not servers_are_ours(), reason="it brings a server of its own with a limit of its own")
async def test_a_submission_of_three_megabytes(
    tmp_path: Path, template: Path, evidence: Evidence, nats: EmbeddedNats
) -> None:
    """
    Submission, queue and history, larger than a message each; the job event log and the audit have everything.
    """
    bus = {"nats_url": nats.url, "nats_credentials": str(nats.credentials("test"))}
    log = evidence.work / "jobs.log"
    description = (
        f'executable = /bin/true\nlog = {log}\nenvironment = "TEXT=$(Process){"x" * TEXT}"\nqueue {JOBS}\n'
    )
    async with throwaway_pool(tmp_path, cpus=4, template=template, settings={"kettle": bus}) as pool:
        async with asyncio.timeout(PATIENCE_S):
            submitted = await pool.client.submit(description, cwd=evidence.work)
            assert JOBS == submitted.count
            progress = await pool.client.wait(select(submitted.cluster))
            assert JOBS == progress.counts["completed"]
            history = await pool.client.history(select(submitted.cluster))
            while len(history) < JOBS:
                await asyncio.sleep(0.1)
                history = await pool.client.history(select(submitted.cluster))
            assert all(len(str(ad["Environment"])) > TEXT for ad in history)
        events = parse(await written(log, "\n...\n", times=3 * JOBS))
        assert JOBS == sum(isinstance(event, Submitted) for event in events)
        assert JOBS == sum(isinstance(event, Terminated) for event in events)
        audit = await pool.log_check()
        assert audit.clean, audit.said
    assert [] == pool.left
