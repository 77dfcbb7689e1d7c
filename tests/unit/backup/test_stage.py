"""Where a backup is written until it is complete."""

from pathlib import Path

import pytest

from kettle.backup.errors import BackupError
from kettle.backup.stage import complete, stage_for


def test_two_do_not_write_one_backup(tmp_path: Path) -> None:
    """The second is refused and disturbs nothing; beside it another one is written."""
    with stage_for(tmp_path / "monday") as stage:
        (stage / "part").write_text("of the first")
        with (
            pytest.raises(BackupError, match="another backup is being written"),
            stage_for(tmp_path / "monday"),
        ):
            pass
        assert "of the first" == (stage / "part").read_text()
        with stage_for(tmp_path / "tuesday"):
            pass
    assert [] == list(tmp_path.iterdir())


def test_what_was_left_goes_and_what_is_complete_stays(tmp_path: Path) -> None:
    """
    Of one who was killed nothing is in the next backup, and one that has its name is not touched by who writes another.
    """
    left = tmp_path / ".monday.partial"
    left.mkdir()
    (left / "database.dump").write_text("half")
    with stage_for(tmp_path / "monday") as stage:
        assert not (stage / "database.dump").exists()
        assert 0o700 == stage.stat().st_mode & 0o777
        (stage / "part").write_text("whole")
        complete(stage, tmp_path / "monday")
        with stage_for(tmp_path / "monday") as of_another:
            assert not (of_another / "part").exists()
    assert {"part": "whole"} == {path.name: path.read_text() for path in (tmp_path / "monday").iterdir()}
    assert [tmp_path / "monday"] == list(tmp_path.iterdir())
