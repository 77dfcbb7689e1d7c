import os
import stat
import tomllib
from pathlib import Path

import pytest

from kettle.execution.attempts.job_spec import StoredReport
from kettle.execution.attempts.stored_reports import store
from kettle.pool import HomeRefusedError, open_home
from kettle.pool.home import Home, existing_home, make_run, remove_run
from kettle.pool.master_lock import MasterLock, holder, locked
from kettle.pool.personal_settings import PERSONAL, render
from kettle.pool.processes import mark, of_pool
from kettle.pool.sandbox_cleanup import sweep
from kettle_wire.attempts import AttemptResult, ExitRecord
from kettle_wire.jobs import JobId
from kettle_wire.worker_reports import FinalReport, Report


def test_a_new_home_is_private(tmp_path: Path) -> None:
    """The home and every directory in it can be entered by its owner alone."""
    home = open_home(tmp_path / "deep" / "home")
    directories = [home.path, *(path for path in home.path.rglob("*") if path.is_dir())]
    assert {0o700} == {stat.S_IMODE(path.stat().st_mode) for path in directories}
    assert len(home.pool_id()) == 16


def test_a_home_keeps_its_id(tmp_path: Path) -> None:
    """The id of a pool is made once."""
    assert open_home(tmp_path / "h").pool_id() == open_home(tmp_path / "h").pool_id()


@pytest.mark.parametrize("mode", [0o755, 0o710, 0o701, 0o770])
def test_a_home_open_to_others_is_refused(tmp_path: Path, mode: int) -> None:
    """
    A directory that others can enter is refused with its mode and what to do, and nothing is put into it.
    """
    tmp_path.chmod(mode)
    with pytest.raises(HomeRefusedError, match=f"open to others.*{mode:04o}.*chmod 700"):
        open_home(tmp_path)
    assert [] == list(tmp_path.iterdir())


def test_somebody_elses_home_is_refused(tmp_path: Path) -> None:
    """A directory that belongs to another account is refused with both numbers."""
    tmp_path.chmod(0o700)
    with pytest.raises(HomeRefusedError, match=f"belongs to user {os.geteuid()}, not to you"):
        open_home(tmp_path, uid=os.geteuid() + 1)


def test_a_directory_of_something_else_is_refused(tmp_path: Path) -> None:
    """A directory that holds other things is no pool's home, and is never cleaned up as one."""
    tmp_path.chmod(0o700)
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(HomeRefusedError, match=r"holds thesis\.tex"):
        open_home(tmp_path)
    assert existing_home(tmp_path) is None


def test_keys_may_be_there_before_the_pool(tmp_path: Path) -> None:
    """A bus of the site's own has them; but nobody else may have been able to read them."""
    tmp_path.chmod(0o700)
    (tmp_path / "pki").mkdir()  # as `kettle pki init` makes it
    keys = tmp_path / "credentials"
    keys.mkdir(mode=0o755)
    keys.chmod(0o755)
    with pytest.raises(HomeRefusedError, match=r"credentials: is open to others .*chmod 700"):
        open_home(tmp_path)
    keys.chmod(0o700)
    (keys / "schedd.nk").touch(0o600)
    assert open_home(tmp_path).pool_id()


def test_a_file_is_refused(tmp_path: Path) -> None:
    """A file is no directory."""
    (tmp_path / "f").touch()
    with pytest.raises(HomeRefusedError, match="not a directory"):
        open_home(tmp_path / "f")


def test_one_master_at_a_time(tmp_path: Path) -> None:
    """The lock is taken once, and is free again when its holder lets go."""
    home = open_home(tmp_path / "h")
    lock = MasterLock.take(home)
    assert lock is not None
    lock.sign()
    assert MasterLock.take(home) is None
    found = holder(home)
    assert found is not None
    assert os.getpid() == found.pid
    lock.release()
    assert not locked(home)
    assert holder(home) is None


def test_a_reused_process_id_is_not_the_master(tmp_path: Path) -> None:
    """A process that started at another time than the signature says is another process."""
    home = open_home(tmp_path / "h")
    lock = MasterLock.take(home)
    assert lock is not None
    home.lock.write_text(f'{{"pid": {os.getpid()}, "started": 1}}')
    assert holder(home) is None
    lock.release()


def test_sockets_fit_wherever_the_home_is(tmp_path: Path) -> None:
    """A home with a long path has its sockets elsewhere, and nothing of them is left."""
    home = open_home(tmp_path / ("x" * 100))
    run = make_run(home)
    assert len(str(run)) < 60
    assert stat.S_IMODE(run.stat().st_mode) == 0o700
    remove_run(home)
    assert not run.exists()
    assert not home.run.is_symlink()


def test_a_link_that_is_not_ours_is_not_followed(tmp_path: Path) -> None:
    """What a foreign link at the place of the sockets points to is left alone."""
    home = open_home(tmp_path / "h")
    (tmp_path / "precious").mkdir()
    home.run.symlink_to(tmp_path / "precious")
    remove_run(home)
    assert (tmp_path / "precious").is_dir()


def test_the_settings_file_is_toml() -> None:
    """What is written is read back, what the caller adds replaces what we chose."""
    tables = tomllib.loads(
        render({"startd": {"name": 'a"b', "num_cpus": 4}, "master": {"backoff_unit": 7.5}})
    )
    assert tables["startd"]["name"] == 'a"b'
    assert tables["startd"]["num_cpus"] == 4
    assert tables["master"]["backoff_unit"] == 7.5
    assert set(PERSONAL) <= set(tables)


def test_sandboxes_are_removed_however_they_were_left(tmp_path: Path) -> None:
    """
    A job that took everybody's permissions on its directory does not keep it, and a link out of it is not followed.
    """
    inner = tmp_path / "execute" / "slot" / "inner"
    inner.mkdir(parents=True)
    (inner / "file").touch()
    (tmp_path / "kept").touch()
    (inner.parent / "out").symlink_to(tmp_path)
    inner.chmod(0)
    inner.parent.chmod(0)
    assert [] == sweep(Home(tmp_path))
    assert [] == list((tmp_path / "execute").iterdir())
    assert (tmp_path / "kept").exists()


def test_outputs_that_nobody_has_yet_are_kept(tmp_path: Path) -> None:
    """The sandbox of a finished job stays as long as its report waits for confirmation."""
    report = Report(
        claim="c",
        attempt=1,
        sequence=2,
        job=JobId(7, 0),
        body=FinalReport(result=AttemptResult(exit=ExitRecord(code=0))),
    )
    stored = StoredReport(schedd="schedd", secret="s", report=report, sandbox=True)
    (tmp_path / "startd" / "reports").mkdir(parents=True)
    store(str(tmp_path / "startd" / "reports"), stored)
    (tmp_path / "execute" / stored.id.sandbox).mkdir(parents=True)
    (tmp_path / "execute" / "dir_other").mkdir()
    assert [] == sweep(Home(tmp_path))
    assert [stored.id.sandbox] == [path.name for path in (tmp_path / "execute").iterdir()]


def test_only_the_marked_are_found(tmp_path: Path) -> None:
    """A process without the pool's mark does not belong to the pool."""
    assert [] == of_pool("0123456789abcdef", tmp_path)
    assert ["_KETTLE_ANCESTOR_ab"] == list(mark("ab"))
    assert Home(tmp_path).pool_id() == ""


def test_sandboxes_outside_of_the_home_are_removed(tmp_path: Path) -> None:
    """The startd of root's pool says where it has put them, and the place goes with them."""
    home, elsewhere = tmp_path / "home", tmp_path / "elsewhere"
    (home / "startd").mkdir(parents=True)
    (elsewhere / "dir_1").mkdir(parents=True)
    (home / "startd" / "execute").symlink_to(elsewhere)
    assert [] == sweep(Home(home))
    assert not elsewhere.exists()
