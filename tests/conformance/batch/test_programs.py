"""
Jobs of batch systems that cannot be had here: programs stand for OpenPBS, Torque, LSF and HTCondor, and answer as those do.
"""

import os
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import pytest
from tests.conformance.batch.suite import BatchSuite, Counted, Losing, World

from kettle.accounts.lookup import Accounts
from kettle.commands.local import LocalCommands
from kettle.testing.servers.fake_batch import FakeBatch
from kettle_services.ce.batch.asking import Asking
from kettle_services.ce.batch.opening import system_of
from kettle_services.ce.batch.settings import BatchSettings
from kettle_wire.batch import BatchKind, BatchRequest, EndCause

_NOWHERE = BatchRequest(queue="nowhere")
_REFUSED = {BatchKind.HTCONDOR: BatchRequest(nodes=2)}


LONG: Final = "KETTLE_TEST_LONG"
_MORE = pytest.mark.skipif(LONG not in os.environ, reason=f"it takes minutes: set {LONG}")
_SYSTEMS = [
    BatchKind.PBS,
    BatchKind.LSF,
    *(pytest.param(kind, marks=_MORE) for kind in (BatchKind.TORQUE, BatchKind.HTCONDOR)),
]


@pytest.fixture(params=_SYSTEMS)
def fake(request: pytest.FixtureRequest, tmp_path: Path) -> Generator[FakeBatch]:
    with FakeBatch(tmp_path / "programs", request.param) as programs:
        yield programs


@pytest.fixture
def world(fake: FakeBatch, tmp_path: Path) -> World:
    kind = BatchKind(fake.kind)
    (sandboxes := tmp_path / "sandboxes").mkdir()
    settings = BatchSettings(name="site", kind=kind, directory=str(sandboxes))
    commands = Counted(LocalCommands(fake.environment, Accounts()))
    hasty = Losing(LocalCommands(fake.environment, Accounts()))

    @asynccontextmanager
    async def away() -> AsyncGenerator[None]:
        fake.set_mode("down")
        yield
        fake.set_mode("")

    @asynccontextmanager
    async def silent() -> AsyncGenerator[None]:
        hasty.lost = True
        yield
        hasty.lost = False

    return World(
        system=system_of(settings, Asking(commands, patience=60.0)),
        hasty=system_of(settings, Asking(hasty, patience=60.0)),
        commands=commands,
        place=sandboxes,
        owner="",
        bad=_REFUSED.get(kind, _NOWHERE),
        away=away,
        silent=silent,
        large=BatchRequest(cpus=8),
        away_is_doubt=kind is BatchKind.LSF,
    )


class TestPrograms(BatchSuite):
    """The suite, and what all of them have."""

    async def test_a_signal_is_no_exit_code(self, world: World) -> None:
        """A job that a signal ended has that, and no exit code."""
        job, _ = await world.submitted("kill -9 $$")
        end = await world.ended(job)
        assert (EndCause.EXITED, None, 9) == (end.cause, end.exit_code, end.signal)
