"""Which files a shadow touches for jobs."""

import os
from pathlib import Path

import pytest

from kettle.transfer.file_lists import is_inside
from kettle_services.shadow.files.access import FileAccess, OwnFileError


@pytest.mark.parametrize("name", ["", ".", "..", "a/../b", "/a", "a/", "a\0b", "\udcff"])
def test_names_that_leave_a_sandbox_or_cannot_be_said(name: str) -> None:
    """They are refused where the job is known, with a sentence."""
    assert not is_inside(name)


def test_the_pools_directory_is_refused_however_it_is_reached(tmp_path: Path) -> None:
    """Itself, what is below it, what will be, and links; not a neighbour whose name begins alike."""
    home, work = tmp_path / "home", tmp_path / "work"
    (home / "credentials").mkdir(parents=True)
    work.mkdir()
    (work / "dir").symlink_to(home)
    (work / "deep").symlink_to("dir/credentials")
    (tmp_path / "alias").symlink_to(home)
    places = FileAccess(tmp_path / "alias")
    for path in (
        home,
        home / "startd" / "new",
        work / "dir" / "x",
        work / "deep",
        work / ".." / "home" / "x",
    ):
        with pytest.raises(OwnFileError):
            places.refuse_own(path)
    for path in (work, tmp_path, tmp_path / "home2", Path("/dev/null")):
        places.refuse_own(path)


def test_only_regular_files_are_opened(tmp_path: Path) -> None:
    """A pipe would wait for a writer without end, a device has no end."""
    places = FileAccess(tmp_path / "home")
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", tmp_path, Path("/dev/zero")):
        with pytest.raises(OSError, match=r"regular|directory|system"):
            places.open_input(path)
    (tmp_path / "f").write_text("x")
    os.close(places.open_input(tmp_path / "f"))
