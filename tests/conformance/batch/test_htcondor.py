"""
Jobs of another pool, by the commands that it shares with HTCondor, and by its own client.

What HTCondor's own commands print for the same jobs is in the same form, and is read in `test_answers.py`.
"""

import os
import socket
import tempfile
from collections.abc import AsyncGenerator, AsyncIterator, Collection, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import msgspec
import pytest
import pytest_asyncio
from tests.conformance.batch.suite import BatchSuite, Counted, Losing, World

from kettle.client.connections.pool_file import FILE, PoolFile
from kettle.commands.local import LocalCommands
from kettle.commands.port import Commands, Ran
from kettle.testing.throwaway_pool import ThrowawayPool, throwaway_pool
from kettle_services.ce.batch.asking import Asking
from kettle_services.ce.batch.htcondor import Htcondor
from kettle_services.ce.batch.other_pool import OtherPool
from kettle_services.ce.batch.port import InDoubtError, Job, Submission
from kettle_services.ce.domain.batch.listed import ListedJob
from kettle_services.condor import launchers
from kettle_wire.batch import BatchId, BatchRequest, EndCause, Intent

LONG: Final = "KETTLE_TEST_LONG"
pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.skipif(LONG not in os.environ, reason=f"it takes minutes: set {LONG}"),
]


class Between(Losing):
    """Commands that reach the pool, or while it is away another place, where nobody listens."""

    is_away = False

    def __init__(self, commands: Commands, nobody: Commands) -> None:
        super().__init__(commands)
        self._nobody = nobody

    async def run(
        self, words: Sequence[str], standard_input: str = "", *, within: float, account: str = ""
    ) -> Ran:
        """There, or nowhere."""
        if self.is_away:
            return await self._nobody.run(words, standard_input, within=within, account=account)
        return await super().run(words, standard_input, within=within, account=account)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def pool(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[ThrowawayPool]:
    own = {"startd": {"job_account": "own"}}
    with tempfile.TemporaryDirectory(prefix="kettle-") as directory:
        async with throwaway_pool(Path(directory), cpus=4, settings=own) as running:
            yield running


@pytest.fixture
def nobody() -> Iterator[int]:
    """A port at which nobody listens, which is kept from others."""
    with socket.socket() as kept:
        kept.bind(("127.0.0.1", 0))
        yield kept.getsockname()[1]


class Watched(OtherPool):
    """
    Questions are counted; while it is away it is looked for where nobody listens; answers to submissions are lost while that is wanted.
    """

    def __init__(self, there: Mapping[str, str], nobody: Mapping[str, str], *, patience: float) -> None:
        hooks = Asking(LocalCommands(there), patience=patience)
        super().__init__(there, hooks, patience=patience)
        self.names: Final[list[str]] = []
        self.nowhere: Final = OtherPool(nobody, hooks, patience=2.0)
        self.is_away = self.lost = False

    async def submit(self, submission: Submission) -> BatchId:
        """It is submitted to the end."""
        if self.is_away:
            return await self.nowhere.submit(submission)
        number = await super().submit(submission)
        if self.lost:
            raise InDoubtError("the answer is lost")
        return number

    async def poll(self, jobs: Collection[Job]) -> Mapping[BatchId, ListedJob]:
        """As the port says."""
        self.names.append("poll")
        return await (self.nowhere.poll(jobs) if self.is_away else super().poll(jobs))

    async def find(self, intents: Collection[Intent], owners: Collection[str]) -> Mapping[Intent, BatchId]:
        """As the port says."""
        return await (self.nowhere.find(intents, owners) if self.is_away else super().find(intents, owners))

    async def cancel(self, job: Job) -> bool:
        """As the port says."""
        return await (self.nowhere.cancel(job) if self.is_away else super().cancel(job))


def elsewhere(pool: ThrowawayPool, place: Path, port: int) -> Path:
    """A home of a client that looks for the pool where nobody listens."""
    (home := place / "nowhere").mkdir()
    there = msgspec.structs.replace(PoolFile.load(pool.home), nats_url=f"nats://127.0.0.1:{port}", lock="")
    (home / FILE).write_bytes(msgspec.json.encode(there))
    return home


@pytest.fixture
def world(pool: ThrowawayPool, tmp_path: Path, nobody: int) -> World:
    place = launchers.install(tmp_path / "condor")
    (sandboxes := tmp_path / "sandboxes").mkdir()
    environment = {**pool.environ, "KETTLE_HOME": str(pool.home), "PATH": f"{place}:/usr/bin:/bin"}
    nowhere = {
        **environment, "_condor_TOOL_PATIENCE": "2", "KETTLE_HOME": str(elsewhere(pool, tmp_path, nobody))
    }  # fmt: skip
    commands = Counted(LocalCommands(environment))
    hasty = Between(LocalCommands(environment), LocalCommands(nowhere))

    @asynccontextmanager
    async def away() -> AsyncGenerator[None]:
        hasty.is_away = True
        yield
        hasty.is_away = False

    @asynccontextmanager
    async def silent() -> AsyncGenerator[None]:
        hasty.lost = True
        yield
        hasty.lost = False

    return World(
        system=Htcondor(Asking(commands, patience=60.0)),
        hasty=Htcondor(Asking(hasty, patience=30.0)),
        commands=commands,
        place=sandboxes,
        owner="",
        bad=BatchRequest(nodes=2),
        away=away,
        silent=silent,
        large=BatchRequest(cpus=4, memory=50),
    )


class PoolSuite(BatchSuite):
    """The suite, and what all pools have."""

    async def test_a_signal_is_no_exit_code(self, world: World) -> None:
        """A job that a signal ended has that, and no exit code."""
        job, _ = await world.submitted("kill -9 $$")
        end = await world.ended(job)
        assert (EndCause.EXITED, None, 9) == (end.cause, end.exit_code, end.signal)

    async def test_a_job_that_runs_too_long_is_ended_there(self, world: World) -> None:
        """It is told apart from one that somebody removed."""
        job, _ = await world.submitted("while :; do sleep 1; done", BatchRequest(memory=50, wall=1))
        assert EndCause.TIME is (await world.ended(job)).cause


class TestCommands(PoolSuite):
    """By HTCondor's commands."""


class TestClient(PoolSuite):
    """By its own client."""

    @pytest_asyncio.fixture(loop_scope="module")
    async def world(self, pool: ThrowawayPool, tmp_path: Path, nobody: int) -> AsyncIterator[World]:
        """With a connection that lasts."""
        (sandboxes := tmp_path / "sandboxes").mkdir()
        there = {**pool.environ, "KETTLE_HOME": str(pool.home)}
        nowhere = {**pool.environ, "KETTLE_HOME": str(elsewhere(pool, tmp_path, nobody))}
        system, hasty = Watched(there, nowhere, patience=60.0), Watched(there, nowhere, patience=30.0)

        @asynccontextmanager
        async def away() -> AsyncGenerator[None]:
            hasty.is_away = True
            yield
            hasty.is_away = False

        @asynccontextmanager
        async def silent() -> AsyncGenerator[None]:
            hasty.lost = True
            yield
            hasty.lost = False

        yield World(
            system=system,
            hasty=hasty,
            commands=system,
            place=sandboxes,
            owner="",
            bad=BatchRequest(nodes=2),
            away=away,
            silent=silent,
            large=BatchRequest(cpus=4, memory=50),
        )
        for each in (system, hasty, hasty.nowhere):
            await each.close()

    async def test_a_submission_that_is_said_again_is_the_same(self, world: World) -> None:
        """Its intent is its id, so that a doubt can make no second job."""
        submission = world.submission("while :; do sleep 1; done")
        first = await world.system.submit(submission)
        assert first == await world.hasty.submit(submission)
        job = Job(first, submission.intent, "")
        await world.system.cancel(job)
        await world.ended(job)
