"""condor_userlog: what jobs had of machines, by their log."""

from pathlib import Path

import pytest

from kettle.userlog import Aborted, Evicted, Executing, LogEvent, Submitted, Terminated, render
from kettle.userlog.events import CpuTimes
from kettle_services.condor.commands import userlog
from kettle_services.condor.errors import ToolError, WordsError
from kettle_wire.attempts import ExitRecord
from kettle_wire.jobs import JobId

HOUR = 3600
JOB, OTHER = JobId(12, 0), JobId(12, 1)
EVENTS: list[LogEvent] = [
    Submitted(job=JOB, at=0, host="<h>"),
    Executing(job=JOB, at=HOUR, host="<10.0.0.1:9618?alias=one>", slot="slot1@one"),
    Evicted(job=JOB, at=2 * HOUR, remote=CpuTimes(user=1800)),
    Executing(job=JOB, at=3 * HOUR, host="<10.0.0.2:9618?alias=two>", slot="slot1@two"),
    Terminated(job=JOB, at=6 * HOUR, exit=ExitRecord(code=0), run_remote=CpuTimes(user=5400)),
    Executing(job=OTHER, at=HOUR, host="<10.0.0.2:9618?alias=two>"),
    Aborted(job=OTHER, at=HOUR + 120),
    Executing(job=JobId(13, 0), at=HOUR, host="<10.0.0.2:9618>"),
]


@pytest.fixture
def log(tmp_path: Path) -> str:
    (tmp_path / "log").write_text("".join(map(render, EVENTS)))
    return str(tmp_path / "log")


def test_times_and_sums(log: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A run that did not end the job is lost; one that has not ended is not counted."""
    assert 0 == userlog.run("condor_userlog", [log])
    lines = capsys.readouterr().out.splitlines()
    assert "Job      Host            Start Time  Evict Time  Wall Time Good Time CPU Usage" == lines[1]
    assert ["12.0", "10.0.0.1"] == lines[2].split()[:2]
    assert ["0+01:00", "0+00:00", "0+00:00"] == lines[2].split()[-3:]
    assert ["0+03:00", "0+03:00", "0+01:30"] == lines[3].split()[-3:]
    assert [
        "Host/Job        Wall Time Good Time CPU Usage Avg Alloc  Avg Lost Goodput  Util.",
        "",
        "10.0.0.1          0+01:00   0+00:00   0+00:00   0+01:00   0+01:00    0.0%   0.0%",
        "10.0.0.2          0+03:02   0+03:00   0+01:30   0+01:31   0+00:02   98.9%  50.0%",
        "",
        "12.0              0+04:00   0+03:00   0+01:30   0+02:00   0+01:00   75.0%  50.0%",
        "12.1              0+00:02   0+00:00   0+00:00   0+00:02   0+00:02    0.0%   0.0%",
        "",
        "Total             0+04:02   0+03:00   0+01:30   0+01:20   0+00:31   74.4%  50.0%",
    ] == lines[6:]


def test_some_of_them(log: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert 0 == userlog.run("condor_userlog", ["-raw", "-hostname", "-j", "12.0", "-evict", log])
    assert ["12.0", "one"] == capsys.readouterr().out.splitlines()[-1].split()[:2]
    assert 0 == userlog.run("condor_userlog", ["-total", "-j", "99", log])
    assert capsys.readouterr().out.splitlines()[-1].startswith("Total             0+00:00")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([], "which log?"),
        (["none"], "Can't access file: none: No such file"),
        (["-j", "x", "log"], "'x' is not the id of a job"),
        (["-total", "-raw", "log"], "leave nothing"),
    ],
)
def test_what_cannot_be_told_is_refused(words: list[str], sentence: str) -> None:
    with pytest.raises((ToolError, WordsError), match=sentence.replace("?", r"\?")):
        userlog.run("condor_userlog", words)
