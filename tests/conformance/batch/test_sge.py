"""Jobs of a real Grid Engine."""

from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager

import pytest
from tests.conformance.batch.suite import BatchSuite, Counted, Losing, World

from kettle.testing.servers import grid_engine as server
from kettle_services.ce.batch.asking import Asking
from kettle_services.ce.batch.sge import GridEngine
from kettle_wire.batch import BatchRequest, EndCause

_HASTY_S = 4.0


@pytest.fixture(scope="module")
def cell() -> Generator[server.GridEngine]:
    if why := server.no_grid_engine():
        pytest.skip(why)
    with server.grid_engine() as made:
        yield made


@pytest.fixture
def world(cell: server.GridEngine, person: str) -> World:
    place = cell.place / "sandboxes"
    place.mkdir(mode=0o755, exist_ok=True)
    commands, hasty = Counted(cell.commands), Losing(cell.commands)

    @asynccontextmanager
    async def away() -> AsyncGenerator[None]:
        cell.order("stop")
        try:
            yield
        finally:
            cell.order("start")

    @asynccontextmanager
    async def silent() -> AsyncGenerator[None]:
        hasty.lost = True
        yield
        hasty.lost = False

    return World(
        system=GridEngine(Asking(commands, patience=60.0), accounting=True),
        hasty=GridEngine(Asking(hasty, patience=_HASTY_S), accounting=True),
        commands=commands,
        place=place,
        owner=person,
        bad=BatchRequest(queue="nowhere.q"),
        away=away,
        silent=silent,
        large=BatchRequest(cpus=8),
    )


class TestGridEngine(BatchSuite):
    """The suite, and what is Grid Engine's own."""

    async def test_a_job_that_takes_too_long_is_told_apart(self, world: World) -> None:
        """A job that reached its time limit was not removed by somebody."""
        job, _ = await world.submitted("while :; do sleep 1; done", BatchRequest(wall=2))
        assert EndCause.TIME is (await world.ended(job)).cause
