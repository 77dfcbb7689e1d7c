"""
Clusters that cannot start: they say why at once, in the pool's own words, and start when the cause is gone, without another request.
"""

import asyncio
import json
import logging
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

import pytest
import pytest_asyncio

from kettle.client import Client, prepare, select
from kettle.retry.deadline import Deadline
from kettle.testing.container_images import busybox_root
from kettle.testing.patience import PATIENCE_S
from kettle.testing.throwaway_pool import ThrowawayPool, merged
from kettle_wire.commands.sessions import NewSession, SessionView
from kettle_wire.events import decode
from kettle_wire.events.interactive import (
    InteractiveMembersSeen,
    InteractiveMembersSubmitted,
    InteractiveStateChanged,
)
from kettle_wire.jobs import JobId
from kettle_wire.sessions import SessionSize

from .evidence import Evidence
from .test_containers import WORKING

pytestmark = [pytest.mark.scenario, pytest.mark.embedded]

LOG: Final = logging.getLogger(__name__)
CPUS: Final = 2
SLEEP: Final = (
    "executable = /bin/sleep\narguments = 3600\ntransfer_executable = false\nrequest_memory = 16\nqueue 2\n"
)
URGENT: Final = SLEEP.replace("queue 2", "+Urgent = true\nqueue 2")
SAYS_WHERE: Final = """
import asyncio
from kettle.client.sessions import OwnSession
from kettle_wire.commands.sessions import AgentReport

async def main():
    own = OwnSession.of_job()
    while True:
        await own.agent(AgentReport(contact="test://here", wait=10.0))

asyncio.run(main())
"""
PROFILES: Final = """
[small]
kind = "dask"
python = {python}
command = ["{{python}}", "-c", {says_where}]
worker_command = ["/bin/sleep", "1000"]
head_memory = 16
memory = 16

[program]
kind = "process"
memory = 16

[accelerated]
kind = "process"
memory = 16
gpus = 1
"""
SLEEPS: Final = ["/bin/sleep", "1000"]


@pytest.fixture(scope="module")
def configuration(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    profiles = tmp_path_factory.mktemp("profiles") / "profiles.toml"
    text = PROFILES.format(python=json.dumps(sys.executable), says_where=json.dumps(SAYS_WHERE))
    profiles.write_text(text)
    startd = {
        "job_account": "own",
        "container_runtimes": WORKING,
        "rank": "TARGET.Urgent =?= true",
        "max_job_retirement_time": 0,
    }
    return {"cpus": CPUS, "settings": {"sessions": {"profiles": str(profiles)}, "startd": startd}}


@pytest_asyncio.fixture
async def client(pool: ThrowawayPool) -> AsyncIterator[Client]:
    yield pool.client
    for each in await pool.client.sessions.list():
        await pool.client.sessions.stop(each.id)
    async with asyncio.timeout(PATIENCE_S):
        while await pool.client.sessions.list():
            await asyncio.sleep(0.05)


async def said(client: Client, session: str, sentence: str) -> SessionView:
    """How it is when it says this of itself."""
    patience = Deadline(PATIENCE_S)
    while sentence not in f"{(shown := await client.sessions.show(session)).reason} {shown.summary}":
        assert not patience.passed, (shown.reason, shown.summary)
        await asyncio.sleep(0.02)
    return shown


async def recorded_with(client: Client, session: str, sentence: str) -> list[object]:
    """
    What is recorded together with this sentence, in one frame: nothing was waited for between the cause and the sentence.
    """
    frames: dict[int, list[object]] = {}
    for each in (await client.sessions.news(session, 0, wait=0.0)).events:
        frames.setdefault(each.at, []).append(decode(bytes(each.data)))
    for at, events in frames.items():
        if any(isinstance(each, InteractiveStateChanged) and sentence in each.reason for each in events):
            LOG.info("%s", f"{sentence!r}: recorded {(at - min(frames)) / 1e6:.3f} s after the request")
            return events
    raise AssertionError(f"{sentence!r} is not recorded: {frames}")


async def test_a_full_pool_is_said_and_waited_for(client: Client, tmp_path: Path) -> None:
    """Jobs of somebody have all slots; when they end the same session is ready with its worker."""
    batch = (await client.submit(prepare(SLEEP, cwd=tmp_path))).cluster
    async with asyncio.timeout(PATIENCE_S):
        while {2} != {ad["JobStatus"] for ad in await client.jobs(select(batch))}:
            await asyncio.sleep(0.02)
    new = NewSession(kind="dask", profile="small", name="full", size=SessionSize(workers=1))
    made = await client.sessions.create(new)
    waits = await said(client, "full", "its scheduler waits as job")
    assert ("queued", 0) == (waits.state, waits.running)
    with_it = await recorded_with(client, made.id, "its scheduler waits as job")
    assert any(isinstance(each, InteractiveMembersSubmitted) for each in with_it)
    await said(client, "full", "the slot that could run it has too few cores left (0, where it asks for 1)")
    verdict = (await client.why(JobId.parse(waits.scheduler.job))).verdict
    assert verdict is not None
    assert verdict.rejection is not None, (
        "the pool's own words are those of the first cycle that has considered it"
    )
    LOG.info("%s", f"refused by a cycle that began {verdict.at - waits.created:.3f} s after the request")
    await client.remove(select(batch))
    async with asyncio.timeout(PATIENCE_S):
        await client.sessions.wait(made.id, "ready")


async def test_a_scheduler_that_was_preempted_says_so_and_runs_again(client: Client, tmp_path: Path) -> None:
    """
    By which rule, that its results are gone, and for what it waits; the same job runs when there is room.
    """
    new = NewSession(kind="dask", profile="small", name="guest", size=SessionSize(workers=0))
    made = await client.sessions.create(new)
    async with asyncio.timeout(PATIENCE_S):
        before = (await client.sessions.wait(made.id, "ready")).scheduler.job
    urgent = (await client.submit(prepare(URGENT, cwd=tmp_path))).cluster
    lost = await said(
        client, "guest", f"and with it what was computed; it waits as job {before} to run again"
    )
    assert "degraded" == lost.state
    assert "its scheduler was lost (" in lost.reason
    assert "RANK of the machine is 1 for another job" in lost.reason
    await said(client, "guest", "the slot that could run it has too few cores left (0, where it asks for 1)")
    await client.remove(select(urgent))
    async with asyncio.timeout(PATIENCE_S):
        assert before == (await client.sessions.wait(made.id, "ready")).scheduler.job


@pytest.mark.skipif(not WORKING, reason="needs bubblewrap or, as root, runc, and busybox")
async def test_an_image_that_there_is_not_is_said_and_waited_for(client: Client, evidence: Evidence) -> None:
    """The head is held, with the sentence of the machine, and runs when the image has come."""
    tree = evidence.directory / "image"
    new = NewSession(kind="process", profile="program", name="bare", command=SLEEPS, image=str(tree))
    made = await client.sessions.create(new)
    held = await said(client, "bare", "is held")
    assert "queued" == held.state
    assert str(tree) in held.reason
    with_it = await recorded_with(client, made.id, str(tree))
    assert any(isinstance(each, InteractiveMembersSeen) for each in with_it)
    busybox_root(evidence.directory / "made").rename(tree)
    async with asyncio.timeout(PATIENCE_S):
        await client.sessions.wait(made.id, "ready")


async def test_what_no_machine_is_or_has_is_said_and_waited_for(client: Client, pool: ThrowawayPool) -> None:
    """
    The requirement that no machine meets is told, a site with what there is; a machine of that site, with a GPU, takes both.
    """
    far = NewSession(kind="process", profile="program", name="far", command=SLEEPS, site="T2_New")
    fast = NewSession(kind="process", profile="accelerated", name="fast", command=SLEEPS)
    for new, clause, value in ((far, "SiteName", "T2_New"), (fast, "TARGET.GPUs >= RequestGPUs", "GPUs = 1")):
        made = await client.sessions.create(new)
        waits = await said(client, made.id, clause)
        assert ("queued", True) == (waits.state, value in f"{waits.reason} {waits.summary}")
        with_it = await recorded_with(client, made.id, "its program waits as job")
        assert any(isinstance(each, InteractiveMembersSubmitted) for each in with_it)
    machine: dict[str, Any] = {"attributes": {"SiteName": "T2_New"}, "machine_resources": {"GPUs": ["GPU-0"]}}
    await pool.reconfigure(merged(pool.settings, {"startd": machine}))
    async with asyncio.timeout(PATIENCE_S):
        for name in ("far", "fast"):
            await client.sessions.wait(name, "ready")
