"""Batch and interactive jobs on one pool, with the settings of the page about it."""

import asyncio
import re
import tomllib
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Final

import pytest

from kettle.client import Client, select
from kettle.client.jobs.submission import prepare
from kettle.testing.patience import PATIENCE_S
from kettle.testing.shared_pool import SharedPool
from kettle.testing.throwaway_pool import ThrowawayPool, merged
from kettle_wire.events import JobStarted
from kettle_wire.jobs import JobId

from .persons import somebody
from .waiting import explained, happened

PAGE: Final = Path(__file__).parents[2] / "docs/how-to/keep-room-for-interactive-jobs.md"
CPUS: Final = 8
LIMIT: Final = 4
"""Of the page, and half of these cores: the share of one of two people."""
BATCH: Final = 200
SLEEP: Final = "executable = /bin/sleep\narguments = 3600\ntransfer_executable = false\nrequest_memory = 16\nrequest_disk = 1024\n"


def settings(section: str) -> dict[str, Any]:
    """What a section of the page says, with the limit."""
    text = PAGE.read_text()
    found: dict[str, Any] = {}
    for title in ("The limit", section):
        body = text.partition(f"\n## {title}:")[2].partition("\n## ")[0]
        for block in re.findall(r"```toml\n(.*?)```", body, re.DOTALL):
            found = merged(found, tomllib.loads(block))
    return found


async def submitted(client: Client, text: str, cwd: Path) -> int:
    """Submit for somebody without an account here; the number of the cluster."""
    submission = prepare(text, cwd=cwd)
    made = await client.submit(submission, spool=True)
    await client.spools.send(submission.queued(proc, made.cluster) for proc in range(made.count))
    return made.cluster


async def running(client: Client, owner: str) -> int:
    ads = await client.jobs(select(owners=[owner]), projection=["JobStatus"])
    return sum(ad["JobStatus"] == 2 for ad in ads)


async def until_running(client: Client, owner: str, count: int) -> None:
    """Wait until so many jobs of a person run, and no other number."""
    async with asyncio.timeout(PATIENCE_S):
        while await running(client, owner) != count:
            await asyncio.sleep(0.05)


@pytest.mark.parametrize(("section", "free"), [("A reserve", 2), ("Preemption", 0)])
async def test_an_interactive_job_begins_on_a_full_pool(
    shared_pool: SharedPool, section: str, free: int, tmp_path: Path
) -> None:
    """
    Of 200 batch jobs as many run as the policy lets; the session of another person begins nevertheless, has its share and no more, and
    leaves the batch jobs theirs.
    """
    async with shared_pool.lent(cpus=CPUS, settings=settings(section)) as pool, AsyncExitStack() as stack:
        ada = await stack.enter_async_context(somebody(pool, "ada", tmp_path / "a"))
        bob = await stack.enter_async_context(somebody(pool, "bob", tmp_path / "b"))
        batch = await submitted(ada, f"{SLEEP}queue {BATCH}\n", tmp_path)
        await until_running(pool.client, "ada", CPUS - free)
        await _serves(pool, (ada, bob), section, batch, tmp_path)


async def _serves(
    pool: ThrowawayPool, people: tuple[Client, Client], section: str, batch: int, tmp_path: Path
) -> None:
    """The first job of the session begins at once, and the others as the policy lets them."""
    ada, bob = people
    session = JobId(await submitted(bob, f"{SLEEP}interactive = true\nqueue\n", tmp_path), 0)
    await happened(bob, session, JobStarted)
    workers = await submitted(bob, f"{SLEEP}interactive = true\nqueue {CPUS}\n", tmp_path)
    if section == "A reserve":
        # Nobody is ended for it: the session grows as batch jobs end.
        await until_running(pool.client, "bob", 2)
        assert CPUS - 2 == await running(pool.client, "ada")
        ads = await pool.client.jobs(select(batch), projection=["ProcId", "JobStatus"])
        busy = [f"{batch}.{ad['ProcId']}" for ad in ads if ad["JobStatus"] == 2]
        await ada.remove(select(*busy[:3]))
    await until_running(pool.client, "bob", LIMIT)
    said = await explained(pool, f"{workers}.{CPUS - 1}", "concurrency limit is reached: interactive.bob")
    assert "when others that use it have ended" in said
    if section == "A reserve":
        # A core that is left is no reserve: whether a batch job had it first is as it happens.
        assert await running(pool.client, "ada") in {CPUS - LIMIT - 1, CPUS - LIMIT}
    else:
        await until_running(pool.client, "ada", CPUS - LIMIT)
        ads = await pool.client.jobs(select(batch), projection=["NumJobStarts", "JobStatus"])
        assert 0 < sum((ad["JobStatus"], ad.get("NumJobStarts")) == (1, 1) for ad in ads)  # run again later
