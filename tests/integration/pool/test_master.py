"""A real master over dummy services: what it keeps running, and what it leaves."""

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from kettle import pool
from kettle.execution.processes.ancestry import of_a_starter
from kettle.pool import processes
from kettle.testing.patience import PATIENCE_S

from .conftest import DummyPool, alive, eventually

GIB = 1 << 30


def test_a_master_has_loaded_only_what_it_needs(dummies: DummyPool) -> None:
    """
    One that was executed: libraries that only some services and clients use are not among what is mapped.
    """
    started = dummies.up()
    mapped = Path(f"/proc/{started.state.pid}/maps").read_text()
    assert "/msgspec/" in mapped, "this is how a loaded package is seen"
    assert [] == [each for each in ("aiohttp", "multidict", "pyarrow", "numpy") if f"/{each}/" in mapped]


def test_a_service_that_dies_comes_back(dummies: DummyPool) -> None:
    """A killed service is started again; the other one and its child are not touched."""
    dummies.up()
    first, second = dummies.pid("first"), dummies.pid("second")
    os.kill(first, signal.SIGKILL)
    assert eventually(lambda: dummies.pid("first") not in {0, first})
    assert second == dummies.pid("second")
    assert dummies.daemon("first").last_exit == "signal 9"
    assert dummies.daemon("first").starts == 2


def test_what_a_service_started_survives_it(dummies: DummyPool) -> None:
    """A child goes on when its service is killed."""
    dummies.up()
    starter = dummies.noted("first.starter")
    os.kill(dummies.pid("first"), signal.SIGKILL)
    assert eventually(lambda: dummies.daemon("first").starts == 2 and dummies.pid("first") != 0)
    assert alive(starter)


def test_a_service_that_hangs_is_killed(dummies: DummyPool) -> None:
    """A stopped process gives no sign of life, so it is killed and started again."""
    dummies.up(MASTER_NOT_RESPONDING_TIMEOUT="3")
    first = dummies.pid("first")
    os.kill(first, signal.SIGSTOP)
    assert eventually(lambda: dummies.pid("first") not in {0, first})
    assert not alive(first)


def test_status_99_is_respected(dummies: DummyPool) -> None:
    """A service that asks not to be started again stays away; one that just fails does not."""
    dummies.up()
    os.kill(dummies.pid("first"), signal.SIGUSR1)
    os.kill(dummies.pid("second"), signal.SIGUSR2)
    assert eventually(lambda: dummies.daemon("second").starts == 2 and dummies.pid("second") != 0)
    assert eventually(lambda: dummies.daemon("first").status == "left")
    assert dummies.daemon("first").starts == 1


def test_nothing_survives_the_death_of_the_master(dummies: DummyPool) -> None:
    """When the master is killed, its services, what these started, and a stopped one go by themselves."""
    started = dummies.up(detached=True)
    os.kill(dummies.pid("second"), signal.SIGSTOP)
    assert len(dummies.processes()) == 6
    os.kill(started.state.pid, signal.SIGKILL)
    assert eventually(lambda: dummies.processes() == [])


def test_a_killed_master_is_followed_by_a_clean_one(dummies: DummyPool) -> None:
    """After a crash of the master the next `up` starts a whole pool, and ends what the crash left behind."""
    started = dummies.up(TEST_LITTERS="1")
    litter = dummies.noted("first.litter")
    os.kill(started.state.pid, signal.SIGKILL)
    again = dummies.up()
    assert again.new
    assert again.state.pid != started.state.pid
    assert not alive(litter)
    assert len(dummies.processes()) == 6


def test_starters_outlive_a_killed_master(worker: DummyPool) -> None:
    """
    The master of a startd takes what an earlier one's starters run for the startd's business; `down` leaves nothing of it.
    """
    started = worker.up(detached=True)
    environ = of_a_starter(processes.mark(started.state.pool_id))
    with subprocess.Popen(["sleep", "1000"], env=environ, start_new_session=True) as job:
        os.kill(started.state.pid, signal.SIGKILL)
        assert eventually(lambda: worker.processes() == [job.pid])
        assert worker.up(detached=True).new
        assert alive(job.pid)
        pool.down(worker.home)
        assert -signal.SIGKILL == job.wait(PATIENCE_S)


def test_a_second_up_finds_the_pool(dummies: DummyPool) -> None:
    """`up` of a running pool starts nothing."""
    first = dummies.up()
    second = dummies.up()
    assert first.new
    assert not second.new
    assert first.state.pid == second.state.pid
    assert len(dummies.processes()) == 6


def test_down_leaves_nothing_but_data(dummies: DummyPool) -> None:
    """
    `down` ends every process, also those that nobody feels responsible for, and removes what belongs to a running pool.
    """
    dummies.up(TEST_LITTERS="1")
    litter = dummies.noted("first.litter")
    (dummies.home / "execute" / "sandbox").mkdir()
    down = pool.down(dummies.home)
    assert down.was_running
    assert not down.forced
    assert not alive(litter)
    assert [] == dummies.processes()
    left = {path.name for path in dummies.home.iterdir()} - {
        "first.starter",
        "second.starter",
        "first.litter",
        "second.litter",
    }
    assert {"credentials", "execute", "kettle.toml", "log", "master.lock", "pool.id"} == left
    assert [] == list((dummies.home / "execute").iterdir())
    assert pool.state(dummies.home) is None
    assert not pool.down(dummies.home).was_running


def test_down_can_remove_everything(dummies: DummyPool) -> None:
    """With `purge` nothing is left of the pool at all."""
    dummies.up()
    pool.down(dummies.home, purge=True)
    assert not dummies.home.exists()


def test_a_process_in_a_sandbox_belongs_to_the_pool(dummies: DummyPool) -> None:
    """A job that has thrown away its environment is still found by where it works."""
    dummies.up()
    sandbox = dummies.home / "execute" / "s"
    sandbox.mkdir()
    with subprocess.Popen(["sleep", "1000"], env={}, cwd=sandbox, start_new_session=True) as job:
        assert job.pid in dummies.processes()
        pool.down(dummies.home)
        assert -signal.SIGKILL == job.wait(PATIENCE_S)


def test_a_stubborn_service_is_killed_at_last(dummies: DummyPool) -> None:
    """A service that does not end when it is asked has the graceful time, and then no more."""
    dummies.up(TEST_STUBBORN="1", MASTER_SHUTDOWN_GRACEFUL_TIMEOUT="0.3")
    began = time.monotonic()
    assert not pool.down(dummies.home).forced
    assert 0.3 <= time.monotonic() - began
    assert [] == dummies.processes()


def test_a_master_that_does_not_end_is_killed(dummies: DummyPool) -> None:
    """`down` does not depend on the master's good will."""
    started = dummies.up()
    os.kill(started.state.pid, signal.SIGSTOP)
    down = pool.down(dummies.home, deadline_s=0.3)
    assert down.forced
    assert [] == dummies.processes()


def test_a_pool_that_cannot_start_says_why(dummies: DummyPool) -> None:
    """
    A service that fails again and again before it is ready ends the start, with its name, and nothing keeps running.
    """
    with pytest.raises(
        pool.StartFailedError, match=r"(first|second) ended 3 times while the pool was being started"
    ):
        dummies.up(TEST_FAILS="3")
    assert [] == dummies.processes()
    assert pool.state(dummies.home) is None


def test_wrong_settings_end_the_start_at_once(dummies: DummyPool) -> None:
    """A service that cannot use its settings is not tried again."""
    with pytest.raises(pool.StartFailedError, match="cannot use its settings"):
        dummies.up(TEST_FAILS="78")


def test_a_misspelt_setting_of_a_service_is_named(dummies: DummyPool) -> None:
    """The sentence of a service about its settings reaches the person, too."""
    with pytest.raises(pool.StartFailedError, match="KETTLE_FIRST_SHRAD"):
        dummies.up(FIRST_SHRAD="3")


def test_a_misspelt_setting_of_the_master_is_named(dummies: DummyPool) -> None:
    """The sentence of the master about its own settings reaches the person."""
    with pytest.raises(pool.StartFailedError, match="KETTLE_MASTER_DEAMON_LIST"):
        dummies.up(MASTER_DEAMON_LIST="[]")


def test_a_start_that_takes_too_long_fails(dummies: DummyPool) -> None:
    """`up` has a time limit, and stops what it had started."""
    with pytest.raises(pool.StartFailedError, match="not ready after"):
        dummies.up(deadline_s=0.05)
    assert [] == dummies.processes()


def free_bytes(path: Path) -> int:
    room = os.statvfs(path)
    return room.f_bavail * room.f_frsize


def test_a_full_disk_is_refused(dummies: DummyPool) -> None:
    """A pool does not start on a disk without room, and says so."""
    with pytest.raises(pool.StartFailedError, match=r"disk of .* is full"):
        dummies.up(MASTER_MINIMUM_DISK_MIB="999999999")


def test_a_disk_that_fills_up_ends_the_pool(dummies: DummyPool, tmp_path: Path) -> None:
    """A running pool stops cleanly when the room is gone, and its log says why."""
    if free_bytes(tmp_path) < 4 * GIB:
        pytest.skip("this test needs a disk with 4 GiB free")
    minimum = free_bytes(tmp_path) - GIB
    started = dummies.up(MASTER_DISK_INTERVAL="0.05", MASTER_MINIMUM_DISK_MIB=str(minimum >> 20))
    with (tmp_path / "ballast").open("wb") as ballast:

        def gone() -> bool:
            if (over := free_bytes(tmp_path) - minimum) >= 0:  # again where others give room back
                os.posix_fallocate(
                    ballast.fileno(), 0, os.fstat(ballast.fileno()).st_size + over + (64 << 20)
                )
            return not alive(started.state.pid)

        assert eventually(gone)
        ballast.truncate(0)
    assert "is full" in (dummies.home / "log" / "master.log").read_text()
    assert [] == dummies.processes()


def test_the_pool_ends_with_whoever_holds_its_lifeline(dummies: DummyPool) -> None:
    """A pool that was given a lifeline ends when the other end is closed."""
    started = dummies.up()
    dummies.cut()
    assert eventually(lambda: not alive(started.state.pid))
    assert eventually(lambda: dummies.processes() == [])


def test_a_home_with_a_long_path_works(tmp_path: Path, dummies: DummyPool) -> None:
    """The path of the home is not limited by what a socket's path may be."""
    dummies.home = tmp_path / ("long" * 30) / "home"
    dummies.up()
    assert dummies.pid("first")
    elsewhere = (dummies.home / "run").readlink()
    pool.down(dummies.home)
    assert not elsewhere.exists()


def test_the_mark_is_inherited(dummies: DummyPool) -> None:
    """Everything that a service starts carries the pool's mark."""
    dummies.up()
    assert dummies.noted("first.starter") in [
        p.pid for p in processes.of_pool(pool.open_home(dummies.home).pool_id(), Path("/nonexistent"))
    ]
