"""Draining and suspension as a startd carries them out, with real starters and jobs."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest

from kettle.bus.memory import MemoryBus
from kettle.bus.ports import RefusedError
from kettle.testing.submit_side import POOL, SubmitSide, script
from kettle.testing.worker import WorkerPool
from kettle_services.startd.settings import StartdSettings
from kettle_wire.commands.startd import CANCEL_DRAIN, DRAIN, Activation, CancelDrain, Drain
from kettle_wire.identity import user
from kettle_wire.subjects import Subjects
from kettle_wire.worker_reports import Body, Continued, FinalReport, Report, Started, Suspended

from .test_claims import until_slot


@asynccontextmanager
async def asking(pool: WorkerPool, name: str) -> AsyncGenerator[MemoryBus]:
    bus = MemoryBus(pool.server, subjects=Subjects(POOL), identity=user(name))
    try:
        yield bus
    finally:
        bus.close()


async def told(submitter: SubmitSide, activation: Activation, kind: type[Body]) -> Report:
    return await submitter.hear(activation, lambda report: isinstance(report.body, kind))


@pytest.fixture
def settings(settings: StartdSettings) -> StartdSettings:
    return msgspec.structs.replace(
        settings,
        administrators=("ann",),
        polling_interval=0.1,
        activity_delay=0.01,
        want_suspend=True,
        suspend="TARGET.Pause =?= true && TotalJobSuspendTime =?= undefined",
        continue_="time() - EnteredCurrentActivity >= 2",
        max_job_retirement_time=600,
    )


async def test_only_administrators_drain(pool: WorkerPool, submitter: SubmitSide) -> None:
    """Whom the settings name, and the account that the startd runs as; no service, nobody else."""
    drain = Drain(id="r1")
    for stranger in ("mallory", ""):
        async with asking(pool, stranger) as bus:
            with pytest.raises(RefusedError, match="administrator"):
                await bus.call(DRAIN, submitter.startd, drain)
            with pytest.raises(RefusedError, match="administrator"):
                await bus.call(CANCEL_DRAIN, submitter.startd, CancelDrain())
    with pytest.raises(RefusedError, match="administrator"):
        await submitter.schedd.call(DRAIN, submitter.startd, drain)
    async with asking(pool, "ann") as bus:
        await bus.call(DRAIN, submitter.startd, drain)
        await bus.call(DRAIN, submitter.startd, drain)
        await until_slot(submitter, "slot1@worker", State="Drained", Activity="Idle", Requirements=False)
        await bus.call(CANCEL_DRAIN, submitter.startd, CancelDrain(request="r1"))
        await until_slot(submitter, "slot1@worker", State="Unclaimed", Draining=False)


async def test_a_mistake_in_an_expression_is_told(pool: WorkerPool, submitter: SubmitSide) -> None:
    """Which one, and where in it."""
    async with asking(pool, "ann") as bus:
        for drain in (Drain(id="r1", check="Cpus >"), Drain(id="r1", start="Cpus >")):
            with pytest.raises(RefusedError, match="column 7"):
                await bus.call(DRAIN, submitter.startd, drain)
        with pytest.raises(RefusedError, match="slot1@worker does not meet"):
            await bus.call(DRAIN, submitter.startd, Drain(id="r1", check="Cpus > 100"))
        with pytest.raises(RefusedError, match="not being drained"):
            await bus.call(CANCEL_DRAIN, submitter.startd, CancelDrain())


async def test_a_machine_goes_on_draining_after_a_restart(pool: WorkerPool) -> None:
    """And the job that runs is not disturbed."""
    submitter = pool.submitter
    async with pool.startd():
        activation = await submitter.start(script("while [ ! -e go ]; do sleep 0.05; done"))
        await told(submitter, activation, Started)
        async with asking(pool, "ann") as bus:
            await bus.call(DRAIN, submitter.startd, Drain(id="r1", reason="new disks"))
        await until_slot(submitter, "slot1_1@worker", State="Claimed", Activity="Retiring")
    async with pool.startd() as startd:
        await until_slot(
            submitter, "slot1@worker", State="Drained", Activity="Retiring", DrainReason="new disks"
        )
        (sandbox,) = pool.execute.glob("dir_*")
        (sandbox / "go").touch()
        report = await told(submitter, activation, FinalReport)
        assert isinstance(report.body, FinalReport)
        assert report.body.result.done
        assert report.closing
        await until_slot(submitter, "slot1@worker", State="Drained", Activity="Idle")
        await startd.drain()


async def test_a_suspended_job_goes_on_after_a_restart(pool: WorkerPool) -> None:
    """The next startd knows that it is suspended, and continues it when the policy says so."""
    submitter = pool.submitter
    async with pool.startd():
        text = "while [ ! -e go ]; do sleep 0.05; done; exit 5"
        activation = await submitter.start(script(text, Pause=True))
        await told(submitter, activation, Suspended)
        (sandbox,) = pool.execute.glob("dir_*")
        (sandbox / "go").touch()
    async with pool.startd() as startd:
        await told(submitter, activation, Continued)
        report = await told(submitter, activation, FinalReport)
        assert isinstance(report.body, FinalReport)
        assert report.body.result.exit is not None
        assert (5, False) == (report.body.result.exit.code, report.closing)
        await startd.drain()


async def test_a_fast_drain_kills(pool: WorkerPool, submitter: SubmitSide, tmp_path: Path) -> None:
    """A fast drain also kills a suspended job."""
    activation = await submitter.start(script("trap '' TERM; while :; do sleep 0.05; done", Pause=True))
    await told(submitter, activation, Suspended)

    async with asking(pool, "ann") as bus:
        await bus.call(DRAIN, submitter.startd, Drain(id="r1", speed="fast"))

    report = await told(submitter, activation, FinalReport)
    assert isinstance(report.body, FinalReport)
    assert report.body.result.exit is None
    assert report.body.result.ending is not None
    assert (1014, True) == (report.body.result.ending.code, report.closing)
