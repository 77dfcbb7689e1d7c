"""The client against the services that it asks."""

import asyncio
from pathlib import Path
from urllib.parse import urlsplit

import msgspec
import pytest

from kettle.bus.large_requests import LARGEST
from kettle.client import (
    Client,
    ClientError,
    CommandRefusedError,
    JobId,
    PoolFile,
    PoolUnreachableError,
    Progress,
    SubmitError,
    SyncClient,
    job_id,
    select,
)
from kettle.testing.chaos.proxy import BLACKHOLE, CLEAR, Proxy
from kettle.testing.patience import PATIENCE_S
from kettle_wire.attempts import ExitRecord
from kettle_wire.commands.negotiator import Verdict
from kettle_wire.events import (
    ClusterSubmitted,
    JobAssigned,
    JobCompleted,
    JobHeld,
    JobReleased,
    JobRemoved,
    JobStarted,
    Rejection,
)

from .conftest import World
from .fakes import SHARD, settle

SLEEP = "executable = /bin/sleep\narguments = $(Process)\nqueue 3\n"
ASSIGNED = JobAssigned(attempt=1, claim="c", slot="slot1@here", startd="here")
DONE = JobCompleted(attempt=1, exit=ExitRecord(code=0))


async def test_submitting(world: World, client: Client) -> None:
    """A description becomes one cluster of the person who is connected."""
    submitted = await client.submit(SLEEP)
    assert (1, 3, SHARD) == (submitted.cluster, submitted.count, submitted.position.shard)
    assert ["0", "1", "2"] == [ad["Args"] for ad in await client.jobs()]
    assert {"ada"} == {ad["Owner"] for ad in world.pool.jobs.values()}


async def test_a_refused_description_is_not_sent(world: World, client: Client) -> None:
    """What is wrong is found before anything leaves the machine."""
    with pytest.raises(SubmitError, match="line 1"):
        await client.submit("executable = /no/such/file\nqueue\n")
    assert {} == world.pool.commands


async def test_a_submission_that_does_not_fit_the_bus(world: World, client: Client) -> None:
    """
    What is larger than a message goes in parts; what is larger than all that is carried is refused before it is sent.
    """
    text = f"executable = /bin/sleep\narguments = $(Process) {'x' * 1_000_000}\nqueue {{}}\n"
    assert world.pool.payload_limit < 12_000_000 < LARGEST
    with pytest.raises(ClientError, match="submit it in parts"):
        await client.submit(text.format(LARGEST // 1_000_000 + 1))
    assert {} == world.pool.commands
    assert 12 == (await client.submit(text.format(12))).count


async def test_a_queue_that_does_not_fit_the_bus(world: World, client: Client) -> None:
    """It comes in parts, whole and in order."""
    text = f"executable = /bin/sleep\narguments = {'x' * (world.pool.payload_limit // 3)}\nqueue\n"
    for _ in range(5):
        await client.submit(text)
    assert [1, 2, 3, 4, 5] == [ad["ClusterId"] for ad in await client.jobs()]
    assert [2, 3, 4] == [
        ad["ClusterId"] for ad in await client.jobs(select(1, 2, 3, 4, constraint="ClusterId > 1"))
    ]


async def test_a_file_is_read_where_it_is(world: World, client: Client) -> None:
    """Relative names start at the directory that is given."""
    (world.place / "job.sub").write_text("executable = run.sh\nqueue\n")
    (world.place / "run.sh").touch()
    await client.submit(Path("job.sub"), cwd=world.place)
    assert str(world.place / "run.sh") == world.pool.jobs[JobId(1, 0)]["Cmd"]


async def test_a_repeat_has_the_same_id(world: World, client: Client) -> None:
    """A schedd that is too busy is asked again, and can tell that it is the same command."""
    world.pool.stalls = 2
    assert 1 == (await client.submit(SLEEP)).cluster
    [sent] = world.pool.commands.values()
    assert 3 == len(sent)
    assert 1 == len(set(sent))


async def test_a_schedd_that_comes_late_is_waited_for(bare: World, client: Client) -> None:
    """While nobody answers, the command is repeated."""
    asked = asyncio.create_task(client.submit(SLEEP))
    await settle()
    assert not asked.done()
    await bare.pool.serve_schedd()
    assert 1 == (await asked).cluster


async def test_patience_ends(bare: World) -> None:
    """A pool without a schedd is told from a slow one."""
    async with Client.connect(environ=bare.environ, patience=3.0) as client:
        with pytest.raises(PoolUnreachableError, match="the schedd 'schedd' did not answer"):
            await client.jobs()


async def test_own_writes_are_seen(world: World, client: Client) -> None:
    """A query after a command names the frame of the command."""
    submitted = await client.submit(SLEEP)
    await client.jobs()
    assert submitted.position.frame == world.pool.asked[-1].at_least


async def test_acting(world: World, client: Client) -> None:
    """Each job has its own outcome."""
    await client.submit(SLEEP)
    held = await client.hold(select("1.0", "1.7"), "a look")
    assert {"1.0": "done", "1.7": "not_found"} == {str(one.job): one.outcome for one in held.outcomes}
    released = await client.release(select(1))
    assert ["done", "bad_status", "bad_status"] == [one.outcome for one in released.outcomes]
    await client.remove(select(1))
    assert {} == world.pool.jobs
    assert 3 == len(await client.history(select(1)))


async def test_a_refusal_has_its_code(world: World, client: Client) -> None:
    """What the pool does not know is told by code, for programs, and sentence, for people."""
    with pytest.raises(CommandRefusedError, match="has never had a cluster 9") as caught:
        await client.events(JobId(9, 9))
    assert "not_found" == caught.value.code


async def _known(names: list[str], count: int) -> None:
    """Wait until the past is read: the client listens by then."""
    async with asyncio.timeout(PATIENCE_S):
        while len(names) < count:
            await asyncio.sleep(0.01)


async def _collect(client: Client, job: JobId, names: list[str]) -> None:
    async for event in client.follow(job):
        names.append(type(event.event).__name__)  # noqa: PERF401 - the test looks while it grows


async def test_following(world: World, client: Client) -> None:
    """The past first, then each event as it is recorded, none twice, until the end."""
    await client.submit(SLEEP)
    await world.pool.record(("job/1.0", ASSIGNED))
    names: list[str] = []

    following = asyncio.create_task(_collect(client, JobId(1, 0), names))
    await _known(names, 2)
    assert ["ClusterSubmitted", "JobAssigned"] == names
    await world.pool.record(("job/1.1", ASSIGNED), ("job/1.0", JobStarted(attempt=1)))
    await world.pool.record(("job/1.0", JobHeld(code=1, reason="x")), ("job/1.0", JobReleased()))
    await world.pool.record(("job/1.0", DONE))
    await asyncio.wait_for(following, PATIENCE_S)
    assert ["JobStarted", "JobHeld", "JobReleased", "JobCompleted"] == names[2:]


async def test_following_notices_a_gap(world: World, client: Client) -> None:
    """A frame that was lost on the way is read from the record when the next one shows that it is missing."""
    await client.submit(SLEEP)
    names: list[str] = []

    following = asyncio.create_task(_collect(client, JobId(1, 0), names))
    await _known(names, 1)
    await world.pool.record(("job/1.1", ASSIGNED))
    world.pool.silent = True
    await world.pool.record(("job/1.0", ASSIGNED))
    await world.pool.record(("job/1.0", JobStarted(attempt=1)))
    world.pool.silent = False
    await world.pool.record(("job/1.0", DONE))
    await asyncio.wait_for(following, PATIENCE_S)
    assert ["ClusterSubmitted", "JobAssigned", "JobStarted", "JobCompleted"] == names


async def test_waiting(world: World, client: Client) -> None:
    """It ends with the last job, and knows how each ended, those before it began included."""
    await client.submit(SLEEP)
    await world.pool.record(("job/1.0", JobCompleted(attempt=1, exit=ExitRecord(code=3))))
    waiting = asyncio.create_task(client.wait(select(1)))
    await settle()
    await world.pool.record(("job/1.1", ASSIGNED))
    await world.pool.record(("job/1.1", DONE))
    await settle()
    assert not waiting.done()
    await world.pool.record(("job/1.2", JobRemoved(by="ada")))
    progress = await asyncio.wait_for(waiting, PATIENCE_S)
    assert [("1.0", 3), ("1.2", None)] == [(str(job), state.exit_code) for job, state in progress.bad()]


async def test_waiting_for_what_has_ended(world: World, client: Client) -> None:
    """Nothing has to happen any more; the event log tells what accounting does not know yet."""
    await client.submit(SLEEP)
    world.pool.history_works = False
    await world.pool.record(*((f"job/1.{proc}", DONE) for proc in range(3)))
    progress = await asyncio.wait_for(client.wait(select("1.0", "1.2")), PATIENCE_S)
    assert ({"completed": 2}, []) == (dict(+progress.counts), progress.bad())


async def test_waiting_notices_a_gap(world: World, client: Client) -> None:
    """A completion whose frame was lost is found when the next frame comes."""
    await client.submit(SLEEP)
    waiting = asyncio.create_task(client.wait(select("1.0")))
    await settle()
    await world.pool.record(("job/1.1", ASSIGNED))
    world.pool.silent = True
    await world.pool.record(("job/1.0", DONE))
    world.pool.silent = False
    await world.pool.record(("job/1.1", DONE))
    assert (await asyncio.wait_for(waiting, PATIENCE_S)).ended


async def test_waiting_stops_where_nothing_can_happen(world: World, client: Client) -> None:
    """If all that is left is held, somebody has to do something first."""
    await client.submit(SLEEP)
    waiting = asyncio.create_task(client.wait(select(1), through_hold=False))
    await settle()
    await world.pool.record(("job/1.0", DONE), ("job/1.1", JobHeld(code=1, reason="x")))
    await settle()
    assert not waiting.done()
    await world.pool.record(("job/1.2", JobHeld(code=1, reason="x")))
    progress = await asyncio.wait_for(waiting, PATIENCE_S)
    assert (True, False) == (progress.stuck, progress.ended)


async def test_waiting_for_jobs_that_do_not_exist(world: World, client: Client) -> None:
    """Nobody waits endlessly because of a typing error."""
    await client.submit(SLEEP)
    with pytest.raises(CommandRefusedError, match="there is no cluster 7"):
        await client.wait(select(7))
    with pytest.raises(CommandRefusedError, match=r"there is no job 1\.3: cluster 1 has 3 jobs"):
        await client.wait(select("1.3"))
    assert 0 == (await client.wait(select(owners=["nobody"]))).total


async def test_why(world: World, client: Client) -> None:
    """The schedd is asked first, the negotiator where the schedd does not know it all."""
    await client.submit(SLEEP)
    rejection = Rejection(submitter="ada", schedd="schedd", autocluster=1, count=3, reason="x", slots=4)
    world.pool.verdict = Verdict(cycle=2, at=1.0, rejection=rejection)
    assert rejection == _verdict(await client.why(JobId(1, 0)))
    await world.pool.record(("job/1.0", JobHeld(code=1, reason="x")))
    assert _verdict(await client.why(JobId(1, 0))) is None
    await world.pool.record(("job/1.1", DONE))
    told = await client.why(JobId(1, 1))
    assert told.explanation is None
    assert [ClusterSubmitted, JobCompleted] == [type(event.event) for event in told.events]


def _verdict(report: object) -> Rejection | None:
    verdict = getattr(report, "verdict", None)
    return verdict.rejection if isinstance(verdict, Verdict) else None


async def test_the_synchronous_client(world: World) -> None:
    """The client works without an event loop of one's own."""

    def work() -> list[str]:
        with SyncClient.connect(environ=world.environ, patience=PATIENCE_S) as pool:
            cluster = pool.submit(SLEEP).cluster
            pool.hold(select(cluster))
            pool.release(select(f"{cluster}.0"))
            seen = [type(event.event).__name__ for event in pool.events(job_id("1.0"))]
            pool.remove(select(cluster))
            assert 3 == pool.wait(select(cluster)).done
            assert 3 == len([event for event in pool.follow(JobId(1, 1)) if event.stream == "job/1.1"]) + 1
            assert 3 == len(pool.history(select(cluster)))
            assert [] == pool.jobs()
            assert ["ada"] == [usage.owner for usage in pool.usage()]
            assert [Progress] == [type(progress) for progress in pool.watch(select(cluster))]
            return seen

    assert ["ClusterSubmitted", "JobHeld", "JobReleased"] == await asyncio.to_thread(work)


async def test_a_bus_that_is_slow_to_greet_is_waited_for(world: World) -> None:
    """Patience is for answers: a bus that takes connections is there."""
    known, patience = PoolFile.load(world.home), 0.3
    address = urlsplit(known.nats_url)
    proxy = Proxy((str(address.hostname), address.port or 0))
    await proxy.set(BLACKHOLE)
    msgspec.structs.replace(known, nats_url=f"nats://127.0.0.1:{await proxy.listen()}").save(world.home)

    async def connected() -> str:
        async with Client.connect(environ=world.environ, patience=patience) as client:
            return client.pool.pool

    try:
        connecting = asyncio.create_task(connected())
        await asyncio.sleep(2 * patience)
        await proxy.set(CLEAR)
        assert "test" == await connecting
    finally:
        await proxy.close()


async def test_no_bus(tmp_path: Path) -> None:
    """A pool file that leads nowhere is told in a sentence, in the time that was given."""
    environ = {"KETTLE_HOME": str(tmp_path), "KETTLE_NATS_URL": "nats://127.0.0.1:9"}
    with pytest.raises(
        PoolUnreachableError, match=r"the pool's bus at nats://127\.0\.0\.1:9 cannot be reached"
    ):
        async with Client.connect(environ=environ, patience=0.5):
            pass
