"""`kettle logs`: the lines of all daemons in the order of their times."""

import json
from pathlib import Path

import pytest

from kettle.runtime.daemon_logs import LogFile
from kettle_services.cli.__main__ import main


@pytest.fixture
def home(tmp_path: Path) -> Path:
    log = tmp_path / "log"
    log.mkdir()
    (log / "schedd.log").write_text(
        '{"ts":"2026-01-01T10:00:00.000+00:00","level":"info","role":"schedd","logger":"x","msg":"ready","pid":7}\n'
        '{"ts":"2026-01-01T10:00:02.000+00:00","level":"error","role":"schedd","logger":"x","msg":"broken","exc":"Trace"}\n'
        "Fatal Python error\n"
    )
    (log / "startd.log").write_text(
        '{"ts":"2026-01-01T10:00:01.000+00:00","level":"warning","role":"startd","logger":"x","msg":"no room"}\n'
    )
    return tmp_path


def lines(home: Path, capsys: pytest.CaptureFixture[str], *words: str) -> list[str]:
    assert 0 == main(["logs", "--home", str(home), *words])
    return capsys.readouterr().out.splitlines()


def test_lines_of_all_daemons_by_time(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What has no time of its own stays behind the line before it."""
    said = lines(home, capsys)
    assert ["ready pid=7", "no room", "broken", "Trace", "Fatal Python error"] == [
        line.rpartition(": ")[2] for line in said
    ]
    assert " warning startd: " in said[1]


def test_one_daemon_the_last_lines_and_levels(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each choice alone and together."""
    assert ["schedd: Fatal Python error"] == lines(home, capsys, "-n", "1")
    assert 1 == len(lines(home, capsys, "startd"))
    said = [json.loads(line) for line in lines(home, capsys, "--level", "warning", "--json")]
    assert [("startd", "no room"), ("schedd", "broken")] == [(each["daemon"], each["msg"]) for each in said]
    assert 2 == main(["logs", "--home", str(home), "sched"])
    assert "did you mean schedd?; there are: schedd, startd" in capsys.readouterr().err
    assert 2 == main(["logs", "--home", str(home / "nowhere")])


def test_what_is_added_is_seen_once(home: Path) -> None:
    """Whole lines only, and from the beginning of a file that was put aside."""
    path = home / "log" / "startd.log"
    log = LogFile(path)
    assert 1 == len(list(log.more()))
    with path.open("a") as file:
        file.write('{"msg":"half')
    assert [] == list(log.more())
    with path.open("a") as file:
        file.write('"}\n')
    assert ["half"] == [line.fields["msg"] for line in log.more()]
    path.write_text('{"msg":"new"}\n')
    assert ["new"] == [line.fields["msg"] for line in log.more()]
