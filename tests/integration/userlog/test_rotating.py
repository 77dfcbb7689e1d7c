"""
The event log of an access point: each event once, whatever stops its writer, in files that are not too large.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC
from pathlib import Path, PurePosixPath

import pytest

from kettle.faults import POINTS
from kettle.userlog import Form, Generic, LogLine, Tail, UserLogError, format_of, parse, render
from kettle.userlog.rotating_log import RotatingLog
from kettle_wire.jobs import JobId

TOP = Path(__file__).parents[3]
PLACES = [name for name in POINTS if name.startswith("event_log.")]


def line(number: int, options: str = "") -> LogLine:
    event = Generic(job=JobId(number, 0), at=1_790_000_000 + number, info=f"event {number}")
    return LogLine(PurePosixPath("/unused"), render(event, UTC, format_of(options)))


def opened(
    path: Path,
    *,
    known: int = 0,
    identity: str = "i",
    options: str = "",
    max_size: int = 1500,
    rotations: int = 3,
) -> RotatingLog:
    return RotatingLog(
        path, format_of(options), identity=identity, known=known, max_size=max_size, rotations=rotations, zone=UTC,
        clock=lambda: 1_790_000_000.0,
    )  # fmt: skip


def files(path: Path) -> list[Path]:
    """The log and what was put aside, oldest first."""
    return [*sorted(path.parent.glob(f"{path.name}.?*"), reverse=True), path]


def told(path: Path) -> list[int]:
    """The numbers of all events in the order of the files, without headings."""
    events = [event for file in files(path) for event in parse(file.read_text(), UTC)]
    return [event.job.cluster for event in events if event.job.cluster]


def headings(path: Path) -> list[dict[str, str]]:
    found: list[dict[str, str]] = []
    for file in files(path):
        first = parse(file.read_text(), UTC)[0]
        assert isinstance(first, Generic)
        assert first.info.startswith("Global JobLog: ")
        found.append(dict(word.split("=", 1) for word in first.info.split()[2:]))
    return found


@pytest.mark.parametrize("options", ["", "XML", "JSON, UTC, SUB_SECOND"])
def test_full_files_are_put_aside(tmp_path: Path, options: str) -> None:
    """Each file begins with what came before it, and a full one says how much it has."""
    log = opened(tmp_path / "EventLog", options=options)
    for number in range(1, 161):
        log.write([line(number, options)])

    assert list(range(told(tmp_path / "EventLog")[0], 161)) == told(tmp_path / "EventLog")
    assert ["EventLog.3", "EventLog.2", "EventLog.1", "EventLog"] == [
        p.name for p in files(tmp_path / "EventLog")
    ]
    assert {format_of(options).form} == {Form.of(file.read_text()) for file in files(tmp_path / "EventLog")}
    *full, _ = files(tmp_path / "EventLog")
    *before, last = headings(tmp_path / "EventLog")
    for file, heading in zip(full, before, strict=True):
        assert int(heading["events"]) == len(parse(file.read_text(), UTC)) - 1
        assert int(heading["size"]) == file.stat().st_size
    sums = [int(heading["event_off"]) + int(heading["events"]) for heading in before]
    assert sums == [int(heading["event_off"]) for heading in (*before[1:], last)]
    first, *_ = sequences = [int(heading["sequence"]) for heading in (*before, last)]
    assert list(range(first, first + 4)) == sequences


def test_one_old_file_is_called_old(tmp_path: Path) -> None:
    """It has HTCondor's name; if none is kept, a full file is started again."""
    for rotations, names in ((1, ["EventLog", "EventLog.old"]), (0, ["EventLog"])):
        (tmp_path / str(rotations)).mkdir()
        log = opened(tmp_path / str(rotations) / "EventLog", rotations=rotations)
        log.write([line(number) for number in range(1, 100)])
        assert names == sorted(p.name for p in (tmp_path / str(rotations)).iterdir())
        assert 99 == told(tmp_path / str(rotations) / "EventLog")[-1]


def test_what_comes_again_is_passed_over(tmp_path: Path) -> None:
    """
    Whatever was written since the cursor was saved, in this file or in one before it; half an event comes again whole.
    """
    path = tmp_path / "EventLog"
    log = opened(path)
    for number in range(1, 31):
        log.write([line(number)])
    log.close()
    with path.open("a") as file:
        file.write(line(31).text[:20])

    again = opened(path, known=5)
    for number in range(6, 41):
        again.write([line(number)])
    assert list(range(told(path)[0], 41)) == told(path)


def test_another_form_begins_another_file(tmp_path: Path) -> None:
    """Files have one form; counting goes on."""
    path = tmp_path / "EventLog"
    log = opened(path)
    log.write([line(1), line(2)])
    again = opened(path, known=1, options="JSON")
    again.write([line(2, "JSON"), line(3, "JSON")])
    assert [1, 2, 3] == told(path)
    assert [Form.CLASSIC, Form.JSON] == [Form.of(file.read_text()) for file in files(path)]


def test_a_log_of_somebody_else(tmp_path: Path) -> None:
    """It is put aside as it is, and nothing of it is counted; what is no log at all is left alone."""
    path = tmp_path / "EventLog"
    theirs = opened(path, identity="theirs")
    theirs.write([line(1), line(2)])
    text = path.read_text()
    ours = opened(path, identity="ours")
    ours.write([line(3)])
    assert text == (tmp_path / "EventLog.1").read_text()
    assert [1, 2, 3] == told(path)

    (tmp_path / "text").write_text("root:x:0:0\n")
    with pytest.raises(UserLogError, match="no event log"):
        opened(tmp_path / "text")
    assert "root:x:0:0\n" == (tmp_path / "text").read_text()
    with pytest.raises(UserLogError, match="cannot write"):
        opened(tmp_path / "no" / "EventLog")


def test_a_log_that_lost_its_end(tmp_path: Path) -> None:
    """What the cursor knows to be written is not written again, and the next file counts right."""
    path = tmp_path / "EventLog"
    log = opened(path)
    log.write([line(1), line(2), line(3)])
    log.close()
    text = path.read_text()
    path.write_text(text[: text.index("003 ") if "003 " in text else len(text) - 30])

    again = opened(path, known=3)
    again.write([line(4)])
    assert "3" == headings(path)[-1]["event_off"]
    assert 4 == told(path)[-1]


KILLED = """
import sys
from pathlib import Path
from tests.integration.userlog.test_rotating import run
run(Path(sys.argv[1]))
"""


def run(directory: Path) -> None:
    """A writer with a cursor in a file, which is saved after each fifth of sixty frames."""
    from kettle.faults import fault_point

    cursor = directory / "cursor"
    known = int(cursor.read_text()) if cursor.exists() else 0
    log = opened(directory / "EventLog", known=known, rotations=9, max_size=700)
    for number in range(known + 1, 61):
        log.write([line(number)])
        if number % 5 == 0:
            log.sync()
            (directory / "new").write_text(str(number))
            (directory / "new").replace(cursor)
            fault_point("event_log.saved")


@pytest.mark.parametrize("times", [1, 4])
@pytest.mark.parametrize("place", PLACES)
def test_killed_at_each_step(tmp_path: Path, place: str, times: int) -> None:
    """Each event is there once, in its order, wherever the writer was killed, and however often."""
    (tmp_path / "done").mkdir()
    statuses: list[int] = []
    for _ in range(2):
        environment = {
            **os.environ,
            "KETTLE_FAULT_POINTS": f"{place}=kill@{times}",
            "KETTLE_FAULT_ONCE": str(tmp_path / "done"),
        }
        done = subprocess.run(
            [sys.executable, "-c", KILLED, str(tmp_path)], env=environment, cwd=TOP, check=False
        )
        statuses.append(done.returncode)
    assert [-signal.SIGKILL, 0] == statuses
    assert list(range(1, 61)) == told(tmp_path / "EventLog")
    sequences = [int(heading["sequence"]) for heading in headings(tmp_path / "EventLog")]
    assert list(range(1, len(sequences) + 1)) == sequences


def test_ends_of_logs_in_each_form() -> None:
    """What a log says already is found in whatever form it is."""
    for options in ("", "XML", "JSON"):
        texts: Sequence[str] = [line(number, options).text for number in (1, 2, 2)]
        tail = Tail(texts[0][7:] + "".join(texts[1:]))
        assert [False, True, True, False] == [
            tail.already_written(t) for t in (texts[0], *texts[1:], texts[2])
        ]
