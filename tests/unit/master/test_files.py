"""What a master keeps on disk: who is switched off, and where a service hung."""

import os
from pathlib import Path

import pytest

from kettle.pool.home import open_home
from kettle_services.master.supervision import hang_reports
from kettle_services.master.supervision.switched_off import read_off, write_off


def test_who_is_off_is_remembered(tmp_path: Path) -> None:
    """What was written is read, and nobody is off when the last one is on again."""
    home = open_home(tmp_path / "home")
    assert read_off(home) == frozenset()
    write_off(home, {"startd", "schedd.ap1"})
    assert {"startd", "schedd.ap1"} == read_off(home)
    write_off(home, ())
    assert read_off(home) == frozenset()
    assert not home.switched_off.exists()


@pytest.mark.parametrize("content", [b"", b"{", b"[1]"])
def test_a_damaged_list_switches_nothing_off(tmp_path: Path, content: bytes) -> None:
    """A master starts whatever is in the file."""
    home = open_home(tmp_path / "home")
    home.switched_off.write_bytes(content)
    assert read_off(home) == frozenset()


def test_what_was_written_after_the_look_is_kept(tmp_path: Path) -> None:
    """
    The file has what the kernel knew and what the service wrote when it was aborted, and is for its owner alone.
    """
    log = tmp_path / "schedd.log"
    log.write_text("before\n")
    hang = hang_reports.inspect_process(os.getpid(), log)
    with log.open("a") as file:
        file.write("Current thread 0x1:\n  File x.py, line 3 in stuck\n")
    kept = hang_reports.write_report(hang, log, "schedd")
    assert kept is not None
    said = kept.read_text()
    assert "State:" in said
    assert "line 3 in stuck" in said
    assert "before" not in said
    assert kept.stat().st_mode & 0o777 == 0o600


def test_only_the_last_ones_are_kept(tmp_path: Path) -> None:
    """A service that hangs again and again does not fill the disk."""
    log = tmp_path / "schedd.log"
    log.write_text("")
    other = tmp_path / "schedd.ap1.hang.20260101T000000Z.1.txt"
    other.write_text("another's")
    for pid in range(hang_reports.KEPT + 3):
        hang_reports.write_report(hang_reports.Hang(pid=pid, kernel="", written=0), log, "schedd")
    assert hang_reports.KEPT == len(list(tmp_path.glob("schedd.hang.*.txt")))
    assert other.exists()


def test_a_full_disk_costs_only_the_stacks(tmp_path: Path) -> None:
    """Stacks that cannot be kept are no reason not to start the service again."""
    log = tmp_path / "gone" / "schedd.log"
    assert hang_reports.write_report(hang_reports.Hang(pid=1, kernel="", written=0), log, "schedd") is None
