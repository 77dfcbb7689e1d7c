"""`kettle wait --log`: how far jobs are, from a job event log alone."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from kettle.client import JobState, Select
from kettle.testing.patience import PATIENCE_S
from kettle.userlog import (
    Aborted,
    ClusterRemove,
    ClusterSubmit,
    Evicted,
    Executing,
    Held,
    LogEvent,
    Released,
    Submitted,
    Suspended,
    Terminated,
    Unsuspended,
    format_of,
    render,
)
from kettle_services.cli.__main__ import main
from kettle_services.cli.job_event_log import LogProgress, watched
from kettle_wire.attempts import ExitRecord
from kettle_wire.jobs import JobId

AT = 1_790_000_000
FIRST, SECOND, CLUSTER = JobId(12, 0), JobId(12, 1), JobId(12, -1)


def ended(job: JobId, code: int = 0) -> Terminated:
    return Terminated(job=job, at=AT, exit=ExitRecord(code=code))


def written(path: Path, events: Sequence[LogEvent], form: str = "") -> str:
    path.write_text("".join(render(event, None, format_of(form)) for event in events))
    return str(path)


def test_where_a_job_is() -> None:
    """After each event that says so."""
    told, seen = LogProgress(Select()), list[str]()
    for event in (
        Submitted(job=FIRST, at=AT, host="<h>"), Executing(job=FIRST, at=AT, host="<h>"), Suspended(job=FIRST, at=AT),
        Unsuspended(job=FIRST, at=AT), Evicted(job=FIRST, at=AT), Held(job=FIRST, at=AT), Released(job=FIRST, at=AT),
        ended(FIRST, 3),
    ):  # fmt: skip
        told.add_event(event)
        seen.append(told.jobs[FIRST].status)
    assert ["idle", "running", "suspended", "running", "idle", "held", "idle", "completed"] == seen
    assert JobState("completed", 3) == told.jobs[FIRST]
    assert told.all_ended


def test_jobs_that_are_still_to_come() -> None:
    """A cluster whose jobs come little by little is over with its last one."""
    told = LogProgress(Select())
    told.add_event(ClusterSubmit(job=CLUSTER, at=AT, host="<h>"))
    told.add_event(Submitted(job=FIRST, at=AT, host="<h>"))
    told.add_event(ended(FIRST))
    assert not told.all_ended
    told.add_event(ClusterRemove(job=CLUSTER, at=AT, jobs=1, items=1))
    assert told.all_ended


@pytest.mark.parametrize("form", ["", "XML", "JSON"])
def test_the_status_says_how_they_ended(
    form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As without a log; other jobs of the file do not count when some are named."""
    begun = [Submitted(job=job, at=AT, host="<h>") for job in (FIRST, SECOND)]
    log = written(tmp_path / "log", [*begun, ended(FIRST), Aborted(job=SECOND, at=AT)], form)
    assert 1 == main(["wait", "--log", log])
    assert "1 of 2 jobs completed well; 1 ended badly: 12.1 (removed)." in capsys.readouterr().out
    assert 0 == main(["wait", "--log", log, "12.0"])
    assert 1 == main(["wait", "--log", log, "13", "--for", "0.01"])


def test_what_cannot_be_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It is said of which file, and where."""
    assert 1 == main(["wait", "--log", str(tmp_path / "nothing")])
    assert "No such file" in capsys.readouterr().err
    begun = Submitted(job=FIRST, at=AT, host="<h>")
    (tmp_path / "mixed").write_text(render(begun) + render(begun, None, format_of("JSON")))
    assert 1 == main(["wait", "--log", str(tmp_path / "mixed")])
    assert "line 3: this is in JSON" in capsys.readouterr().err
    assert 2 == main(["wait", "--log", "x", "--owner", "ann"])


async def test_a_log_that_grows(tmp_path: Path) -> None:
    """Each look that finds more is told, until all have ended."""
    path = tmp_path / "log"
    written(path, [Submitted(job=FIRST, at=AT, host="<h>")])
    seen: list[str] = []
    async with asyncio.timeout(PATIENCE_S):
        async for progress in watched(path, Select(clusters=[12])):
            seen.append(progress.jobs[FIRST].status)
            if not progress.ended:
                with path.open("a") as file:
                    file.write(render(ended(FIRST)))
    assert ["idle", "completed"] == seen
