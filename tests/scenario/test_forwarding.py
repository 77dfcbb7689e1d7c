"""Two pools, and the ads of one are seen in the other."""

import asyncio
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import msgspec
import pytest
import pytest_asyncio

from kettle.client import select
from kettle.pool.personal_settings import Tables
from kettle.testing.patience import PATIENCE_S
from kettle.testing.throwaway_pool import ThrowawayPool, throwaway_pool
from kettle_wire.ads import Ad
from kettle_wire.jobs import JobId

HUNG_S = 40.0
"""Far less than a hung pool is waited for if it is waited for at all."""
REACHED = "central: reached"
FORWARDER = "view@physics"
SLEEPER = "executable = /bin/sleep\narguments = 600\nrequest_cpus = 1\nqueue\n"

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.writes_credentials]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def central(tmp_path_factory: pytest.TempPathFactory, template: Path) -> AsyncIterator[ThrowawayPool]:
    """The pool in which the ads are seen; its own machine takes no jobs."""
    settings: Tables = {"master": {"view_from": [FORWARDER]}, "startd": {"start": False}}
    directory = tmp_path_factory.mktemp("central")
    async with throwaway_pool(directory, cpus=2, template=template, settings=settings) as running:
        yield running
    assert [] == running.left


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def physics(
    tmp_path_factory: pytest.TempPathFactory, template: Path, central: ThrowawayPool
) -> AsyncIterator[ThrowawayPool]:
    """The pool that forwards them: what changes at once, all else after an hour."""
    settings: Tables = {
        "collector": {
            "view_pools": ["central"],
            "forward_types": ["Machine", "Scheduler"],
            "forward_interval": 3600.0,
            "forward_watch": ["State", "Cpus", "TotalRunningJobs"],
        }
    }
    directory = tmp_path_factory.mktemp("physics")
    async with throwaway_pool(directory, cpus=2, template=template, settings=settings) as running:
        status, made, err = await central.kettle("flock", "pass", FORWARDER)
        assert 0 == status, err
        file = directory / "central.pass"
        file.write_text(made)
        status, _, err = await running.kettle("flock", "use", str(file), "--as", "central")
        assert 0 == status, err
        yield running
    assert [] == running.left


async def seen(look: Callable[[], Awaitable[list[Ad]]], says: Callable[[Ad], bool]) -> Ad:
    """The first of some ads that says so, as soon as one does."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            for ad in await look():
                if says(ad):
                    return ad
            await asyncio.sleep(0.05)


async def gone(look: Callable[[], Awaitable[list[Ad]]]) -> None:
    """Until there are none."""
    async with asyncio.timeout(PATIENCE_S):
        while await look():
            await asyncio.sleep(0.05)


def theirs(central: ThrowawayPool, kind: str, constraint: str = "true") -> Callable[[], Awaitable[list[Ad]]]:
    """Asks for what is forwarded, of one type."""
    text = f'ForwardedFrom == "physics" && ({constraint})'
    return lambda: central.client.ads(kind, constraint=text, forwarded=True)


async def test_ads_are_seen_in_the_other_pool_and_change_and_vanish(
    physics: ThrowawayPool, central: ThrowawayPool, tmp_path: Path
) -> None:
    """
    As those of the pool that they come from, beside its own; nobody who does not ask for them sees them.
    """
    await seen(lambda: physics.client.ads("Collector"), lambda ad: REACHED == ad.get("ForwardStates"))
    slot = await seen(theirs(central, "Machine"), lambda _: True)
    assert "physics" == slot["ForwardedFrom"]
    assert [] == [ad for ad in await central.client.ads() if "ForwardedFrom" in ad]
    _, shown, _ = await central.kettle("status", "--slots")
    rows = [line.split() for line in shown.splitlines() if str(slot["Name"]) in line]
    assert {"-", "physics"} == {row[1] for row in rows}, shown
    _, shown, _ = await central.kettle("status", "--pool", "physics", "--json")
    of = {ad["ForwardedFrom"] for ad in msgspec.json.decode(shown)["ads"]}
    assert {"physics"} == of

    submitted = await physics.client.submit(SLEEPER, cwd=tmp_path)
    dynamic = 'SlotType == "Dynamic"'
    claimed = await seen(theirs(central, "Machine", dynamic), lambda ad: ad["State"] == "Claimed")
    assert claimed["Name"] in {ad["Name"] for ad in await physics.client.ads("Machine")}
    await seen(theirs(central, "Scheduler"), lambda ad: ad["TotalRunningJobs"] == 1)
    await physics.client.remove(select(submitted.cluster))
    await gone(theirs(central, "Machine", dynamic))
    await seen(theirs(central, "Scheduler"), lambda ad: ad["TotalRunningJobs"] == 0)
    assert [] == await central.client.ads("Submitter", forwarded=True), "only the types that are wanted"


async def test_forwarded_machines_run_nothing(
    physics: ThrowawayPool, central: ThrowawayPool, tmp_path: Path
) -> None:
    """
    A job of the pool that sees them waits, however idle they are, and they are not counted among its machines.
    """
    await seen(theirs(central, "Machine"), lambda ad: ad["State"] == "Unclaimed")
    submitted = await central.client.submit(SLEEPER, cwd=tmp_path)
    async with asyncio.timeout(PATIENCE_S):
        while (verdict := (await central.client.why(JobId(submitted.cluster, 0))).verdict) is None or (
            verdict.cycle is None
        ):
            await asyncio.sleep(0.1)
    assert verdict.analysis is not None
    assert (1, 0) == (verdict.analysis.slots, verdict.analysis.able)
    (ad,) = await central.client.jobs(select(submitted.cluster))
    assert 1 == ad["JobStatus"]
    assert [] == await physics.client.ads("Machine", constraint='State == "Claimed"')
    collector = await seen(lambda: central.client.ads("Collector"), lambda ad: ad["MachinesTotal"] != 0)
    assert 1 == collector["MachinesTotal"]
    await central.client.remove(select(submitted.cluster))


async def test_a_pool_that_hangs_slows_nothing_and_is_told_all_when_it_goes_on(
    physics: ThrowawayPool, central: ThrowawayPool, tmp_path: Path
) -> None:
    """
    Its bus is suspended: at home jobs start, run and end, and afterwards the other pool sees what has changed. Then it is
    killed and forgets all ads: they are sent again long before their interval is over.
    """
    await seen(theirs(central, "Machine"), lambda _: True)
    central.kill("nats", signal.SIGSTOP)
    try:
        for _ in range(2):
            submitted = await physics.client.submit("executable = /bin/true\nqueue 4\n", cwd=tmp_path)
            async with asyncio.timeout(HUNG_S):
                await physics.client.wait(select(submitted.cluster))
        submitted = await physics.client.submit(SLEEPER, cwd=tmp_path)
        async with asyncio.timeout(HUNG_S):
            await seen(lambda: physics.client.ads("Scheduler"), lambda ad: ad["TotalRunningJobs"] == 1)
    finally:
        central.kill("nats", signal.SIGCONT)
    await seen(theirs(central, "Machine"), lambda ad: ad["State"] == "Claimed")
    await central.restarted("nats", after=central.kill("nats"))
    await central.restarted("collector", after=central.kill("collector"))  # nor does that remember any ads
    await seen(theirs(central, "Machine"), lambda ad: ad["State"] == "Claimed")
    await seen(theirs(central, "Scheduler"), lambda ad: ad["TotalRunningJobs"] == 1)
    await physics.client.remove(select(submitted.cluster))
    await gone(theirs(central, "Machine", 'SlotType == "Dynamic"'))


async def test_a_collector_that_starts_anew_goes_on(physics: ThrowawayPool, central: ThrowawayPool) -> None:
    """Its ads stay seen meanwhile."""
    before = await seen(theirs(central, "Scheduler"), lambda _: True)
    await physics.restarted("collector", after=physics.kill("collector"))
    await seen(lambda: physics.client.ads("Collector"), lambda ad: REACHED == ad.get("ForwardStates"))
    again = await seen(theirs(central, "Scheduler"), lambda _: True)
    assert before["Name"] == again["Name"]


async def test_a_pass_that_is_withdrawn(
    physics: ThrowawayPool, central: ThrowawayPool, tmp_path: Path
) -> None:
    """
    The collector's ad says so in a sentence, at home all goes on, and when it is honoured again, it is used again.
    """
    file = central.home / "kettle.toml"
    admitting = file.read_text()
    file.write_text(admitting.replace(f'view_from = ["{FORWARDER}"]', "view_from = []"))
    status, _, err = await central.kettle("reconfig")
    assert 0 == status, err
    refused = "does not accept our credentials"
    await seen(lambda: physics.client.ads("Collector"), lambda ad: refused in str(ad.get("ForwardStates")))
    submitted = await physics.client.submit("executable = /bin/true\nqueue\n", cwd=tmp_path)
    async with asyncio.timeout(PATIENCE_S):
        await physics.client.wait(select(submitted.cluster))
    file.write_text(admitting)
    status, _, err = await central.kettle("reconfig")
    assert 0 == status, err
    await seen(lambda: physics.client.ads("Collector"), lambda ad: REACHED == ad.get("ForwardStates"))
    submitted = await physics.client.submit(SLEEPER, cwd=tmp_path)
    await seen(theirs(central, "Scheduler"), lambda ad: ad["TotalRunningJobs"] == 1)
    await physics.client.remove(select(submitted.cluster))


async def test_the_records_of_both_are_sound(physics: ThrowawayPool, central: ThrowawayPool) -> None:
    """After all of this the audits find nothing."""
    for pool in (physics, central):
        audit = await pool.log_check()
        assert audit.clean, audit.said
