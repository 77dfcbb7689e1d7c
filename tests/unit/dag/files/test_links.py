"""Links in directories where others may write."""

import errno
from pathlib import Path

import pytest

from kettle.dag.files.appended_file import replace
from kettle.dag.files.run_lock import RunLock


def test_a_link_beside_a_file_leads_nowhere(tmp_path: Path) -> None:
    """What somebody has left where a new file is written aside is removed, and not written through."""
    other = tmp_path / "other"
    other.write_text("of the owner")
    (tmp_path / "status.tmp").symlink_to(other)
    replace(tmp_path / "status", "new")
    assert ("of the owner", "new") == (other.read_text(), (tmp_path / "status").read_text())
    assert ["other", "status"] == sorted(each.name for each in tmp_path.iterdir())


def test_a_link_is_no_lock(tmp_path: Path) -> None:
    """The file behind it is not made, locked or written."""
    (tmp_path / "a.dag.lock").symlink_to(tmp_path / "other")
    with pytest.raises(OSError) as caught:
        RunLock(tmp_path / "a.dag.lock")
    assert errno.ELOOP == caught.value.errno
    assert not (tmp_path / "other").exists()
