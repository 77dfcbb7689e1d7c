"""condor_wait: what it says of a log, in each form, and how little it loads for it."""

import subprocess
import sys
from pathlib import Path

import pytest

from kettle.userlog import (
    Aborted,
    ClusterRemove,
    ClusterSubmit,
    Executing,
    LogEvent,
    Submitted,
    Terminated,
    format_of,
    render,
)
from kettle_services.condor.commands import wait
from kettle_services.condor.errors import ToolError
from kettle_wire.attempts import ExitRecord
from kettle_wire.jobs import JobId

AT = 1_790_000_000
JOB = JobId(12, 0)
BEGUN: list[LogEvent] = [
    Submitted(job=JOB, at=AT, host="<h>"), Executing(job=JOB, at=AT, host="<h>", attributes=[("Cpus", "1")])
]  # fmt: skip
ENDED: list[LogEvent] = [Terminated(job=JOB, at=AT, exit=ExitRecord(code=0))]
FORMS = ("UTC", "XML UTC", "JSON UTC")


def written(path: Path, events: list[LogEvent], form: str) -> str:
    path.write_text("".join(render(event, None, format_of(form)) for event in events))
    return str(path)


@pytest.mark.parametrize("form", FORMS)
def test_who_begins_and_ends(form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = written(tmp_path / "log", [*BEGUN, *ENDED], form)
    assert 0 == wait.run("condor_wait", ["-status", log])
    moment = "2026-09-21 14:13:20Z 12.0"
    said = f"{moment} submitted\n{moment} executing\n{moment} completed\nAll jobs done.\n"
    assert said == capsys.readouterr().out


@pytest.mark.parametrize("form", FORMS)
def test_the_log_as_it_grows(form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = written(tmp_path / "log", [*BEGUN, *ENDED], form)
    assert 0 == wait.run("condor_wait", ["-echo", log])
    assert Path(log).read_text() == capsys.readouterr().out


@pytest.mark.parametrize("form", FORMS)
def test_jobs_that_are_still_to_come(form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """
    A cluster whose jobs come little by little is waited for to its last job, though all that came have ended.
    """
    cluster = JobId(12, -1)
    events = [
        ClusterSubmit(job=cluster, at=AT, host="<h>"),
        *BEGUN,
        Aborted(job=JOB, at=AT),
    ]
    assert 1 == wait.run("condor_wait", ["-wait", "0", written(tmp_path / "log", events, form)])
    events.append(ClusterRemove(job=cluster, at=AT, jobs=1, items=1))
    assert 0 == wait.run("condor_wait", ["-wait", "0", written(tmp_path / "log", events, form)])
    assert "Time expired.\nAll jobs done.\n" == capsys.readouterr().out


def test_a_log_in_two_forms(tmp_path: Path) -> None:
    """The sentence says in which line, and what to do."""
    text = render(BEGUN[0]) + render(ENDED[0], None, format_of("XML"))
    (tmp_path / "log").write_text(text)
    with pytest.raises(ToolError, match=r"log cannot be read: line 3: this is in XML.*agree on log_xml"):
        wait.run("condor_wait", [str(tmp_path / "log")])


@pytest.mark.parametrize("form", ["", "JSON"])
def test_little_is_loaded(form: str, tmp_path: Path) -> None:
    """Who waits for a log loads nothing that talks with a pool, and nothing that reads ads."""
    log = written(tmp_path / "log", [*BEGUN, *ENDED], form)
    code = "import sys; from kettle_services.condor.commands import wait; wait.run('', sys.argv[1:]); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code, log], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "kettle.userlog.reader" in loaded
    assert set() == loaded & {
        "asyncio",
        "nats",
        "kettle.classad",
        "kettle.client",
        "kettle_wire",
        "kettle.jobs",
    }
