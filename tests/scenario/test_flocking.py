"""Two pools with servers of their own, and jobs that find their place in the other one."""

import asyncio
import shutil
import signal
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest
import pytest_asyncio

from kettle.client import select
from kettle.pool.personal_settings import Tables
from kettle.testing.patience import PATIENCE_S
from kettle.testing.throwaway_pool import ThrowawayPool, throwaway_pool
from kettle_wire.ads import Ad

from .job_log import written
from .waiting import explained

HUNG_S = 40.0
"""Far less than a hung pool is waited for if it is waited for at all."""
VISITOR = "schedd@home.example"

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.writes_credentials]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def host(tmp_path_factory: pytest.TempPathFactory, template: Path) -> AsyncIterator[ThrowawayPool]:
    """The pool that is visited."""
    settings: Tables = {"master": {"flock_from": [VISITOR]}}
    directory = tmp_path_factory.mktemp("host")
    async with throwaway_pool(directory, cpus=2, template=template, settings=settings) as running:
        yield running
    assert [] == running.left


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def home(
    tmp_path_factory: pytest.TempPathFactory, template: Path, host: ThrowawayPool
) -> AsyncIterator[ThrowawayPool]:
    """The pool whose schedd visits it: its own machine takes no jobs."""
    settings: Tables = {
        "schedd": {
            "flock_to": ["nowhere", "there"],
            "flock_patience": 0.5,
        },
        "startd": {"start": "TARGET.StaysAtHome =?= true"},
    }
    directory = tmp_path_factory.mktemp("home")
    async with throwaway_pool(directory, cpus=2, template=template, settings=settings) as running:
        await introduced(running, host)
        yield running
    assert [] == running.left


async def introduced(home: ThrowawayPool, host: ThrowawayPool, name: str = "there") -> None:
    """The one's schedd has the other's pass."""
    status, made, err = await host.kettle("flock", "pass", VISITOR)
    assert 0 == status, err
    file = home.home.parent / f"{name}.pass"
    file.write_text(made)
    status, _, err = await home.kettle("flock", "use", str(file), "--as", name)
    assert 0 == status, err


async def ended(pool: ThrowawayPool, cluster: int) -> list[Ad]:
    """The ads of a cluster's jobs when all of them have left the queue."""
    async with asyncio.timeout(PATIENCE_S):
        progress = await pool.client.wait(select(cluster))
        while len(done := await pool.client.history(select(cluster))) < progress.total:
            await asyncio.sleep(0.05)
    return done


async def running(pool: ThrowawayPool, cluster: int) -> Ad:
    """The ad of a cluster's only job as soon as its program runs."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            (ad,) = await pool.client.jobs(select(cluster))
            if "JobCurrentStartExecutingDate" in ad and ad["JobStatus"] == 2:
                return ad
            await asyncio.sleep(0.05)


async def seen(look: Callable[[], Awaitable[list[Ad]]], says: Callable[[Ad], bool]) -> Ad:
    """The first of some ads that says so, as soon as one does."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            for ad in await look():
                if says(ad):
                    return ad
            await asyncio.sleep(0.05)


async def test_a_job_runs_in_the_other_pool_and_its_results_come_home(
    home: ThrowawayPool, tmp_path: Path
) -> None:
    """
    Nobody at home takes it, and for the first of the other pools there is no pass; its input goes to the second, its output
    comes back, and its ad and its log say where it ran.
    """
    (tmp_path / "words").write_text("b\na\n" * 5000)
    (tmp_path / "sorting.sh").write_text(
        "#!/bin/sh\nsort words >sorted\nhead -c 3000000 /dev/zero >large\ncat\n"
    )
    (tmp_path / "sorting.sh").chmod(0o755)
    (tmp_path / "in.txt").write_text("from stdin\n")
    submitted = await home.client.submit(
        "executable = sorting.sh\ntransfer_input_files = words\ninput = in.txt\noutput = out\nlog = log\nqueue\n",
        cwd=tmp_path,
    )
    (ad,) = await ended(home, submitted.cluster)
    assert ("there", None, 0) == (ad["LastRemotePool"], ad.get("RemotePool"), ad["ExitCode"])
    assert "from stdin\n" == (tmp_path / "out").read_text()
    assert "a\n" * 5000 + "b\n" * 5000 == (tmp_path / "sorted").read_text()
    assert 3_000_000 == (tmp_path / "large").stat().st_size
    assert "alias=there/" in await written(tmp_path / "log", "Job terminated.")


async def test_both_pools_say_whose_job_it_is(
    home: ThrowawayPool, host: ThrowawayPool, tmp_path: Path
) -> None:
    """
    At home it counts as flocked and not as running here; where it runs its user stands under a name of its own, is charged
    under it, and its schedd is marked as a visitor. When nothing waits or runs any more, all of that is gone.
    """
    person = home.client.pool.user
    submitted = await home.client.submit("executable = /bin/sleep\narguments = 600\nqueue\n", cwd=tmp_path)
    ad = await running(home, submitted.cluster)
    assert "there" == ad["RemotePool"]

    mine = await seen(lambda: home.client.ads("Submitter"), lambda ad: ad["FlockedJobs"] == 1)
    assert (0, 0, person) == (mine["RunningJobs"], mine["IdleJobs"], mine["Name"])
    schedd = await seen(lambda: home.client.ads("Scheduler"), lambda ad: ad["TotalFlockedJobs"] == 1)
    assert "there: reached" in str(schedd["FlockStates"])
    assert "nowhere: there is no pass" in str(schedd["FlockStates"])

    guest = f"{person}@home.example"
    theirs = await seen(lambda: host.client.ads("Submitter"), lambda ad: ad["RunningJobs"] == 1)
    assert (guest, VISITOR, "there") == (theirs["Name"], theirs["ScheddName"], theirs["SubmitterTag"])
    slot = await seen(lambda: host.client.ads("Machine"), lambda ad: ad["State"] == "Claimed")
    assert (guest, VISITOR) == (slot["RemoteUser"], slot["RemoteScheddName"])
    async with asyncio.timeout(PATIENCE_S):
        while not (await host.client.accountant.priorities([guest])).submitters[0].accumulated:
            await asyncio.sleep(0.1)
    known = [one.name for one in (await host.client.accountant.priorities()).submitters]
    assert person not in known, "nobody of that pool has used anything"

    _, shown, _ = await host.kettle("flock", "show")
    assert f"{guest} of {VISITOR} visits: 1 run here" in shown
    _, shown, _ = await home.kettle("flock", "show")
    assert "jobs there: 1" in shown
    status, _, said = await home.kettle("tail", f"{submitted.cluster}.0")
    assert status
    assert "runs in the pool there" in said

    await home.client.remove(select(submitted.cluster))
    await ended(home, submitted.cluster)
    await seen(
        lambda: home.client.ads("Scheduler"), lambda ad: (ad["TotalFlockedJobs"], ad["FlockLevel"]) == (0, 0)
    )
    async with asyncio.timeout(PATIENCE_S):
        while await host.client.ads("Submitter"):
            await asyncio.sleep(0.05)


async def test_schedd_and_shadow_may_die_while_jobs_run_elsewhere(
    home: ThrowawayPool, tmp_path: Path
) -> None:
    """Their successors take the job up again where it runs, and bring its results home: it has run once."""
    (tmp_path / "slow.sh").write_text(
        '#!/bin/sh\nwhile [ ! -e "$1" ]; do sleep 0.1; done\necho done >result\n'
    )
    (tmp_path / "slow.sh").chmod(0o755)
    gate = Path(tempfile.mkdtemp(prefix="kettle-gate-"))
    gate.chmod(0o755)
    try:
        submitted = await home.client.submit(
            f"executable = slow.sh\narguments = {gate}/open\nqueue\n", cwd=tmp_path
        )
        before = await running(home, submitted.cluster)
        killed = {name: home.kill(name) for name in ("schedd", "shadow")}
        for name, pid in killed.items():
            await home.restarted(name, after=pid)
        (gate / "open").touch()
        (ad,) = await ended(home, submitted.cluster)
    finally:
        shutil.rmtree(gate)
    assert "done\n" == (tmp_path / "result").read_text()
    assert (1, "there", before["PublicClaimId"]) == (
        ad["NumShadowStarts"],
        ad["LastRemotePool"],
        ad["LastPublicClaimId"],
    )


@pytest.mark.parametrize("line", ["+WantFlocking = false", '+FlockTo = "nowhere"', "concurrency_limits = a"])
async def test_a_job_that_is_not_to_go_stays(home: ThrowawayPool, tmp_path: Path, line: str) -> None:
    """It waits at home, and `kettle why` says so, while others of the same person go."""
    stays = await home.client.submit(f"executable = /bin/true\n{line}\nqueue\n", cwd=tmp_path)
    goes = await home.client.submit("executable = /bin/true\nqueue 3\n", cwd=tmp_path)
    assert ["there"] * 3 == [ad["LastRemotePool"] for ad in await ended(home, goes.cluster)]
    (ad,) = await home.client.jobs(select(stays.cluster))
    assert (1, None) == (ad["JobStatus"], ad.get("LastMatchTime"))
    said = await explained(
        home, f"{stays.cluster}.0", "pool" if "FlockTo" in line else "not to run in other pools"
    )
    assert ("the pool nowhere is not reached" in said) == ("FlockTo" in line)
    await home.client.remove(select(stays.cluster))


async def test_a_pool_that_hangs_slows_nothing_at_home(
    home: ThrowawayPool, host: ThrowawayPool, tmp_path: Path
) -> None:
    """
    Its bus is suspended while jobs are offered to it; jobs at home start, run and end, and what is asked is answered.
    """
    away = await home.client.submit("executable = /bin/true\nqueue 2\n", cwd=tmp_path)
    await ended(home, away.cluster)
    host.kill("nats", signal.SIGSTOP)
    try:
        away = await home.client.submit("executable = /bin/true\nqueue 2\n", cwd=tmp_path)
        for _ in range(3):
            stays = await home.client.submit(
                "executable = /bin/true\n+StaysAtHome = true\n+WantFlocking = false\nqueue 2\n", cwd=tmp_path
            )
            async with asyncio.timeout(HUNG_S):
                await home.client.wait(select(stays.cluster))
        assert 2 == len(await home.client.jobs(select(away.cluster)))
    finally:
        host.kill("nats", signal.SIGCONT)
    assert {"there"} == {ad["LastRemotePool"] for ad in await ended(home, away.cluster)}


async def test_the_records_of_both_are_sound(home: ThrowawayPool, host: ThrowawayPool) -> None:
    """After all of this the audits find nothing."""
    for pool in (home, host):
        audit = await pool.log_check()
        assert audit.clean, audit.said


async def test_a_pool_that_goes_away_and_does_not_let_us_in_again(tmp_path: Path, template: Path) -> None:
    """
    What ran there is lost when its lease is over and runs again, here or there; a pass that was withdrawn is told of in a
    sentence, and works again when it is honoured again.
    """
    theirs: Tables = {"master": {"flock_from": [VISITOR]}}
    ours: Tables = {
        "schedd": {
            "flock_to": ["there"],
            "flock_patience": 0.3,
            "shortest_job_lease": 1.0,
            "lease_margin": 1.0,
        }
    }
    (tmp_path / "work").mkdir()
    async with (
        throwaway_pool(tmp_path, cpus=1, template=template, settings=theirs) as host,
        throwaway_pool(tmp_path, cpus=1, template=template, settings=ours) as home,
    ):
        await introduced(home, host)
        sleeper = "executable = /bin/sleep\narguments = 600\n"
        first = await home.client.submit(f"{sleeper}queue\n", cwd=tmp_path / "work")
        assert "RemotePool" not in await running(home, first.cluster)
        # Only the job that is to be lost has a lease that a slow machine might not keep.
        second = await home.client.submit(f"{sleeper}job_lease_duration = 5\nqueue\n", cwd=tmp_path / "work")
        assert "there" == (await running(home, second.cluster))["RemotePool"]

        await host.stop()
        file = host.home / "kettle.toml"
        file.write_text(file.read_text().replace(f'flock_from = ["{VISITOR}"]', "flock_from = []"))
        await explained(home, f"{second.cluster}.0", "the pool there is not reached")
        (other,) = await home.client.jobs(select(first.cluster))
        assert 1 == other["NumShadowStarts"], "the job at home has not noticed"
        await home.client.remove(select(first.cluster))
        again = await running(home, second.cluster)
        assert ("there", None) == (again["LastRemotePool"], again.get("RemotePool"))

        third = await home.client.submit("executable = /bin/true\nqueue\n", cwd=tmp_path / "work")
        await host.start()
        await explained(home, f"{third.cluster}.0", "does not accept our credentials")
        file.write_text(file.read_text().replace("flock_from = []", f'flock_from = ["{VISITOR}"]'))
        nats = host.pid("nats")
        status, _, err = await host.kettle("reconfig")
        assert 0 == status, err
        (ad,) = await ended(home, third.cluster)
        assert "there" == ad["LastRemotePool"]

        file.write_text(file.read_text().replace(f'flock_from = ["{VISITOR}"]', "flock_from = []"))
        await host.kettle("reconfig")
        refused = "does not accept our credentials"
        await seen(lambda: home.client.ads("Scheduler"), lambda ad: refused in str(ad["FlockStates"]))
        assert nats == host.pid("nats"), "nobody of that pool has lost the connection"
        await home.client.remove(select(second.cluster))
