"""
What goes wrong between a pool of workers and those who have the machines, with real peers and the real worker's program.

Each case takes half a minute, so all of them together run on demand only.
"""

import asyncio
import os
import shutil
import zlib
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import pytest
import pytest_asyncio
from aiohttp import web
from tests.conformance.providers.fault_proxy import (
    Answer,
    Asked,
    Fault,
    Forward,
    answered,
    lost_answers,
    sent_twice,
)

from kettle.testing.patience import PATIENCE_S
from kettle.testing.servers import selection
from kettle.testing.servers.files import moto
from kettle.testing.servers.slurm import no_slurm, slurm
from kettle.testing.throwaway_pool import ThrowawayPool
from kettle_wire.leases import LeaseState

from .elastic_cases import LOOK_S, Case, Kept, each_fifth, error, invisible, small_pages
from .elastic_peers import Cloud, Peer, Pilots, cloud, creates, late, never, stays
from .elastic_pools import pool_of_machines

ORDER: Final = "KETTLE_TEST_LONG"
SERVICES: Final = ["collector", "negotiator", "schedd", "shadow", "iam", "scaler", "provisioner"]
SETTINGS: Final[dict[str, Any]] = {
    "schedd": {"lease": 20.0},
    "scaler": {
        "min_interval": 0.5,
        "interval": 2.0,
        "renew_interval": 1.0,
        "answer": 10.0,
        "doubt_interval": 1.0,
        "reconcile_interval": 2.0,
        "shortest_boot": 25.0,
        "dead": 15.0,
        "orphan_grace": 30.0,
    },
    "provisioner": {"call_deadline": 6.0},
}
pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.scenario,
    pytest.mark.embedded,
    pytest.mark.skipif(
        not selection.servers_are_ours(),
        reason="who may connect to servers of somebody else is theirs to say",
    ),
    pytest.mark.skipif(ORDER not in os.environ, reason=f"it takes minutes: {ORDER}=1 runs it"),
]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def rented(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Cloud]:
    with moto() as url:
        async with cloud(url, tmp_path_factory.mktemp("cloud") / "instances") as made:
            yield made


@pytest.fixture(scope="module")
def pilots(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pilots]:
    if why := no_slurm():
        pytest.skip(why)
    with slurm() as cluster:
        yield Pilots(cluster, tmp_path_factory.mktemp("pilots"))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def pool(
    tmp_path_factory: pytest.TempPathFactory, template: Path, rented: Cloud, pilots: Pilots
) -> AsyncIterator[ThrowawayPool]:
    providers = {each.name: each.table for each in (rented, pilots)}
    settings = SETTINGS | {
        "master": {"daemon_list": SERVICES, "environment": {"provisioner": {"PATH": pilots.path}}},
        "provisioner": {**SETTINGS["provisioner"], "providers": providers},
    }
    directory = tmp_path_factory.mktemp("faults")
    async with pool_of_machines(directory, settings=settings, template=template) as running:
        yield running
        audit = await running.log_check()
        assert audit.clean, audit.said


@pytest_asyncio.fixture(loop_scope="module")
async def on_cloud(
    pool: ThrowawayPool, rented: Cloud, tmp_path: Path, request: pytest.FixtureRequest
) -> AsyncIterator[Case]:
    async with case(pool, rented, request, tmp_path) as made:
        yield made


@pytest_asyncio.fixture(loop_scope="module")
async def on_pilots(
    pool: ThrowawayPool, pilots: Pilots, tmp_path: Path, request: pytest.FixtureRequest
) -> AsyncIterator[Case]:
    async with case(pool, pilots, request, tmp_path) as made:
        yield made


@asynccontextmanager
async def case(
    pool: ThrowawayPool, peer: Peer, request: pytest.FixtureRequest, place: Path
) -> AsyncGenerator[Case]:
    """A case; what it has left of the pool is opened for the next one."""
    made = Case(pool, peer, f"case{zlib.crc32(request.node.name.encode()):08x}", place)
    yield made
    if made.applies:
        await made.said("resume", made.name)
        await made.said("retire", made.name)


@pytest.mark.parametrize(
    ("fault", "of"),
    [
        pytest.param(each_fifth, "lease.in_doubt", id="a fifth of the answers is lost"),
        pytest.param(lambda: lost_answers(creates, times=2), "lease.in_doubt", id="both creates are lost"),
        pytest.param(lambda: sent_twice(creates, times=1), "lease.duplicated", id="a create is sent twice"),
        pytest.param(lambda: invisible(4), "lease.ready", id="lists are late"),
        pytest.param(
            lambda: answered(creates, error(503, "Unavailable"), times=2),
            "lease.deferred",
            id="refused for a moment",
        ),
        pytest.param(
            lambda: answered(creates, error(503, "RequestLimitExceeded"), times=2),
            "lease.deferred",
            id="asked too fast",
        ),
    ],
)
async def test_a_cloud_that_cannot_be_relied_on(
    on_cloud: Case, rented: Cloud, fault: Callable[[], Fault], of: str
) -> None:
    """
    Once a machine has come up, jobs are done whatever goes wrong with the next ones, and in the end there is no machine without a lease;
    what happened is recorded.
    """
    await on_cloud.applied()
    await on_cloud.done(await on_cloud.submitted(count=1))
    await on_cloud.over()
    with rented.proxy.fault(fault()):
        await on_cloud.done(await on_cloud.submitted())
    happened = {event for lease in await on_cloud.over() for event in await on_cloud.events(lease.lease)}
    assert of in happened, happened


async def test_a_removal_that_is_only_said_is_asked_for_again(on_cloud: Case, rented: Cloud) -> None:
    """A machine is gone when that is proven, and not when the cloud says that it will be."""
    rented.machines.boot = stays
    try:
        await on_cloud.applied(most=1)
        kept = Kept()
        with rented.proxy.fault(kept.fault):
            await on_cloud.done(await on_cloud.submitted(count=1))
            await on_cloud.over()
    finally:
        rented.machines.boot = late(0)
    assert 2 == kept.times


@pytest.mark.parametrize(
    ("code", "words"),
    [("VcpuLimitExceeded", "quota"), ("InsufficientInstanceCapacity", "capacity")],
)
async def test_there_are_no_more_machines(on_cloud: Case, rented: Cloud, code: str, words: str) -> None:
    """
    With the first machine all jobs are done, one after the other; why there is no second is told, in the cloud's own words.
    """
    await on_cloud.applied(most=2)
    with rented.proxy.fault(answered(creates, error(400 if words == "quota" else 500, code), after=1)):
        cluster = await on_cloud.submitted(count=8, seconds=2)
        await on_cloud.ready()
        async with asyncio.timeout(PATIENCE_S):
            while code not in (explained := await on_cloud.said("explain", on_cloud.name)):
                await asyncio.sleep(LOOK_S)
        assert "said so" in explained
        await on_cloud.done(cluster)
    leases = await on_cloud.over()
    assert 1 == sum(bool(each.handle) for each in leases)


async def test_a_wrong_credential_stops_everything_until_it_is_right(on_cloud: Case, rented: Cloud) -> None:
    """
    A credential is replaced at the cloud first: the provider is closed with the cloud's own words, no machine is asked for again and
    again, and it opens by itself when the provisioner's file has the new one.
    """
    rented.key = "second"
    await on_cloud.applied(most=1)
    cluster = await on_cloud.submitted(count=1)
    async with asyncio.timeout(PATIENCE_S):
        while "who are you" not in await on_cloud.said("explain", on_cloud.name):
            await asyncio.sleep(LOOK_S)
    assert sum(map(creates, rented.refused)) <= 1
    rented.use_credential(rented.key)
    await on_cloud.done(cluster)
    await on_cloud.over()


async def test_a_machine_that_nobody_ordered_is_removed(on_cloud: Case, rented: Cloud) -> None:
    """Somebody has made an instance by hand with our tags: it has no lease, and goes after a while."""
    await on_cloud.applied(most=1)
    await on_cloud.done(await on_cloud.submitted(count=1))
    (request,) = [
        each for each in rented.proxy.asked if creates(each) and on_cloud.name in each.body.decode()
    ][:1]
    deployment = next(
        request.field(f"TagSpecification.1.Tag.{number}.Value")
        for number in range(1, 9)
        if request.field(f"TagSpecification.1.Tag.{number}.Key").endswith("deployment")
    )
    names = [request.field(f"TagSpecification.1.Tag.{number}.Key") for number in range(1, 4)]
    tags = [{"Key": each, "Value": deployment if "deployment" in each else "by-hand"} for each in names]
    await asyncio.to_thread(
        rented.machines.client.run_instances,
        ImageId="ami-12c6146b",
        MinCount=1,
        MaxCount=1,
        UserData="sleep 600",
        TagSpecifications=[{"ResourceType": "instance", "Tags": tags}],
    )
    await asyncio.to_thread(rented.machines.look)
    assert await asyncio.to_thread(rented.there)
    async with asyncio.timeout(3 * PATIENCE_S):
        await on_cloud.over()


async def test_pages_that_fail_lose_no_machine(on_cloud: Case, rented: Cloud) -> None:
    """While the second page of every list fails nobody believes that the machines on it are gone."""
    await on_cloud.applied(most=6, least=6)
    handles = await on_cloud.ready(6)
    fails = answered(lambda asked: b"NextToken" in asked.body, error(503, "Unavailable"))
    with rented.proxy.fault(small_pages, fails):
        cluster = await on_cloud.submitted(count=12, seconds=10)
        await on_cloud.done(cluster)
        assert set(handles) <= {each.handle for each in await on_cloud.leases()}
    await on_cloud.applied(most=6)
    await on_cloud.over()


async def test_a_cloud_that_is_away_loses_no_machine(on_cloud: Case, rented: Cloud) -> None:
    """While the cloud does not answer its machines go on, and jobs are done on them."""
    await on_cloud.applied(most=1, least=1)
    (handle,) = await on_cloud.ready()
    async with rented.proxy.closed():
        await on_cloud.done(await on_cloud.submitted(count=4, seconds=5))
        assert [handle] == [each.handle for each in await on_cloud.leases()]
    await on_cloud.applied(most=1)
    await on_cloud.over()


async def test_a_slow_boot_is_waited_for(on_cloud: Case, rented: Cloud) -> None:
    """Twelve seconds in place of the one that the pool file says: the machine is used, and not made again."""
    rented.machines.boot = late(12)
    try:
        await on_cloud.applied(most=1)
        await on_cloud.done(await on_cloud.submitted(count=2))
    finally:
        rented.machines.boot = late(0)
    leases = await on_cloud.over()
    assert [True] == [bool(each.ready) for each in leases]


async def test_a_template_that_never_boots_costs_few_machines(on_cloud: Case, rented: Cloud) -> None:
    """
    While no machine of an image comes up one at a time is tried, three at most are wasted; when it is mended the jobs are done.
    """
    rented.machines.boot = never
    try:
        await on_cloud.applied(most=8)
        cluster = await on_cloud.submitted(count=16)
        async with asyncio.timeout(3 * PATIENCE_S):
            while "did not become ready" not in await on_cloud.said("explain", on_cloud.name):
                await asyncio.sleep(LOOK_S)
        held, over = await on_cloud.leases(), await on_cloud.ended()
        assert 1 <= len(held) + len(over) <= 3
    finally:
        rented.machines.boot = late(0)
    await on_cloud.said("resume", on_cloud.name)
    await on_cloud.done(cluster)
    await on_cloud.over()


@pytest.mark.parametrize("skew", ["+1h", "-1h"])
async def test_a_machine_whose_clock_is_an_hour_off_is_used(on_cloud: Case, rented: Cloud, skew: str) -> None:
    """All times that it is told are spans: it joins, its jobs are done, and it goes when it is idle."""
    if shutil.which("faketime") is None:
        pytest.skip("there is no faketime (Debian package faketime)")
    rented.machines.boot = lambda script: ["faketime", "-f", skew, "sh", str(script)]
    try:
        await on_cloud.applied(most=1)
        await on_cloud.done(await on_cloud.submitted(count=2))
        leases = await on_cloud.over()
    finally:
        rented.machines.boot = late(0)
    assert [True] == [bool(each.ready) for each in leases]


async def test_machines_end_although_nobody_asks_them_to(on_cloud: Case) -> None:
    """Scaler and provisioner are off for good: at the end of its life a machine switches itself off."""
    await on_cloud.applied(most=1, least=1, life="40s")
    await on_cloud.ready()
    for service in ("scaler", "provisioner"):
        assert 0 == (await on_cloud.pool.kettle("off", service)).status
    try:
        async with asyncio.timeout(2 * PATIENCE_S):
            while await asyncio.to_thread(on_cloud.peer.there):
                await asyncio.sleep(LOOK_S)
    finally:
        for service in ("provisioner", "scaler"):
            assert 0 == (await on_cloud.pool.kettle("on", service)).status
    await on_cloud.applied(most=1)
    await on_cloud.over()


@pytest.mark.parametrize("peer", ["cloud", "pilots"])
async def test_a_machine_that_is_taken_back_gives_its_job_to_another(
    peer: str, on_cloud: Case, on_pilots: Case
) -> None:
    """It ends while a job runs: the job runs again on the next one, and is done."""
    on = on_cloud if peer == "cloud" else on_pilots
    await on.applied(most=1)
    cluster = await on.submitted(count=1, seconds=15)
    await on.until(lambda held: any(each.state is LeaseState.BUSY for each in held))
    (handle,) = [each.handle for each in await on.leases()]
    await asyncio.to_thread(on.peer.take_back, handle)
    await on.done(cluster)
    handles = {each.handle for each in await on.over() if each.handle}
    assert 2 == len(handles)
    assert handle in handles


class SlowFile:
    """A file on a server that gives who asks first only the half of it."""

    def __init__(self) -> None:
        self.content: Final = os.urandom(1 << 20)
        self.halfway: Final = asyncio.Event()
        self._port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}/slow"

    @asynccontextmanager
    async def served(self) -> AsyncGenerator[None]:
        app = web.Application()
        app.router.add_get("/slow", self._answer)
        runner = web.AppRunner(app)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0, shutdown_timeout=0.0)
        await site.start()
        self._port = runner.addresses[0][1]
        try:
            yield
        finally:
            await runner.cleanup()

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Length": str(len(self.content))})
        await response.prepare(request)
        half = len(self.content) // 2
        await response.write(self.content[:half])
        if request.method == "GET" and not self.halfway.is_set():
            self.halfway.set()
            await asyncio.Event().wait()  # until nobody listens any more
        await response.write(self.content[half:])
        return response


MOVING: Final = """\
executable = /bin/cat
arguments = slow
transfer_input_files = {url}
output = out
requirements = TARGET.KettlePool == "{name}"
request_memory = 128
queue
"""


@pytest.mark.parametrize("peer", ["cloud", "pilots"])
async def test_a_machine_that_is_taken_back_while_files_are_moved(
    peer: str, on_cloud: Case, on_pilots: Case, tmp_path: Path
) -> None:
    """It has half of an input file: the job has all of it on the next machine, and begins once."""
    on, file = on_cloud if peer == "cloud" else on_pilots, SlowFile()
    async with file.served():
        await on.applied(most=1)
        submitted = await on.pool.client.submit(MOVING.format(url=file.url, name=on.name), cwd=tmp_path)
        async with asyncio.timeout(2 * PATIENCE_S):
            await file.halfway.wait()
        (handle,) = [each.handle for each in await on.leases()]
        await asyncio.to_thread(on.peer.take_back, handle)
        await on.done(submitted.cluster)
    assert file.content == (tmp_path / "out").read_bytes()
    handles = {each.handle for each in await on.over() if each.handle}
    assert 2 == len(handles)
    assert handle in handles


@pytest.mark.parametrize("how", ["lost", "killed"])
async def test_a_pilot_whose_number_nobody_heard_is_found(on_pilots: Case, pilots: Pilots, how: str) -> None:
    """
    `sbatch` has submitted and says nothing, or the provisioner is killed before it hears: the pilot is found, and is the only one.
    """
    await on_pilots.applied(most=1)
    with pilots.fault(how):
        await on_pilots.done(await on_pilots.submitted(count=2))
    (lease,) = [each for each in await on_pilots.over() if each.handle]
    assert "lease.in_doubt" in await on_pilots.events(lease.lease)


async def test_an_instance_whose_name_nobody_heard_is_found(on_cloud: Case, rented: Cloud) -> None:
    """
    The provisioner is killed between the cloud's act and its answer: the instance is found, and is the only one.
    """
    killed = 0

    async def kills(asked: Asked, forward: Forward) -> Answer:
        nonlocal killed
        answer = await forward(asked)
        if creates(asked) and not killed:
            killed = on_cloud.pool.kill("provisioner")
        return answer

    await on_cloud.applied(most=1)
    with rented.proxy.fault(kills):
        await on_cloud.done(await on_cloud.submitted(count=2))
    assert killed
    (lease,) = [each for each in await on_cloud.over() if each.handle]
    assert "lease.in_doubt" in await on_cloud.events(lease.lease)


async def test_a_controller_that_is_away_loses_no_pilot(on_pilots: Case, pilots: Pilots) -> None:
    """While slurmctld is down its pilots run, and what `squeue` cannot say is not that they are gone."""
    await on_pilots.applied(most=1, least=1)
    (handle,) = await on_pilots.ready()
    await asyncio.to_thread(pilots.cluster.stop_controller)
    try:
        await on_pilots.done(await on_pilots.submitted(count=4, seconds=3))
        assert [handle] == [each.handle for each in await on_pilots.leases()]
    finally:
        await asyncio.to_thread(pilots.cluster.start_controller)
    await on_pilots.applied(most=1)
    await on_pilots.over()


async def test_pilots_that_wait_in_the_queue_are_no_reason_for_more(on_pilots: Case) -> None:
    """
    The node has room for four pilots, and six are needed: those that wait are counted on, and all jobs are done.
    """
    await on_pilots.applied(most=12)
    cluster = await on_pilots.submitted(count=12, seconds=8)
    await on_pilots.done(cluster)
    leases = await on_pilots.over()
    assert len(leases) <= 6
