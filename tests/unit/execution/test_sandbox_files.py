"""Files of ours in a sandbox that its job may have prepared for them."""

from pathlib import Path

import pytest

from kettle.execution.sandbox.directory import Sandbox


@pytest.mark.parametrize("kind", ["symbolic", "hard", "dangling"])
def test_a_file_of_ours_is_a_new_one(tmp_path: Path, kind: str) -> None:
    """
    Given a link of the job's under the name of a file of ours, when that is written, then only the link is gone.
    """
    victim, inside = tmp_path / "victim", tmp_path / "sandbox"
    inside.mkdir()
    link = inside / ".job.ad"
    if kind == "hard":
        victim.write_text("precious")
        link.hardlink_to(victim)
    else:
        link.symlink_to(victim)
        if kind == "symbolic":
            victim.write_text("precious")
    Sandbox(str(inside)).write(".job.ad", "ours")

    assert "ours" == link.read_text()
    assert not link.is_symlink()
    assert kind == "dangling" or victim.read_text() == "precious"
    assert (kind == "dangling") == (not victim.exists())


def test_a_file_of_ours_takes_no_directorys_place(tmp_path: Path) -> None:
    """What cannot be taken away by unlinking it is an error, and nothing is written."""
    (tmp_path / ".job.ad").mkdir()
    with pytest.raises(OSError, match="directory"):
        Sandbox(str(tmp_path)).write(".job.ad", "ours")
