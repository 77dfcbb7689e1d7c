"""
What befalls jobs on their way to a batch system: kills of the entrypoint, of the site, and other routes meanwhile.
"""

import asyncio
from collections.abc import Callable, Generator
from contextlib import aclosing
from pathlib import Path
from typing import Any, Final

import pytest

from kettle.client import select
from kettle.testing.patience import PATIENCE_S
from kettle.testing.servers.fake_slurm import FakeSlurm
from kettle.testing.servers.held_port import held_port
from kettle.testing.throwaway_pool import ThrowawayPool
from kettle_services.cli.ce.accounting import runs_of
from kettle_wire.ads import Ad
from kettle_wire.codes import HoldCode
from kettle_wire.events import JobAssigned, JobCompleted, JobHeld, JobRemoved, JobRouted, JobStarted
from kettle_wire.jobs import JobId

SERVICES: Final = ["collector", "negotiator", "schedd", "shadow", "startd", "accounting", "ce"]
FAULTS: Final = ("ce.decided", "batch.taken", "batch.ended")
ROUTES: Final = """\
JOB_ROUTER_ROUTE_NAMES = Held Failed Apart
JOB_ROUTER_ROUTE_Held @=end
    REQUIREMENTS Fate == "hold"
    GridResource = "batch cluster"
    OnLocalRemove = hold
    MaxIdleJobs = 500
    FailureRateThreshold = 1000
@end
JOB_ROUTER_ROUTE_Failed @=end
    REQUIREMENTS Fate == "fail"
    GridResource = "batch cluster"
    OnLocalRemove = fail
    MaxIdleJobs = 500
    FailureRateThreshold = 1000
@end
JOB_ROUTER_ROUTE_Apart @=end
    REQUIREMENTS Fate == "apart"
    GridResource = "batch apart"
@end
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of the batch system and the routes."""
    path = tmp_path_factory.mktemp("ce")
    (path / "faults").mkdir()
    (path / "routes").write_text(ROUTES)
    return path


@pytest.fixture(scope="module")
def fake(place: Path) -> Generator[FakeSlurm]:
    with FakeSlurm(place / "slurm") as programs:
        yield programs


@pytest.fixture(scope="module")
def configuration(place: Path, fake: FakeSlurm) -> dict[str, Any]:
    """The entrypoint is killed once at each of its steps, by the first job that comes there."""
    faults = {
        "KETTLE_FAULT_POINTS": ",".join(f"{name}=kill" for name in FAULTS),
        "KETTLE_FAULT_ONCE": str(place / "faults"),
    }
    batch = {
        "name": "cluster",
        "kind": "slurm",
        "directory": str(place / "sandboxes"),
        "environment": fake.environment,
        "accounting": True,
        "poll_least": 0.1,
        "poll_most": 0.5,
        "settling": 0.1,
        "patience": 20.0,
    }
    apart = {**batch, "name": "apart", "directory": str(place / "scratch"), "shared": False}
    port = held_port()
    files = {"url": f"http://127.0.0.1:{port}", "port": port}
    return {
        "settings": {
            "master": {"daemon_list": SERVICES, "environment": {"ce": faults}},
            "schedd": {"entrypoint": True, "route_jobs": "Fate isnt undefined"},
            # It reads its routes when it is told to, so that a test knows when.
            "ce": {
                "routes": str(place / "routes"),
                "routes_interval": 600.0,
                "batch": [batch, apart],
                "files": files,
            },
        }
    }


async def until(is_so: Callable[[], bool], otherwise: Callable[[], object]) -> None:
    """Wait for what others do."""
    try:
        async with asyncio.timeout(PATIENCE_S):
            while not is_so():
                await asyncio.sleep(0.05)
    except TimeoutError:
        raise AssertionError(otherwise()) from None


async def submitted(pool: ThrowawayPool, tmp_path: Path, fate: str, count: int = 1) -> int:
    """Jobs for a route; the number of their cluster."""
    said = await pool.client.submit(
        f"executable = /bin/sh\ntransfer_executable = false\narguments = \"-c 'echo ran >>{tmp_path}/ran; exit 3'\"\n"
        f'+Fate = "{fate}"\nqueue {count}\n',
        cwd=tmp_path,
    )
    return said.cluster


async def ads(pool: ThrowawayPool, cluster: int) -> list[Ad]:
    return await pool.client.jobs(
        select(cluster),
        projection=["JobStatus", "HoldReasonCode", "HoldReason", "NumRouted", "NumShadowStarts"],
    )


async def held(pool: ThrowawayPool, cluster: int, count: int) -> list[Ad]:
    """Wait until so many jobs of a cluster are held."""
    found: list[Ad] = []
    try:
        async with asyncio.timeout(PATIENCE_S):
            while sum(ad["JobStatus"] == 5 for ad in found) < count:
                found = await ads(pool, cluster)
                await asyncio.sleep(0.05)
    except TimeoutError:
        raise AssertionError(found) from None
    return found


async def test_a_job_survives_all_deaths_of_its_entrypoint(
    pool: ThrowawayPool, place: Path, fake: FakeSlurm, tmp_path: Path
) -> None:
    """
    Killed when it has decided and told nobody, when the batch system has the job and nobody knows, and when the job is over, the
    entrypoint goes on where it was: one route, one job there, one run, one end.
    """
    fake.set_mode("runs")
    cluster = await submitted(pool, tmp_path, "hold")
    await pool.client.wait(select(cluster))
    assert set(FAULTS) == {path.name for path in (place / "faults").iterdir()}, pool.log("ce")
    said = [each.event for each in await pool.client.events(JobId(cluster, 0))]
    kinds = [type(event) for event in said if isinstance(event, JobRouted | JobAssigned | JobCompleted)]
    assert [JobRouted, JobAssigned, JobCompleted] == kinds
    (done,) = (event for event in said if isinstance(event, JobCompleted))
    assert 3 == done.exit.code
    assert "ran\n" == (tmp_path / "ran").read_text()
    assert 1 == len(fake.jobs())
    await until(lambda: not fake.running(), fake.running)


async def test_a_hundred_jobs_that_the_site_removes_become_what_their_routes_say(
    pool: ThrowawayPool, fake: FakeSlurm, tmp_path: Path
) -> None:
    """
    Half of them are held and half of them are removed, with the site's word for it, and none is submitted again.
    """
    fake.set_mode()
    before = fake.jobs().keys()
    holds, fails = [await submitted(pool, tmp_path, fate, 50) for fate in ("hold", "fail")]
    await until(lambda: 100 == len(fake.jobs().keys() - before), lambda: (len(fake.jobs()), pool.log("ce")))
    fake.change_all(fake.jobs().keys() - before, "CANCELLED", status=15)
    await pool.client.wait(select(fails))
    found = await held(pool, holds, 50)
    assert {(5, HoldCode.GlobusGramError, 1, 1)} == {
        (ad["JobStatus"], ad["HoldReasonCode"], ad["NumRouted"], ad["NumShadowStarts"]) for ad in found
    }
    assert all("was removed there (CANCELLED" in str(ad["HoldReason"]) for ad in found)
    for proc in range(50):
        said = [each.event for each in await pool.client.events(JobId(fails, proc))]
        assert [JobAssigned, JobRemoved] == [
            type(event)
            for event in said
            if isinstance(event, JobAssigned | JobHeld | JobCompleted | JobRemoved)
        ]
    assert 100 == len(fake.jobs().keys() - before)
    await pool.client.remove(select(holds))
    assert not (tmp_path / "ran").exists()


async def test_files_go_to_nodes_that_share_nothing_and_come_back(
    pool: ThrowawayPool, place: Path, fake: FakeSlurm, tmp_path: Path
) -> None:
    """From the submitter to the node and back, without a directory that the node shares with anybody."""
    fake.set_mode("runs")
    (tmp_path / "in").write_text("what it reads\n")
    said = await pool.client.submit(
        "executable = /bin/sh\ntransfer_executable = false\narguments = \"-c 'cat in; echo made >made'\"\n"
        'transfer_input_files = in\nshould_transfer_files = YES\noutput = out\n+Fate = "apart"\nqueue\n',
        cwd=tmp_path,
    )
    await pool.client.wait(select(said.cluster))
    (ad,) = await pool.client.history(select(said.cluster))
    assert 0 == ad["ExitCode"]
    assert ("what it reads\n", "made\n") == tuple((tmp_path / name).read_text() for name in ("out", "made"))
    await until(lambda: not list((place / "scratch").rglob("*.kettle")), lambda: "the node keeps files")


async def _started(pool: ThrowawayPool, job: JobId, times: int) -> None:
    """Wait until a job has begun so often."""
    async with asyncio.timeout(PATIENCE_S), aclosing(pool.client.follow(job)) as following:
        async for each in following:
            times -= isinstance(each.event, JobStarted)
            if not times:
                return


async def test_a_persons_own_job_goes_to_a_batch_system(
    pool: ThrowawayPool, fake: FakeSlurm, tmp_path: Path
) -> None:
    """
    By its description alone, without a route; it ends as it ended there, and has the number that it had there.
    """
    fake.set_mode("runs")
    said = await pool.client.submit(
        "universe = grid\ngrid_resource = batch cluster\nexecutable = /bin/sh\ntransfer_executable = false\n"
        f"arguments = \"-c 'echo ran >>{tmp_path}/ran; exit 3'\"\nqueue\n",
        cwd=tmp_path,
    )
    job = JobId(said.cluster, 0)
    async with asyncio.timeout(PATIENCE_S), aclosing(pool.client.follow(job)) as following:
        over = await anext(each.event async for each in following if isinstance(each.event, JobCompleted))
    assert 3 == over.exit.code
    assert "ran\n" == (tmp_path / "ran").read_text()
    kinds = [type(each.event) for each in await pool.client.events(job)]
    assert JobRouted not in kinds


async def test_each_run_of_a_job_is_told_of(pool: ThrowawayPool, fake: FakeSlurm, tmp_path: Path) -> None:
    """
    A job whose first node fails is two jobs to APEL, each with the number and the time that it had at the batch system; they add up to
    what its ad says.
    """
    fake.set_mode()
    before = fake.jobs().keys()
    cluster = await submitted(pool, tmp_path, "hold")
    numbers: list[str] = []
    for count, word in enumerate(("NODE_FAIL", "COMPLETED"), 1):
        await until(lambda n=count: n == len(fake.jobs().keys() - before), lambda: pool.log("ce"))  # type: ignore[misc]
        numbers += fake.jobs().keys() - before - {*numbers}
        fake.change(numbers[-1], "RUNNING")
        await _started(pool, JobId(cluster, 0), count)
        fake.change(numbers[-1], word)
    await pool.client.wait(select(cluster))
    told = [ad for ad in await runs_of(pool.client, 0.0, 253_402_300_799.0) if ad["ClusterId"] == cluster]
    (ad,) = await pool.client.history(select(cluster))
    name = str(ad["GlobalJobId"])
    assert [(name, numbers[0]), (f"{name}#2", numbers[1])] == [
        (each["GlobalJobId"], str(each["GridJobId"]).rpartition("/")[2]) for each in told
    ], ad


async def test_routes_that_change_leave_jobs_alone_that_are_on_their_way(
    pool: ThrowawayPool, place: Path, fake: FakeSlurm, tmp_path: Path
) -> None:
    """
    What was routed becomes what its own version of the routes says, and what comes later what the new one does; a file that
    is refused changes nothing, and it is said what is wrong with it.
    """
    fake.set_mode()

    async def waits_there() -> tuple[int, str]:
        """A job, and its number at the batch system."""
        before = fake.jobs().keys()
        cluster = await submitted(pool, tmp_path, "hold")
        await until(lambda: 1 == len(fake.jobs().keys() - before), lambda: pool.log("ce"))
        return cluster, (fake.jobs().keys() - before).pop()

    first, first_there = await waits_there()
    (place / "routes").write_text(ROUTES.replace("OnLocalRemove = hold", "OnLocalRemove = fail"))
    read = await pool.client.entrypoint.load()
    assert [] == read.problems
    (place / "routes").write_text(
        "JOB_ROUTER_ROUTE_NAMES = Held\nJOB_ROUTER_ROUTE_Held @=end\n    MaxJobs = many\n@end\n"
    )
    refused = await pool.client.entrypoint.load()
    assert (read.version, True) == (refused.version, bool(refused.problems))
    status, out, err = await pool.kettle("ce", "status")
    assert (0, True, True) == (status, read.version in out, "A newer file is refused: " in err), (out, err)
    assert f"{place / 'routes'}" in err
    assert "line 3" in err
    second, second_there = await waits_there()
    versions = {
        cluster: [
            each.event.version
            for each in await pool.client.events(JobId(cluster, 0))
            if isinstance(each.event, JobRouted)
        ]
        for cluster in (first, second)
    }
    assert [read.version] == versions[second]
    assert [read.version] != versions[first]
    fake.change_all([first_there, second_there], "CANCELLED", status=15)
    await pool.client.wait(select(second))
    await held(pool, first, 1)
    await pool.client.remove(select(first))
    (place / "routes").write_text(ROUTES)
    mended = await pool.client.entrypoint.load()
    assert versions[first] == [mended.version]
    assert [] == (await pool.client.entrypoint.routes()).problems
