"""What is killed, and what must happen then."""

import asyncio
import os
import sys
from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import msgspec
import pytest

from kettle.bus.nats import NatsBus
from kettle.embedded import EmbeddedNats
from kettle.execution.system.linux import children_of, parent_of
from kettle.runtime import make_lifeline
from kettle.runtime.lifeline import OF_JOBS
from kettle.testing.patience import PATIENCE_S
from kettle.testing.processes import KnownProcess, end_parent
from kettle.testing.servers.embedded import EVERYTHING, server_directory
from kettle.testing.submit_side import POOL, SubmitSide, output, script
from kettle.testing.worker import WorkerPool
from kettle_services.startd.settings import StartdSettings
from kettle_wire.commands.startd import Activation, ClaimKey
from kettle_wire.identity import daemon
from kettle_wire.subjects import Subjects
from kettle_wire.worker_reports import FinalReport, Report, Started

WAITS = "while [ ! -e go ]; do sleep 0.05; done; echo done"
"""A job that runs until the test says so, by a file in its sandbox."""


async def started(submitter: SubmitSide, activation: Activation) -> int:
    """The pid of a job that runs."""
    report = await submitter.hear(activation, lambda report: isinstance(report.body, Started))
    assert isinstance(report.body, Started)
    return report.body.pid


def dead(pid: int) -> bool:
    """Whether the process is gone or at least over."""
    return parent_of(pid) is None


async def test_a_killed_starter_is_cleaned_up_after(pool: WorkerPool) -> None:
    """
    Every process of its job is ended, the sandbox removed, and the attempt reported with code 1007; the claim stays.
    """
    async with pool.startd() as startd:
        submitter = pool.submitter
        activation = await submitter.start(script(f"(setsid env -i sleep {pool.nap} &); sleep {pool.nap}"))
        pid = await started(submitter, activation)
        await pool.until(lambda: len(pool.sleeping()) == 2)

        end_parent(pid)

        failed = await submitter.final(activation)
        assert failed.result.exit is None
        assert failed.result.ending is not None
        assert (False, 1007) == (failed.result.ending.holds, failed.result.ending.code)
        assert [] == pool.sleeping()
        assert [] == list(pool.execute.glob("dir_*"))
        assert (
            await submitter.final(await submitter.start(script("true"), claim=activation.key))
        ).result.done
        await startd.drain()


async def test_a_killed_zygote_is_replaced_and_its_starters_go_on(pool: WorkerPool) -> None:
    """The running job ends as if nothing had happened, and the next one starts."""
    async with pool.startd() as startd:
        submitter = pool.submitter
        activation = await submitter.start(script(WAITS))
        pid = await started(submitter, activation)
        (sandbox,) = pool.execute.glob("dir_*")
        with KnownProcess.parent_of(pid) as starter:
            end_parent(starter.pid)
        following = await submitter.start(script("echo next"))

        assert b"next\n" == output(await submitter.final(following))
        (sandbox / "go").touch()
        assert b"done\n" == output(await submitter.final(activation))
        await startd.drain()


async def test_a_new_startd_adopts_a_job_that_runs(pool: WorkerPool) -> None:
    """The job goes on without a startd, and its result arrives through the next one."""
    submitter = pool.submitter
    async with pool.startd():
        activation = await submitter.start(script(WAITS))
        pid = await started(submitter, activation)
    await asyncio.sleep(0.1)
    assert not dead(pid)

    async with pool.startd() as startd:
        (sandbox,) = pool.execute.glob("dir_*")
        (sandbox / "go").touch()
        exited = await submitter.final(activation)

        assert b"done\n" == output(exited)
        assert 1 == len({r.sequence for r in submitter.reports if isinstance(r.body, Started)})
        assert (
            await submitter.final(await submitter.start(script("true"), claim=activation.key))
        ).result.done
        await startd.drain()


@pytest.mark.parametrize("probe", [False, True])
async def test_a_shadow_that_takes_a_job_over_hears_that_it_runs(pool: WorkerPool, *, probe: bool) -> None:
    """
    The one before it may have died with that word, from a startd that has been replaced since; it has the same number again.
    """
    submitter = pool.submitter

    async def begun() -> Report:
        return await submitter.hear(activation, lambda report: isinstance(report.body, Started))

    async with pool.startd():
        activation = await submitter.start(script(WAITS))
        again = msgspec.structs.replace(activation, probe=probe)
        first = await begun()
        submitter.reports.clear()
        assert 0 == (await submitter.activate(again)).code
        assert first == await begun()
        submitter.reports.clear()

    async with pool.startd() as startd:
        assert first == await begun()
        submitter.reports.clear()
        stranger = msgspec.structs.replace(again, key=ClaimKey(activation.key.claim, "guessed"))
        assert 0 != (await submitter.activate(stranger)).code
        assert 0 == (await submitter.activate(again)).code
        assert first == await begun()
        (sandbox,) = pool.execute.glob("dir_*")
        (sandbox / "go").touch()
        assert b"done\n" == output(await submitter.final(activation))
        assert 1 == len([report for report in submitter.reports if isinstance(report.body, Started)])
        await startd.drain()


async def test_a_job_that_ends_without_a_startd_is_reported_by_the_next(pool: WorkerPool) -> None:
    """The final report waited on disk."""
    submitter = pool.submitter
    async with pool.startd():
        activation = await submitter.start(script("sleep 0.2; echo done"))
        pid = await started(submitter, activation)
    await pool.until(lambda: dead(pid))
    await pool.until(lambda: list(pool.reports.iterdir()))

    async with pool.startd() as startd:
        assert b"done\n" == output(await submitter.final(activation))
        await startd.drain()


async def test_a_starter_that_died_without_a_startd_is_cleaned_up_after(pool: WorkerPool) -> None:
    """The next startd ends what is left of the job and reports the attempt as lost."""
    submitter = pool.submitter
    async with pool.startd():
        activation = await submitter.start(script(f"sleep {pool.nap}"))
        starter = KnownProcess.parent_of(await started(submitter, activation))
    with starter:
        starter.send()

    async with pool.startd() as startd:
        failed = await submitter.final(activation)

        assert failed.result.exit is None

        assert failed.result.ending is not None
        assert 1007 == failed.result.ending.code
        assert [] == pool.sleeping()
        assert [] == list(pool.execute.glob("dir_*"))
        await startd.drain()


async def test_a_lease_ends_a_job_that_has_no_startd(pool: WorkerPool) -> None:
    """The starter counts on its own clock."""
    submitter = pool.submitter
    async with pool.startd():
        activation = await submitter.start(
            script(f"sleep {pool.nap}"), claim=await submitter.claim(lease=10.0)
        )
        pid = await started(submitter, activation)  # the first starter of a busy machine takes a second
    await pool.until(lambda: dead(pid))
    assert [] == pool.sleeping()

    async with pool.startd() as startd:
        failed = await submitter.final(activation)
        assert failed.result.exit is None
        assert failed.result.ending is not None
        assert 1008 == failed.result.ending.code
        await startd.drain()


class Process:
    """A startd as a process of its own, on a real bus, with a lifeline for itself and its jobs."""

    def __init__(self, settings: StartdSettings) -> None:
        self._settings = settings
        self.lifeline = make_lifeline()

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[asyncio.subprocess.Process]:
        environ = {"PATH": os.environ["PATH"], "PYTHONPATH": os.pathsep.join(sys.path)}
        of_jobs = {OF_JOBS: str(self.lifeline.read_fd)}
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "kettle_services.startd",
            env=environ | self._settings.environ("startd") | self.lifeline.environ() | of_jobs,
            pass_fds=(self.lifeline.read_fd,),
        )
        try:
            yield process
        finally:
            if process.returncode is None:
                process.kill()
            await process.wait()


@pytest.fixture
async def nats() -> AsyncGenerator[EmbeddedNats]:
    with server_directory() as path:
        async with EmbeddedNats(
            path / "nats", credentials=path / "credentials", permissions=EVERYTHING, name="test"
        ) as server:
            yield server


@pytest.fixture
async def remote(nats: EmbeddedNats) -> AsyncGenerator[SubmitSide]:
    """The submit side on a real bus."""

    def connect(role: str) -> AbstractAsyncContextManager[NatsBus]:
        return NatsBus.connect(
            nats.url,
            subjects=Subjects(POOL),
            identity=daemon(role),
            credentials=str(nats.credentials("test")),
            deadline=PATIENCE_S,
        )

    async with connect("schedd") as schedd, connect("shadow") as shadow:
        submitter = SubmitSide(schedd, shadow)
        await submitter.prepare()
        listening = asyncio.create_task(submitter.listen())
        yield submitter
        listening.cancel()


@pytest.fixture
def process(settings: StartdSettings, nats: EmbeddedNats) -> Process:
    return Process(
        msgspec.structs.replace(settings, nats_url=nats.url, nats_credentials=str(nats.credentials("test")))
    )


async def test_a_killed_startd_finds_its_jobs_again(
    process: Process, remote: SubmitSide, directory: Path
) -> None:
    """SIGKILL of the startd: the job runs on, the next startd adopts it, and its one result arrives."""
    async with process.running() as first:
        activation = await remote.start(script(WAITS))
        pid = await started(remote, activation)
        first.kill()
        await first.wait()
    assert not dead(pid)

    async with process.running() as second:
        (sandbox,) = (directory / "execute").glob("dir_*")
        (sandbox / "go").touch()
        exited = await remote.final(activation)
        assert b"done\n" == output(exited)
        second.terminate()
        assert 0 == await asyncio.wait_for(second.wait(), PATIENCE_S)
    starts = [r for r in remote.reports if isinstance(r.body, Started)]
    assert {pid} == {report.body.pid for report in starts if isinstance(report.body, Started)}


async def test_nothing_survives_the_lifeline_of_its_jobs(
    process: Process, remote: SubmitSide, directory: Path
) -> None:
    """
    When the lifeline breaks, startd, zygote, starter and job are gone within a moment, and so is the sandbox.
    """
    async with process.running() as startd:
        activation = await remote.start(script("trap '' TERM; sleep 983; sleep 1"))
        pid = await started(remote, activation)
        starter = parent_of(pid) or 0
        zygote = parent_of(starter) or 0
        assert [starter] == children_of(zygote)

        process.lifeline.close()

        await asyncio.wait_for(startd.wait(), PATIENCE_S)
        async with asyncio.timeout(PATIENCE_S):
            while not all(dead(each) for each in (pid, starter, zygote)):
                await asyncio.sleep(0.01)
    assert [] == list((directory / "execute").iterdir())


def _finals(reports: list[Report]) -> list[Report]:
    return [report for report in reports if isinstance(report.body, FinalReport)]


async def test_sigterm_drains(process: Process, remote: SubmitSide) -> None:
    """Jobs are ended and reported before the process ends."""
    async with process.running() as startd:
        activation = await remote.start(script("trap '' TERM; sleep 982; sleep 1"))
        await started(remote, activation)
        startd.terminate()
        assert 0 == await asyncio.wait_for(startd.wait(), PATIENCE_S)

    failed = await remote.final(activation)
    assert failed.result.exit is None
    assert failed.result.ending is not None
    assert 1013 == failed.result.ending.code
    assert 1 == len({report.sequence for report in _finals(remote.reports)})
