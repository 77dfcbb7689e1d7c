"""What a job has in place of the machine's directories: made, kept for the next one, or gone with it."""

import os
from pathlib import Path

import pytest

from kettle.execution.sandbox import private_directories

DIRECTORIES = ("/tmp", "/var/tmp")


@pytest.fixture
def sandbox(tmp_path: Path) -> Path:
    (path := tmp_path / "dir_1").mkdir()
    return path


def make(sandbox: Path, shown: str = "/srv") -> Path:
    os.close(private_directories.make(str(sandbox), DIRECTORIES, shown=shown))
    return sandbox / private_directories.PRIVATE


def spare(sandbox: Path) -> Path:
    return sandbox.parent / f"private_{os.getpid()}"


def test_everybody_may_write_to_them_and_nobody_may_exchange_them(sandbox: Path) -> None:
    """They have the modes of /tmp, and their place those of its parent."""
    place = make(sandbox)

    assert {"tmp": 0o41777, "var%2Ftmp": 0o41777} == {
        path.name: path.stat().st_mode for path in place.iterdir()
    }
    assert 0o40755 == place.stat().st_mode


def identity(place: Path) -> tuple[int, int]:
    about = place.stat()
    return about.st_dev, about.st_ino


def test_those_of_one_job_are_given_to_the_next(sandbox: Path) -> None:
    """They are the same directories, and in between they are in no sandbox."""
    place = make(sandbox)
    first = identity(place)

    assert private_directories.keep(str(sandbox), first)
    assert [] == list(sandbox.iterdir())
    assert spare(sandbox).is_dir()

    private_directories.give(str(sandbox))
    assert first == identity(place)
    assert not spare(sandbox).exists()


def test_what_a_job_has_put_in_their_place_is_not_kept(sandbox: Path) -> None:
    """It goes with the sandbox."""
    place = make(sandbox)
    was = identity(place)
    place.rename(sandbox / "mine")
    place.mkdir()

    assert not private_directories.keep(str(sandbox), was)
    assert place.exists()
    assert not spare(sandbox).exists()


def test_what_the_job_has_put_in_their_place_is_not_followed(sandbox: Path, tmp_path: Path) -> None:
    """Nothing is made behind its link."""
    (elsewhere := tmp_path / "elsewhere").mkdir()
    (sandbox / private_directories.PRIVATE).symlink_to(elsewhere)

    with pytest.raises(NotADirectoryError):
        make(sandbox)
    assert [] == list(elsewhere.iterdir())


def test_the_directory_of_the_sandboxes_has_a_place_in_the_one_that_hides_it(sandbox: Path) -> None:
    """Also if the job is started again."""
    place = make(sandbox, shown="/tmp/a/b")
    for _ in range(2):
        assert (make(sandbox, shown="/tmp/a/b") / "tmp" / "a" / "b").is_dir()

    private_directories.keep(str(sandbox), identity(place))
    private_directories.release(str(sandbox.parent))
    assert [sandbox] == list(sandbox.parent.iterdir())


def test_those_of_starters_that_died_are_removed(sandbox: Path) -> None:
    """And nothing else."""
    private_directories.keep(str(sandbox), identity(make(sandbox)))
    spare(sandbox).rename(sandbox.parent / "private_1")

    private_directories.remove_spares(str(sandbox.parent))

    assert [sandbox] == list(sandbox.parent.iterdir())
