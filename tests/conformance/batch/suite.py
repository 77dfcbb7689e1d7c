"""What every batch system's adapter has to do.  A module for each subclasses it with a `world`."""

import asyncio
import base64
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

import pytest

from kettle.commands.port import Commands, EndNotSeenError, Ran
from kettle.testing.patience import PATIENCE_S
from kettle_services.ce.batch.port import (
    BatchSystem,
    InDoubtError,
    Job,
    NotTakenError,
    Submission,
    UnavailableError,
)
from kettle_services.ce.domain.batch.listed import ListedJob
from kettle_wire.batch import BatchEnd, BatchRequest, BatchState, EndCause

_LOOK_S: Final = 0.4
UNENDED: Final = frozenset({BatchState.QUEUED, BatchState.HELD, BatchState.RUNNING, BatchState.SUSPENDED})


class Named(Protocol):
    """What was asked, one name for each question."""

    @property
    def names(self) -> list[str]:
        """In this order."""
        ...


class Counted:
    """Commands that are counted by their names."""

    def __init__(self, commands: Commands) -> None:
        self._commands: Final = commands
        self.names: Final[list[str]] = []

    async def run(
        self, words: Sequence[str], standard_input: str = "", *, within: float, account: str = ""
    ) -> Ran:
        """As the others do."""
        self.names.append(next(word for word in words if word != "env" and "=" not in word))
        return await self._commands.run(words, standard_input, within=within, account=account)

    @property
    def lingering(self) -> float:
        """As the others'."""
        return self._commands.lingering

    async def close(self) -> None:
        """Give them up."""
        await self._commands.close()


class Losing(Counted):
    """Commands that are carried out, and whose answers are lost while that is wanted."""

    lost = False

    async def run(
        self, words: Sequence[str], standard_input: str = "", *, within: float, account: str = ""
    ) -> Ran:
        """As the others do, to the end."""
        ran = await super().run(words, standard_input, within=within, account=account)
        if self.lost:
            raise EndNotSeenError("the answer is lost")
        return ran


@dataclass
class World:
    """A batch system in front of its adapter, and what it can be made to do."""

    system: BatchSystem
    hasty: BatchSystem
    """With little patience, for questions that can have no answer."""
    commands: Named
    """Of `system`."""
    place: Path
    """Where sandboxes are made."""
    owner: str
    """An ordinary account; empty: all jobs are those of one login."""
    bad: BatchRequest
    """What it refuses."""
    away: Callable[[], AbstractAsyncContextManager[None]]
    """It does not answer while this lasts."""
    silent: Callable[[], AbstractAsyncContextManager[None]]
    """It does what it is asked to do, but no answer comes back while this lasts."""
    large: BatchRequest
    """Of two jobs that ask for this the second one waits."""
    away_is_doubt: bool = False
    """What cannot reach it does not know whether it did."""

    def submission(self, script: str, request: BatchRequest | None = None) -> Submission:
        """A job with a sandbox of its own."""
        intent = "k" + base64.b32encode(os.urandom(9)).decode().lower()[:14]
        directory = self.place / intent
        (directory / ".kettle").mkdir(parents=True)
        if self.owner:
            for each in (directory, directory / ".kettle"):
                os.chown(each, *_ids(self.owner))
        return Submission(
            intent=intent,
            owner=self.owner,
            directory=str(directory),
            script=f"cd {directory} || exit 9\n{script}",
            request=request or BatchRequest(memory=50),
        )

    async def submitted(self, script: str, request: BatchRequest | None = None) -> tuple[Job, Path]:
        """One that was taken, and its sandbox."""
        submission = self.submission(script, request)
        id_ = await self.system.submit(submission)
        return Job(id_, submission.intent, self.owner), Path(submission.directory)

    async def seen(self, job: Job, states: Collection[BatchState]) -> ListedJob:
        """Wait until a job is in one of these states."""
        last: ListedJob | None = None
        async with asyncio.timeout(PATIENCE_S):
            while True:
                last = (await self.system.poll([job])).get(job.id)
                if last is not None and last.state in states:
                    return last
                await asyncio.sleep(_LOOK_S)
        raise AssertionError(f"{job} is {last}")

    async def ended(self, job: Job) -> BatchEnd:
        """Wait until a job has ended, as it is said by the answers or by the books."""
        async with asyncio.timeout(PATIENCE_S):
            while True:
                seen = (await self.system.poll([job])).get(job.id)
                if seen is not None and seen.state is BatchState.ENDED and seen.end is not None:
                    return seen.end
                if seen is None and (end := (await self.system.accounting([job])).get(job.id)) is not None:
                    return end
                await asyncio.sleep(_LOOK_S)


def _ids(owner: str) -> tuple[int, int]:
    import pwd

    about = pwd.getpwnam(owner)
    return about.pw_uid, about.pw_gid


async def until(is_so: Callable[[], bool], otherwise: str) -> None:
    """Wait for what a job does."""
    try:
        async with asyncio.timeout(PATIENCE_S):
            while not is_so():
                await asyncio.sleep(_LOOK_S)
    except TimeoutError:
        raise AssertionError(otherwise) from None


class BatchSuite:
    """The claims.  Each leaves no job behind."""

    async def test_a_job_runs_as_its_owner_and_ends_with_its_code(self, world: World) -> None:
        """
        A job runs in its sandbox with its owner's account, and what ended it is known with its exit code.
        """
        job, sandbox = await world.submitted("id -un >who; pwd >where; exit 3")
        end = await world.ended(job)
        assert (EndCause.EXITED, 3, None) == (end.cause, end.exit_code, end.signal)
        assert (world.owner or _own()) == (sandbox / "who").read_text().strip()
        assert str(sandbox) == (sandbox / "where").read_text().strip()

    async def test_many_jobs_are_one_question(self, world: World) -> None:
        """However many jobs there are, they are asked for in one command, and each is told apart."""
        jobs = [(await world.submitted("while :; do sleep 1; done"))[0] for _ in range(3)]
        world.commands.names.clear()
        seen = await world.system.poll(jobs)
        assert 1 == len(world.commands.names)
        assert {each.id for each in jobs} == set(seen)
        assert {each.state for each in seen.values()} <= UNENDED
        for each in jobs:
            await world.system.cancel(each)
        for each in jobs:
            await world.ended(each)

    async def test_a_job_is_found_by_its_intent(self, world: World) -> None:
        """What was submitted is found by its intent alone, and what was not is not."""
        job, _ = await world.submitted("while :; do sleep 1; done")
        other = world.submission("exit 0").intent
        owners = [world.owner] if world.owner else []
        assert {job.intent: job.id} == await world.system.find([job.intent, other], owners)
        await world.system.cancel(job)
        await world.ended(job)

    async def test_a_refusal_leaves_nothing(self, world: World) -> None:
        """A job that is refused is not there, and its refusal has words and does not pass."""
        submission = world.submission("exit 0", world.bad)
        with pytest.raises(NotTakenError) as refused:
            await world.system.submit(submission)
        assert not refused.value.passes
        assert str(refused.value)
        assert {} == await world.system.find([submission.intent], [world.owner] if world.owner else [])

    async def test_a_removed_job_is_removed(self, world: World) -> None:
        """
        A job that was cancelled has not run to its end; to cancel it again, or one that never was, is no error.
        """
        job, sandbox = await world.submitted("touch began; while :; do sleep 1; done")
        await until((sandbox / "began").exists, "it does not start")
        await world.system.cancel(job)
        end = await world.ended(job)
        assert EndCause.REMOVED is end.cause
        await world.system.cancel(job)
        await world.system.cancel(Job("999999", job.intent, world.owner))

    async def test_a_job_with_another_name_is_somebody_elses(self, world: World) -> None:
        """A number that is used again is told by the intent: that job is not ours to see or to remove."""
        job, _ = await world.submitted("while :; do sleep 1; done")
        stranger = Job(job.id, "kaaaaaaaaaaaaaa", world.owner)
        assert {} == await world.system.poll([stranger])
        await world.system.cancel(stranger)
        assert job.id in await world.system.poll([job])
        await world.system.cancel(job)
        await world.ended(job)

    async def test_a_waiting_job_is_held_and_released(self, world: World) -> None:
        """A job that waits is held until it is released, and then runs."""
        first, _ = await world.submitted("while :; do sleep 1; done", world.large)
        second, sandbox = await world.submitted("touch began", world.large)
        await world.seen(first, {BatchState.RUNNING})
        await world.seen(second, {BatchState.QUEUED})
        await world.system.hold(second, running=False)
        await world.seen(second, {BatchState.HELD})
        await world.system.cancel(first)
        await world.ended(first)
        assert not (sandbox / "began").exists()
        await world.system.release(second, running=False)
        await world.ended(second)
        assert (sandbox / "began").exists()

    async def test_a_running_job_is_suspended_and_continued(self, world: World) -> None:
        """A job that runs is stopped, keeps its place, and goes on."""
        job, sandbox = await world.submitted("touch began; until [ -e go ]; do sleep 0.2; done; exit 4")
        await until((sandbox / "began").exists, "it does not start")
        await world.seen(job, {BatchState.RUNNING})
        await world.system.hold(job, running=True)
        await world.seen(job, {BatchState.SUSPENDED})
        await world.system.release(job, running=True)
        (sandbox / "go").touch()
        assert 4 == (await world.ended(job)).exit_code

    async def test_one_that_does_not_answer_says_nothing_of_jobs(self, world: World) -> None:
        """While it is away nothing is known of any job, and what was not sent is not there."""
        job, _ = await world.submitted("while :; do sleep 1; done")
        submission = world.submission("exit 0")
        owners = [world.owner] if world.owner else []
        async with world.away():
            for ask in (
                world.hasty.poll([job]),
                world.hasty.find([job.intent], owners),
                world.hasty.cancel(job),
            ):
                with pytest.raises(UnavailableError):
                    await ask
            if world.away_is_doubt:
                with pytest.raises(InDoubtError):
                    await world.hasty.submit(submission)
            else:
                with pytest.raises(NotTakenError) as refused:
                    await world.hasty.submit(submission)
                assert refused.value.passes
        assert {job.intent: job.id} == await world.system.find([job.intent, submission.intent], owners)
        await world.system.cancel(job)
        await world.ended(job)

    async def test_a_lost_answer_is_a_doubt_that_looking_ends(self, world: World) -> None:
        """
        When the answer to a submission is lost nobody claims to know; the job is found by its intent, once.
        """
        submission = world.submission("while :; do sleep 1; done")
        owners = [world.owner] if world.owner else []
        async with world.silent():
            with pytest.raises(InDoubtError):
                await world.hasty.submit(submission)
        found: Mapping[str, str] = {}
        async with asyncio.timeout(PATIENCE_S):
            while not found:
                found = await world.system.find([submission.intent], owners)
                await asyncio.sleep(_LOOK_S)
        job = Job(found[submission.intent], submission.intent, world.owner)
        await world.system.cancel(job)
        await world.ended(job)


def _own() -> str:
    import pwd

    return pwd.getpwuid(os.geteuid()).pw_name
