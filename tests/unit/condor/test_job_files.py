"""Jobs of job event logs and of files of ads."""

from pathlib import Path

import pytest

from kettle_services.condor.arguments.jobs import JobSelection
from kettle_services.condor.connections.job_files import ads_of_file, jobs_in_file, jobs_of_log, meant
from kettle_services.condor.errors import ToolError
from kettle_services.condor.printing.print_format import print_format_of
from kettle_services.condor.printing.print_table import PrintTable
from kettle_wire.ads.types import Ad
from kettle_wire.jobs import JobId

LOG = """\
000 (012.000.000) 2026-11-25 10:00:00 Job submitted from host: <127.0.0.1:9618>
...
000 (012.001.000) 2026-11-25 10:00:00 Job submitted from host: <127.0.0.1:9618>
...
000 (012.002.000) 2026-11-25 10:00:00 Job submitted from host: <127.0.0.1:9618>
...
001 (012.000.000) 2026-11-25 10:00:10 Job executing on host: <10.0.0.1:9618>
...
001 (012.001.000) 2026-11-25 10:00:10 Job executing on host: <10.0.0.2:9618>
...
012 (012.001.000) 2026-11-25 10:00:40 Job was held.
\tno more disk
\tCode 21 Subcode 3
...
005 (012.000.000) 2026-11-25 10:01:10 Job terminated.
\t(1) Normal termination (return value 3)
\t\tUsr 0 00:00:07, Sys 0 00:00:01  -  Run Remote Usage
\t\tUsr 0 00:00:00, Sys 0 00:00:00  -  Run Local Usage
\t\tUsr 0 00:00:07, Sys 0 00:00:01  -  Total Remote Usage
\t\tUsr 0 00:00:00, Sys 0 00:00:00  -  Total Local Usage
\t0  -  Run Bytes Sent By Job
\t0  -  Run Bytes Received By Job
\t0  -  Total Bytes Sent By Job
\t0  -  Total Bytes Received By Job
...
001 (012.002.000) 2026-11-25 10:02:00 Job executing on host: <10.0.0.1:9618>
...
005 (013.000.000) 2026-11-25 10:03:00 Job terminated.
\t(1) Normal termination (return value 0)
\t\tUsr 0 00:00:00, Sys 0 00:00:00  -  Run Remote Usage
\t\tUsr 0 00:00:00, Sys 0 00:00:00  -  Run Local Usage
\t\tUsr 0 00:00:00, Sys 0 00:00:00  -  Total Remote Usage
\t\tUsr 0 00:00:00, Sys 0 00:00:00  -  Total Local Usage
\t0  -  Run Bytes Sent By Job
\t0  -  Run Bytes Received By Job
\t0  -  Total Bytes Sent By Job
\t0  -  Total Bytes Received By Job
...
"""
HISTORY = """\
ClusterId = 1
ProcId = 0
Owner = "ada"
Requirements = Memory > 1
*** Offset = 0 ClusterId = 1 ProcId = 0 Owner = "ada" CompletionDate = 5
ClusterId = 2
ProcId = 0
Owner = "eve"
*** Offset = 90 ClusterId = 2 ProcId = 0 Owner = "eve" CompletionDate = 6
"""


@pytest.fixture
def log(tmp_path: Path) -> str:
    (path := tmp_path / "job.log").write_text(LOG)
    return str(path)


def test_jobs_are_as_their_log_says(log: str) -> None:
    """Of a job whose submission is not in it nothing is known."""
    done, held, running = jobs_of_log(log)
    names = ("ClusterId", "ProcId", "JobStatus", "LastJobStatus", "NumJobStarts", "RemoteWallClockTime")
    assert [[12, 0, 4, 2, 1, 60.0], [12, 1, 5, 2, 1, 30.0], [12, 2, 2, 1, 1, 0.0]] == [
        [ad[name] for name in names] for ad in (done, held, running)
    ]
    assert (3, False, 7.0, "<10.0.0.1:9618>") == tuple(
        done[name] for name in ("ExitCode", "ExitBySignal", "RemoteUserCpu", "LastRemoteHost")
    )
    assert done["CompletionDate"] == done["EnteredCurrentStatus"] != done["QDate"]
    assert ("no more disk", 21, 3) == (
        held["HoldReason"],
        held["HoldReasonCode"],
        held["HoldReasonSubCode"],
    )
    assert "<10.0.0.1:9618>" == running["RemoteHost"]
    assert "RemoteHost" not in held


def test_a_history_file_is_read(tmp_path: Path) -> None:
    """Lines of asterisks end an ad; so do empty ones."""
    (path := tmp_path / "history").write_text(HISTORY)
    ads = ads_of_file(str(path))
    assert [1, 2] == [ad["ClusterId"] for ad in ads]
    for chosen, expected in (
        (JobSelection(), [1, 2]),
        (JobSelection(owners=["eve"]), [2]),
        (JobSelection(clusters=[1], owners=["eve"]), [1, 2]),
        (JobSelection(jobs=[JobId(1, 0)]), [1]),
        (JobSelection(jobs=[JobId(1, 1)]), []),
        (JobSelection(constraint="ClusterId > 1"), [2]),
        (JobSelection(constraint="Nope > 1"), []),
    ):
        assert expected == [ad["ClusterId"] for ad in meant(ads, chosen)], chosen


@pytest.mark.parametrize(
    ("constraint", "chosen"),
    [
        ("1", True),
        ("2.0", True),
        ("NumJobStarts", True),
        ("0", False),
        ("0.0", False),
        ('"x"', False),
        ("undefined", False),
        ("1/0", False),
    ],
)
def test_a_number_is_a_condition(constraint: str, chosen: bool) -> None:
    """Other than zero it holds, as a schedd chooses; so it is with WHERE of a print format."""
    ads: list[Ad] = [{"NumJobStarts": 2}]
    expected = ads if chosen else []
    assert expected == meant(ads, JobSelection(constraint=constraint))
    assert expected == PrintTable(print_format_of(f"SELECT\nOwner\nWHERE {constraint}\n")).meeting(ads)


def test_what_cannot_be_read_is_refused(tmp_path: Path) -> None:
    """With its name, and what is wrong with it."""
    (path := tmp_path / "ads").write_text("ClusterId = \n")
    with pytest.raises(ToolError, match="ads cannot be read: "):
        ads_of_file(str(path))
    with pytest.raises(ToolError, match=r"Can't open .*none: No such file"):
        jobs_in_file(JobSelection(), 0, log=str(tmp_path / "none"))
    path.write_text("no log\n...\n")
    with pytest.raises(ToolError, match="ads cannot be read: "):
        jobs_of_log(str(path))
