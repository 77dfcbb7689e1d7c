"""Jobs of this machine itself."""

import os
import signal
import time
from collections.abc import AsyncGenerator, Collection, Generator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import pytest
from tests.conformance.batch.suite import UNENDED, BatchSuite, World, until

from kettle.accounts.lookup import Accounts
from kettle.pool.processes import end_all, of_pool
from kettle.testing.patience import PATIENCE_S
from kettle.testing.processes import KnownProcess
from kettle_services.ce.batch.local import LocalJobs
from kettle_services.ce.batch.local_queue import LocalQueue
from kettle_services.ce.batch.port import InDoubtError, Job, Submission
from kettle_services.ce.domain.batch.listed import ListedJob
from kettle_services.ce.domain.batch.local import Room
from kettle_wire.batch import BatchId, BatchRequest, BatchState, EndCause

ROOM: Final = Room(cpus=4, memory=4000)


class Watched(LocalJobs):
    """Questions about jobs are counted, and the answer to a submission is lost while that is wanted."""

    def __init__(self, queue: LocalQueue, accounts: Accounts) -> None:
        super().__init__(queue, ROOM, accounts)
        self.names: Final[list[str]] = []
        self.lost = False

    async def submit(self, submission: Submission) -> BatchId:
        """It is submitted to the end."""
        number = await super().submit(submission)
        if self.lost:
            raise InDoubtError("the answer is lost")
        return number

    async def poll(self, jobs: Collection[Job]) -> Mapping[BatchId, ListedJob]:
        """As the port says."""
        self.names.append("poll")
        return await super().poll(jobs)


@pytest.fixture
def place(tmp_path: Path) -> Generator[Path]:
    """Of the queue; what was started from it ends with the test."""
    place = tmp_path / "queue"
    yield place
    for path in [*place.glob("jobs/*"), *place.glob("ended/*")]:
        intent = path.name.partition(".")[2]
        assert not end_all(lambda name=intent: of_pool(name, tmp_path / "sandboxes"), deadline_s=PATIENCE_S)  # type: ignore[misc]


@pytest.fixture
def queue(place: Path) -> LocalQueue:
    queue = LocalQueue(place, ROOM, {})
    queue.make()
    return queue


@pytest.fixture
def world(queue: LocalQueue, place: Path, person: str, tmp_path: Path) -> World:
    sandboxes = tmp_path / "sandboxes"
    sandboxes.mkdir()
    for each in (sandboxes, *sandboxes.parents):
        if not each.stat().st_mode & 0o001:  # jobs of another account have to get there
            each.chmod(0o755)
    system, hasty = Watched(queue, Accounts()), Watched(queue, Accounts())

    @asynccontextmanager
    async def away() -> AsyncGenerator[None]:
        """Its disk is not there."""
        elsewhere = place.with_name("elsewhere")
        place.rename(elsewhere)
        yield
        elsewhere.rename(place)

    @asynccontextmanager
    async def silent() -> AsyncGenerator[None]:
        hasty.lost = True
        yield
        hasty.lost = False

    return World(
        system=system,
        hasty=hasty,
        commands=system,
        place=sandboxes,
        owner=person,
        bad=BatchRequest(nodes=2),
        away=away,
        silent=silent,
        large=BatchRequest(cpus=4, memory=50),
    )


class TestLocal(BatchSuite):
    """The suite, and what this machine does itself."""

    async def test_a_signal_is_no_exit_code(self, world: World) -> None:
        """A job that a signal ended has that, and no exit code."""
        job, _ = await world.submitted("kill -9 $$")
        end = await world.ended(job)
        assert (EndCause.EXITED, None, 9) == (end.cause, end.exit_code, end.signal)

    async def test_a_job_that_is_over_its_limits_is_ended(self, world: World) -> None:
        """More time, or more memory, than it had asked for."""
        long, _ = await world.submitted("while :; do sleep 1; done", BatchRequest(memory=50, wall=1))
        hungry = "exec python3 -c 'import time; x = bytearray(120 << 20); time.sleep(3600)'"
        large, _ = await world.submitted(hungry, BatchRequest(memory=50))
        assert EndCause.TIME is (await world.ended(long)).cause
        end = await world.ended(large)
        assert EndCause.MEMORY is end.cause
        assert end.memory_kib > 50 << 10

    async def test_nothing_of_a_job_stays(self, world: World) -> None:
        """What has left its session and lost its parents ends with it."""
        job, sandbox = await world.submitted(
            "setsid sh -c 'echo $$ >pid; exec sleep 3600' & sleep 0.5; exit 2"
        )
        assert 2 == (await world.ended(job)).exit_code
        pid = int((sandbox / "pid").read_text())
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)

    async def test_who_looks_after_it_is_killed(self, world: World, place: Path) -> None:
        """The machine has failed the job, and nothing of it runs on: it may run again."""
        job, sandbox = await world.submitted("touch began; while :; do sleep 1; done")
        await until((sandbox / "began").exists, "it does not start")
        runner = int((place / "jobs" / f"{job.id}.{job.intent}" / "lock").read_text().split()[0])
        with KnownProcess(runner) as known:
            known.send(signal.SIGKILL)
        assert EndCause.NODE is (await world.ended(job)).cause
        assert [] == of_pool(job.intent, sandbox)

    async def test_another_process_goes_on(self, world: World, place: Path) -> None:
        """Jobs go on while nobody asks for them, and those that wait begin when somebody does."""
        first, sandbox = await world.submitted(
            "touch began; until [ -e go ]; do sleep 0.1; done", world.large
        )
        second, _ = await world.submitted("exit 6", world.large)
        await until((sandbox / "began").exists, "it does not start")
        world.system = Watched(LocalQueue(place, ROOM, {}), Accounts())
        seen = await world.system.poll([first, second])
        assert [BatchState.RUNNING, BatchState.QUEUED] == [seen[each.id].state for each in (first, second)]
        (sandbox / "go").touch()
        assert 0 == (await world.ended(first)).exit_code
        assert 6 == (await world.ended(second)).exit_code

    async def test_a_waiting_job_that_is_removed_never_began(self, world: World) -> None:
        """It is over at once."""
        first, _ = await world.submitted("while :; do sleep 1; done", world.large)
        second, sandbox = await world.submitted("touch began", world.large)
        await world.system.cancel(second)
        assert EndCause.REMOVED is (await world.ended(second)).cause
        assert not (sandbox / "began").exists()
        assert (await world.system.poll([first]))[first.id].state in UNENDED
        await world.system.cancel(first)
        await world.ended(first)


def test_numbers_of_old_jobs_are_forgotten(queue: LocalQueue, place: Path) -> None:
    """What ended long ago is not kept."""
    old = place / "ended" / "7.kaaaaaaaaaaaaaa"
    old.mkdir()
    os.utime(old, (time.time() - 8 * 86_400, time.time() - 8 * 86_400))
    assert {"kaaaaaaaaaaaaaa": 7} == queue.named(["kaaaaaaaaaaaaaa"])
    queue.forget()
    assert {} == queue.named(["kaaaaaaaaaaaaaa"])


async def test_a_stranger_to_the_queue_changes_nothing(queue: LocalQueue) -> None:
    """Numbers that are none, and jobs that never were."""
    jobs = Watched(queue, Accounts())
    await jobs.cancel(Job("no number", "kaaaaaaaaaaaaaa"))
    await jobs.hold(Job("12", "kaaaaaaaaaaaaaa"), running=True)
    assert {} == await jobs.poll([Job("12", "kaaaaaaaaaaaaaa")])
