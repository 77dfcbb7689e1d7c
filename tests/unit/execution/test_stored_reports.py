"""Final reports on disk, and the one file with which a starter writes them."""

import os
from pathlib import Path

import pytest

from kettle.execution.attempts.job_spec import StoredReport
from kettle.execution.attempts.stored_reports import Draft, clear_drafts, forget, load, load_all, make_places
from kettle_wire.attempts import AttemptResult, Ending
from kettle_wire.jobs import JobId
from kettle_wire.worker_reports import FinalReport, Report


def stored(number: int, reason: str = "because") -> StoredReport:
    report = Report(
        claim=f"startd#{number}",
        attempt=1,
        sequence=1,
        job=JobId(1, number),
        body=FinalReport(result=AttemptResult(ending=Ending(code=1, reason=reason))),
    )
    return StoredReport(schedd="schedd", secret="s", report=report, sandbox=False)


@pytest.fixture
def state(tmp_path: Path) -> Path:
    make_places(tmp_path)
    return tmp_path


def told(state: Path) -> list[StoredReport]:
    return list(load_all(str(state / "reports")))


def test_a_report_that_is_forgotten_gives_its_file_to_the_next(state: Path) -> None:
    draft = Draft()
    draft.store(str(state), stored(1, "a long reason " * 100))
    first = (state / "reports" / stored(1).id.name).stat().st_ino
    forget(str(state / "reports"), stored(1).id)

    draft.store(str(state), stored(2))

    assert [stored(2)] == told(state)
    assert first == (state / "reports" / stored(2).id.name).stat().st_ino


def test_a_report_that_waits_is_not_written_over(state: Path) -> None:
    draft = Draft()
    for number in (1, 2, 3):
        draft.store(str(state), stored(number))

    assert [stored(1), stored(2), stored(3)] == told(state)


def test_a_report_outlives_its_draft_and_is_not_taken_for_one(state: Path) -> None:
    """
    A startd that starts clears the drafts away, also those of starters that live: then a report's own name is the only
    one that its file has left.
    """
    draft = Draft()
    draft.store(str(state), stored(1))
    clear_drafts(state)

    draft.store(str(state), stored(2))
    draft.close()

    assert [stored(1), stored(2)] == told(state)
    assert [] == list((state / "drafts").iterdir())


def test_another_file_in_the_place_of_the_draft_is_not_taken_for_it(state: Path) -> None:
    draft = Draft()
    draft.store(str(state), stored(1))
    clear_drafts(state)
    (state / "drafts" / stored(1).id.name).write_bytes(b"")

    draft.store(str(state), stored(2))

    assert [stored(1), stored(2)] == told(state)


def test_the_same_attempt_is_told_anew(state: Path) -> None:
    draft = Draft()
    draft.store(str(state), stored(1, "first"))
    draft.store(str(state), stored(1, "second"))

    assert stored(1, "second") == load(str(state / "reports"), stored(1).id)


def test_where_a_file_has_only_one_name_a_report_is_written_nevertheless(
    state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_source: str, _target: str) -> None:
        raise PermissionError("Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    draft = Draft()
    draft.store(str(state), stored(1))
    draft.store(str(state), stored(2))

    assert [stored(1), stored(2)] == told(state)


def test_a_full_disk_leaves_nothing_behind(state: Path) -> None:
    (state / "drafts" / stored(1).id.name).symlink_to("/dev/full")
    (state / "reports" / f"{stored(1).id.name}.draft").symlink_to("/dev/full")
    draft = Draft()

    with pytest.raises(OSError, match="No space left"):
        draft.store(str(state), stored(1))

    assert [] == told(state)
