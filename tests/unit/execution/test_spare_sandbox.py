"""The directory of a job that has ended, for the next job."""

import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from kettle.execution.sandbox import private_directories, spare
from kettle.execution.sandbox.directory import Sandbox
from kettle.execution.sandbox.spare import SpareSandbox

ALICE: Final = ("schedd", "alice@pool")


def sandbox(execute: Path, number: int) -> Sandbox:
    return Sandbox(f"{execute}/dir_{number}")


def used(execute: Path) -> Sandbox:
    """One in which a job has left files, and that it has opened to others."""
    made = sandbox(execute, 1)
    made.make()
    made.write(".job.ad", "x = 1\n")
    Path(made.path, "dangling").symlink_to("nowhere")
    Path(made.path).chmod(0o777)
    return made


def test_the_next_job_of_a_person_gets_it_empty_and_closed(tmp_path: Path) -> None:
    kept, one, two = SpareSandbox(), used(tmp_path), sandbox(tmp_path, 2)
    inode = Path(one.path).stat().st_ino

    assert kept.keep(one, ALICE)
    assert not Path(one.path).exists()
    assert kept.give(two, ALICE)

    assert inode == Path(two.path).stat().st_ino
    assert 0o700 == stat.S_IMODE(Path(two.path).stat().st_mode)
    assert [] == list(Path(two.path).iterdir())
    assert not kept.give(sandbox(tmp_path, 3), ALICE), "it is given once"


@pytest.mark.parametrize("other", [("schedd", "bob@pool"), ("another", "alice@pool")])
def test_another_person_gets_nothing(tmp_path: Path, other: tuple[str, str]) -> None:
    kept = SpareSandbox()
    assert kept.keep(used(tmp_path), ALICE)

    assert not kept.give(sandbox(tmp_path, 2), other)
    assert not Path(tmp_path, "dir_2").exists()
    kept.drop()
    assert [] == list(tmp_path.iterdir())


def test_in_another_place_it_is_of_no_use(tmp_path: Path) -> None:
    kept = SpareSandbox()
    (tmp_path / "other").mkdir()
    assert kept.keep(used(tmp_path), ALICE)

    assert not kept.give(sandbox(tmp_path / "other", 2), ALICE)


def subdirectory(path: Path) -> None:
    (path / "results").mkdir()


def gone(path: Path) -> None:
    path.rename(path.parent / "elsewhere")


@pytest.mark.parametrize("left", [subdirectory, gone])
def test_what_a_job_has_made_something_else_of_is_not_kept(
    tmp_path: Path, left: Callable[[Path], None]
) -> None:
    one = used(tmp_path)
    left(Path(one.path))

    kept = SpareSandbox()
    assert not kept.keep(one, ALICE)
    one.remove()
    assert not Path(one.path).exists()
    assert not kept.give(sandbox(tmp_path, 2), ALICE)


@pytest.mark.parametrize(
    ("names", "plain"), [(["security.selinux"], True), (["system.posix_acl_default"], False)]
)
def test_one_with_an_access_list_is_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, names: list[str], *, plain: bool
) -> None:
    """What a system gives to all directories does not count."""

    def listed(path: str, *, follow_symlinks: bool) -> list[str]:
        del path, follow_symlinks
        return names

    monkeypatch.setattr(os, "listxattr", listed)

    assert plain == SpareSandbox().keep(used(tmp_path), ALICE)


def test_one_that_has_had_very_many_files_is_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spare, "_LARGE", -1)

    assert not SpareSandbox().keep(used(tmp_path), ALICE)


def test_a_startd_that_begins_removes_it(tmp_path: Path) -> None:
    """Its starter then makes another one."""
    kept = SpareSandbox()
    assert kept.keep(used(tmp_path), ALICE)

    private_directories.remove_spares(str(tmp_path))

    assert [] == list(tmp_path.iterdir())
    assert not kept.give(sandbox(tmp_path, 2), ALICE)


def test_it_goes_into_no_place_in_which_something_is(tmp_path: Path) -> None:
    """A former life of the attempt left it there."""
    kept = SpareSandbox()
    assert kept.keep(used(tmp_path), ALICE)
    former = used(tmp_path)

    assert not kept.give(former, ALICE)
    former.make()
    assert ["dir_1"] == [path.name for path in tmp_path.iterdir()]
    assert [] == list(Path(former.path).iterdir())
