"""What does not go away: until it does, the slot is taken and the attempt is not over."""

import asyncio
import logging
import signal
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path

import msgspec
import pytest

from kettle.retry.backoff import steady
from kettle.testing.patience import PATIENCE_S
from kettle.testing.processes import end_parent
from kettle.testing.submit_side import job_ad, script
from kettle.testing.worker import WorkerPool
from kettle_services.startd.machine.host import EXECUTE_LINK, make_execute
from kettle_services.startd.settings import StartdSettings
from kettle_services.startd.starters import orphan_cleanup
from kettle_wire.commands.startd import NOT_KNOWN, RELEASE, Activation, Release
from kettle_wire.worker_reports import FinalReport, Started


class Stubborn:
    """Stands for a process that the kernel does not let go."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.lives = True
        self.tried = 0
        clean = orphan_cleanup.remove_remains

        def resisted(*arguments: object, **named: object) -> bool:
            self.tried += 1
            return not self.lives and clean(*arguments, **named)  # type: ignore[arg-type]

        monkeypatch.setattr(orphan_cleanup, "remove_remains", resisted)
        monkeypatch.setattr("kettle_services.startd.starters.cleanup_tasks._BACKOFF", steady(0.02))


@pytest.fixture
def stubborn(monkeypatch: pytest.MonkeyPatch) -> Stubborn:
    return Stubborn(monkeypatch)


async def kill_starter(pool: WorkerPool, activation: Activation) -> None:
    report = await pool.submitter.hear(activation, lambda report: isinstance(report.body, Started))
    assert isinstance(report.body, Started)
    end_parent(report.body.pid)


async def test_while_something_of_a_job_lives_its_slot_is_taken(
    pool: WorkerPool, stubborn: Stubborn, caplog: pytest.LogCaptureFixture
) -> None:
    """
    The eviction is repeated, no report says that the job may run again, and the claim takes no other job; said once.
    """
    async with pool.startd() as startd:
        submitter = pool.submitter
        activation = await submitter.start(script("sleep 600"))
        await kill_starter(pool, activation)
        await pool.until(lambda: stubborn.tried >= 5)

        other = await submitter.activate(submitter.activation(activation.key, job_ad(Cmd="/bin/true")))
        await submitter.schedd.call(
            RELEASE, submitter.startd, Release(claims=[activation.key], reason="enough")
        )
        fresh = await submitter.request(1)
        with pytest.raises(TimeoutError):
            await submitter.final(activation, wait=0.3)
        assert other.code in {1028, 1032}
        assert ["slot1_2@worker"] == [grant.slot for grant in fresh.granted]
        assert 1 == len([r for r in caplog.records if "does not go away" in r.message])

        stubborn.lives = False
        failed = await submitter.final(activation)
        assert failed.result.exit is None
        assert failed.result.ending is not None
        assert 1 == len({r.sequence for r in submitter.reports if isinstance(r.body, FinalReport)})
        assert [] == list(pool.execute.glob("dir_*"))
        await startd.drain()


async def test_a_successor_goes_on_evicting(pool: WorkerPool, stubborn: Stubborn) -> None:
    """A startd that stops while something lives hangs on nothing, and the next one holds the slot."""
    submitter = pool.submitter
    async with asyncio.timeout(PATIENCE_S):
        async with pool.startd():
            activation = await submitter.start(script("sleep 600"))
            await kill_starter(pool, activation)
            await pool.until(lambda: stubborn.tried >= 2)
    tried = stubborn.tried

    async with pool.startd() as startd:
        await pool.until(lambda: stubborn.tried > tried + 1)
        assert 1032 == (await submitter.activate(submitter.activation(activation.key, job_ad()))).code
        stubborn.lives = False
        assert (await submitter.final(activation)).result.exit is None
        await startd.drain()


async def test_leftovers_that_resist_do_not_keep_a_startd_from_starting(
    pool: WorkerPool, stubborn: Stubborn
) -> None:
    """They belong to no claim; they go when they can."""
    pool.execute.mkdir(exist_ok=True)
    pool.execute.chmod(0o711)
    (pool.execute / "dir_old").mkdir()

    async with asyncio.timeout(PATIENCE_S):
        async with pool.startd() as startd:
            assert (await pool.submitter.request(1)).granted
            stubborn.lives = False
            await pool.until(lambda: not list(pool.execute.glob("dir_*")))
            await startd.drain()


@pytest.fixture
def sandboxed(directory: Path) -> Generator[tuple[Path, subprocess.Popen[bytes]]]:
    """A process that works inside a sandbox."""
    sandbox = directory / "dir_x"
    sandbox.mkdir()
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], cwd=sandbox) as process:
        yield sandbox, process
        process.kill()


def test_a_clean_up_that_was_stopped_touches_nothing(
    sandboxed: tuple[Path, subprocess.Popen[bytes]],
) -> None:
    """What it finds may be the next job of the slot's account."""
    sandbox, process = sandboxed

    assert not orphan_cleanup.remove_remains(str(sandbox), None, None, stopped=lambda: True)
    assert process.poll() is None
    assert sandbox.exists()
    assert (
        orphan_cleanup.remove_remains(str(sandbox), None, None) or process.wait(PATIENCE_S) == -signal.SIGKILL
    )


async def test_a_probe_is_answered_as_long_as_the_report_waits(pool: WorkerPool) -> None:
    """Also when the claim is gone; an attempt that never was is not known, and is not started."""
    async with pool.startd() as startd:
        submitter = pool.submitter
        activation = await submitter.start(job_ad(Cmd="/bin/true"))
        probe = msgspec.structs.replace(activation, probe=True)
        never = msgspec.structs.replace(probe, attempt=2)
        known, unknown = await submitter.activate(probe), await submitter.activate(never)
        await submitter.final(activation)
        await submitter.schedd.call(RELEASE, submitter.startd, Release(claims=[activation.key], reason=""))
        after = await submitter.activate(probe)

        assert (0, NOT_KNOWN, 0) == (known.code, unknown.code, after.code)
        assert "never began" in unknown.reason
        assert {1} == {report.attempt for report in submitter.reports}
        await startd.drain()


def test_the_master_is_told_where_the_sandboxes_are(settings: StartdSettings, directory: Path) -> None:
    """
    By a link in the startd's state, if they are not in the pool's home; what is right already is not made again.
    """
    word = settings.state_path / EXECUTE_LINK
    elsewhere = directory / "elsewhere"
    there = msgspec.structs.replace(settings, execute=str(elsewhere))

    make_execute(settings)
    assert not word.is_symlink()
    make_execute(there)
    assert elsewhere.resolve() == word.readlink()
    made = word.lstat().st_ino, word.lstat().st_ctime_ns
    make_execute(there)
    assert made == (word.lstat().st_ino, word.lstat().st_ctime_ns)
    make_execute(settings)
    assert not word.is_symlink()


def test_a_link_that_cannot_be_made_stops_no_startd(
    settings: StartdSettings,
    directory: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A disk may be full."""

    def full(path: Path, target: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "symlink_to", full)
    with caplog.at_level(logging.WARNING):
        execute = make_execute(msgspec.structs.replace(settings, execute=str(directory / "elsewhere")))

    assert execute.is_dir()
    assert "the master will not know" in caplog.text
