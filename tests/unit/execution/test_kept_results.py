"""Large results, which are read from the sandbox of a job that has ended."""

from pathlib import Path

import pytest

from kettle.execution.job_environment.job_ad import JobAd
from kettle.execution.sandbox.directory import Sandbox
from kettle.execution.sandbox.kept_results import DIRECTORY, read_kept
from kettle.execution.sandbox.output_files import Purpose, Results, collect

SIZE = 70_000
LARGE = b"x" * SIZE
OTHER = b"y" * SIZE


def collected(sandbox: Path, listed: str, *, code: int | Purpose = 0) -> Results:
    """What a job has left that names these as its results."""
    ad = JobAd({"Cmd": "x", "TransferOutput": listed, "TransferCheckpoint": listed})
    return collect(Sandbox(str(sandbox)), ad, {}, code=code)


def read(sandbox: Path, results: Results) -> dict[str, bytes]:
    """What is fetched of each, by its name."""
    assert ([], results.kept) == (results.missing, any(file.data is None for file in results.files))
    return {
        file.name: read_kept(str(sandbox), file.name, 0, file.size) if file.data is None else file.data
        for file in results.files
    }


def lay(sandbox: Path, **contents: bytes) -> None:
    """Make files; a `__` in a name stands for a slash."""
    for name, data in contents.items():
        path = sandbox / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def test_what_is_below_a_linked_directory_is_kept(tmp_path: Path) -> None:
    """Under the link's name; the file that the job made stays the same one."""
    lay(tmp_path, run1__f=LARGE)
    (tmp_path / "latest").symlink_to("run1")
    made = (tmp_path / "run1/f").stat().st_ino
    assert {"latest/f": LARGE} == read(tmp_path, collected(tmp_path, "latest"))
    assert made == (tmp_path / "run1/f").stat().st_ino


@pytest.mark.parametrize(
    ("listed", "name"),
    [("out/out", "out"), ("a/b, b/c", "b"), ("plain/x, plain", "x"), ("plain/plain", "plain")],
)
def test_a_name_that_is_a_directorys_is_none_too_many(tmp_path: Path, listed: str, name: str) -> None:
    """What comes back under it is another file."""
    lay(tmp_path, out__out=LARGE, a__b=LARGE, b__c=OTHER, plain__x=LARGE, plain__plain=LARGE)
    assert LARGE == read(tmp_path, collected(tmp_path, listed))[name]


def test_of_two_with_one_name_the_last_one_is_read(tmp_path: Path) -> None:
    """Neither has taken the other's place before."""
    lay(tmp_path, a__x=LARGE, x=OTHER)
    assert {"x": OTHER} == read(tmp_path, collected(tmp_path, "a/x, x"))
    assert {"x": LARGE} == read(tmp_path, collected(tmp_path, "x, a/x"))


def test_what_a_link_leads_to_outside_is_a_copy(tmp_path: Path) -> None:
    """As far as the job may read it; what lies there is neither replaced nor read later."""
    sandbox, beside = tmp_path / "sandbox", tmp_path / "beside"
    lay(tmp_path, sandbox__own=b"", beside__f=LARGE)
    (sandbox / "away").symlink_to(beside)
    made = (beside / "f").stat().st_ino
    results = collected(sandbox, "away")
    assert made == (beside / "f").stat().st_ino
    (beside / "f").write_bytes(OTHER)
    assert {"away/f": LARGE} == read(sandbox, results)
    assert ["f"] == [path.name for path in beside.iterdir()]


@pytest.mark.parametrize("name", ["away/f", "link", "../beside/f"])
def test_nothing_outside_is_read(tmp_path: Path, name: str) -> None:
    """A link is followed when the results are found, with the job's rights, and never afterwards."""
    lay(tmp_path, sandbox__own=b"", beside__f=LARGE)
    (tmp_path / "sandbox/away").symlink_to(tmp_path / "beside")
    (tmp_path / "sandbox/link").symlink_to(tmp_path / "beside/f")
    with pytest.raises(PermissionError):
        read_kept(str(tmp_path / "sandbox"), name, 0, SIZE)


def test_a_link_in_place_of_our_directory_leads_nowhere(tmp_path: Path) -> None:
    """Neither is a copy written through it, nor is one read."""
    lay(tmp_path, sandbox__out__out=LARGE, beside__f=LARGE)
    (tmp_path / "sandbox" / DIRECTORY).symlink_to(tmp_path / "beside")
    with pytest.raises(OSError, match=DIRECTORY):
        collected(tmp_path / "sandbox", "out/out")
    with pytest.raises(PermissionError, match=DIRECTORY):
        read_kept(str(tmp_path / "sandbox"), "f", 0, SIZE)
    assert ["f"] == [path.name for path in (tmp_path / "beside").iterdir()]


def test_a_copy_is_of_one_checkpoint_only(tmp_path: Path) -> None:
    """The program goes on, and puts a file where a link was; the copies are no results of its own."""
    lay(tmp_path, first=LARGE)
    (tmp_path / "state").symlink_to("first")

    def checkpoint() -> dict[str, bytes]:
        return read(tmp_path, collected(tmp_path, ".", code=Purpose.CHECKPOINT))

    assert {"first": LARGE, "state": LARGE} == checkpoint()
    assert {"first": LARGE, "state": LARGE} == checkpoint()
    (tmp_path / "state").unlink()
    lay(tmp_path, state=OTHER)
    assert {"first": LARGE, "state": OTHER} == checkpoint()


def test_what_an_earlier_starter_has_left_is_read_at_its_name(tmp_path: Path) -> None:
    """It made no copies elsewhere."""
    lay(tmp_path, d__f=LARGE)
    assert LARGE[:10] == read_kept(str(tmp_path), "d/f", SIZE - 10, SIZE)
