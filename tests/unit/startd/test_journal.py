"""
The journal on disk.
"""

from pathlib import Path

from kettle.startd.domain.claim import Change, Closing, Gone, Met
from kettle.startd.journal import Journal

CHANGES: list[Change] = [Met("c1", 1, 2), Closing("c1", "why"), Gone("c1")]


def test_what_was_recorded_is_read_back(tmp_path: Path) -> None:
    """
    In order, across a restart.
    """
    journal = Journal(tmp_path / "journal", "boot")
    journal.restart(CHANGES[:1])
    journal.append(CHANGES[1:])
    journal.close()

    assert CHANGES == Journal(tmp_path / "journal", "boot").load()


def test_a_torn_end_is_ignored(tmp_path: Path) -> None:
    """
    Nobody has acted on what was not written whole.
    """
    path = tmp_path / "journal"
    journal = Journal(path, "boot")
    journal.restart(CHANGES)
    journal.close()
    path.write_bytes(path.read_bytes()[:-1])

    assert CHANGES[:-1] == Journal(path, "boot").load()


def test_after_a_boot_nothing_is_true_any_more(tmp_path: Path) -> None:
    """
    Processes, clocks and claims are gone.
    """
    journal = Journal(tmp_path / "journal", "first boot")
    journal.restart(CHANGES)
    journal.close()

    assert [] == Journal(tmp_path / "journal", "second boot").load()


def test_there_need_not_be_a_journal(tmp_path: Path) -> None:
    """
    The first start.
    """
    assert [] == Journal(tmp_path / "journal", "boot").load()
