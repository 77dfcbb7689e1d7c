"""Links in directories where others may write."""

import errno
from pathlib import Path

import pytest

from kettle.dag.files.appended_file import replace
from kettle.dag.files.run_lock import RunLock, Written, written_of


def test_a_link_beside_a_file_leads_nowhere(tmp_path: Path) -> None:
    """What somebody has left where a new file is written aside is removed, and not written through."""
    other = tmp_path / "other"
    other.write_text("of the owner")
    (tmp_path / "status.tmp").symlink_to(other)
    replace(tmp_path / "status", "new")
    assert ("of the owner", "new") == (other.read_text(), (tmp_path / "status").read_text())
    assert ["other", "status"] == sorted(each.name for each in tmp_path.iterdir())


@pytest.mark.parametrize(
    ("job", "known"), [("ap1#6.0#100", 5), ("ap1#6.0#200", 0), ("ap2#6.0#100", 0), ("", 5)]
)
def test_a_lock_is_of_one_job_of_one_pool(job: str, known: int, tmp_path: Path) -> None:
    """Other pools give out the same numbers; a file of an earlier version does not name the job."""
    lock = RunLock(tmp_path / "a.dag.lock")
    lock.write(Written(6, job, events=5))
    assert known == lock.read(6, "ap1#6.0#100").events
    found = written_of(lock.path, 6, "ap1#6.0#100")
    assert known == (0 if found is None else found.events)
    lock.release(over=True)


def test_a_link_is_no_lock(tmp_path: Path) -> None:
    """The file behind it is not made, locked or written."""
    (tmp_path / "a.dag.lock").symlink_to(tmp_path / "other")
    with pytest.raises(OSError) as caught:
        RunLock(tmp_path / "a.dag.lock")
    assert errno.ELOOP == caught.value.errno
    assert not (tmp_path / "other").exists()
