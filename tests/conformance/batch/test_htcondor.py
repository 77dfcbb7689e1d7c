"""
Jobs of another pool, by the commands that it shares with HTCondor.

What HTCondor's own commands print for the same jobs is in the same form, and is read in `test_answers.py`.
"""

import os
import socket
import tempfile
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Sequence
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
from kettle_services.condor import launchers
from kettle_wire.batch import BatchRequest, EndCause

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


@pytest.fixture
def world(pool: ThrowawayPool, tmp_path: Path, nobody: int) -> World:
    place = launchers.install(tmp_path / "condor")
    (sandboxes := tmp_path / "sandboxes").mkdir()
    environment = {**pool.environ, "KETTLE_HOME": str(pool.home), "PATH": f"{place}:/usr/bin:/bin"}
    nowhere = {**environment, "_condor_TOOL_PATIENCE": "2", "KETTLE_HOME": str(tmp_path / "nowhere")}
    (tmp_path / "nowhere").mkdir()
    there = PoolFile.load(pool.home)
    away_from = msgspec.structs.replace(there, nats_url=f"nats://127.0.0.1:{nobody}", lock="")
    (tmp_path / "nowhere" / FILE).write_bytes(msgspec.json.encode(away_from))
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


class TestPool(BatchSuite):
    """The suite, and what is HTCondor's own."""

    async def test_a_signal_is_no_exit_code(self, world: World) -> None:
        """A job that a signal ended has that, and no exit code."""
        job, _ = await world.submitted("kill -9 $$")
        end = await world.ended(job)
        assert (EndCause.EXITED, None, 9) == (end.cause, end.exit_code, end.signal)

    async def test_a_job_that_runs_too_long_is_ended_there(self, world: World) -> None:
        """It is told apart from one that somebody removed."""
        job, _ = await world.submitted("while :; do sleep 1; done", BatchRequest(memory=50, wall=1))
        assert EndCause.TIME is (await world.ended(job)).cause
