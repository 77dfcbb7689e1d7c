"""The tables of condor_q, as the jobs come."""

from collections.abc import Sequence

import pytest

from kettle_services.condor.errors import ToolError
from kettle_services.condor.printing.print_format import print_format_of
from kettle_services.condor.printing.queue_output import write_table
from kettle_services.condor.printing.queue_views import VIEWS, FormatView, View
from kettle_services.condor.printing.queued_jobs import QueuedJobs, TableChoice
from kettle_services.condor.printing.values import Show
from kettle_wire.ads.types import Ad
from kettle_wire.commands.queue import Unmade

JOBS: list[Ad] = [
    {
        "ClusterId": 12,
        "ProcId": proc,
        "Owner": owner,
        "JobStatus": status,
        "QDate": 1000,
        "JobPrio": 0,
        "Cmd": "/bin/x",
        "RemoteWallClockTime": 100.0,
        "LastRemoteWallClockTime": 40.0,
        "RemoteUserCpu": 7.0,
        "RequestCpus": 1 + (proc > 1),
        "JobSetName": "night",
        "JobSetId": 3,
        "TotalSubmitProcs": 9,
    }
    for proc, owner, status in ((0, "ada", 1), (1, "ada", 1), (2, "ada", 5), (4, "eve", 1))
]


def lines(view: View, unmade: Sequence[Unmade] = ()) -> list[str]:
    """Each job comes alone."""
    found = [*view.begin()]
    for job in JOBS:
        assert [] == view.needs.of([job])
        found += view.add([job])
    return [line.rstrip() for line in "".join([*found, *view.end(unmade)]).splitlines()]


def written(capsys: pytest.CaptureFixture[str], choice: TableChoice, layout: str = "") -> list[str]:
    def ask(names: list[str], show: Show) -> None:
        assert "JobStatus" in names
        assert [] == show(JOBS[:2])
        assert [] == show(JOBS[2:])

    jobs = QueuedJobs("-- here\n", ask, [], "ada", lambda: {"held": 7, "idle": 1})
    write_table(jobs, choice, print_format_of(layout) if layout else None)
    return [line.rstrip() for line in capsys.readouterr().out.splitlines()]


def test_jobs_that_are_alike_are_one_line() -> None:
    """With how many they are, and which."""
    layout = print_format_of(
        "SELECT UNIQUE\nOwner WIDTH -4\nRequestCpus AS CPUS\nJobCount AS COUNT\nJobIds AS IDS\nGROUP BY\nOwner DESCENDING\n"
    )
    assert [
        "Owner CPUS COUNT IDS",
        "eve  2    1     12.4",
        "ada  1    2     12.0-1",
        "ada  2    1     12.2",
    ] == lines(FormatView(layout))
    with pytest.raises(ToolError, match=r"SELECT FROM AUTOCLUSTER is not carried out: .* SELECT UNIQUE"):
        FormatView(print_format_of("SELECT FROM AUTOCLUSTER\nJobCount\n"))


def test_clusters_that_are_made_little_by_little() -> None:
    """Also one none of whose jobs is in the queue now."""
    unmade = [
        Unmade(cluster=12, owner="ada", made=5, total=9, paused=0),
        Unmade(cluster=13, owner="eve", made=0, total=4, paused=1),
    ]
    _, first, second = lines(VIEWS["factory"](), unmade)
    assert ["ada", "4", "0", "3", "1", "5", "Norm"] == [first.split()[1], *first.split()[4:]]
    assert ["13.", "eve", "0", "0", "0", "0", "0", "Held"] == second.split()


def test_job_sets() -> None:
    assert ["3", "night", "ada", "6", "0", "2", "0", "1"] == lines(VIEWS["jobset"]())[1].split()


@pytest.mark.parametrize(
    ("choice", "title", "times"),
    [
        (TableChoice(batch=False), "RUN_TIME", "0+00:01:40"),
        (TableChoice(time_of="cpu"), "CPU_TIME", "0+00:00:07"),
        (TableChoice(time_of="current"), "RUN_TIME", "0+00:00:40"),
    ],
)
def test_the_time_that_was_asked_for(
    capsys: pytest.CaptureFixture[str], choice: TableChoice, title: str, times: str
) -> None:
    """All runs, the last one, or the processor's; a line for each job, and the totals."""
    found = written(capsys, choice)
    assert title in found[1]
    assert [times] * 4 == [line.split()[4] for line in found[2:6]]
    assert (
        "Total for query: 4 jobs; 0 completed, 0 removed, 3 idle, 0 running, 1 held, 0 suspended" == found[7]
    )
    assert found[8].startswith("Total for ada: 3 jobs; ")


def test_totals_of_a_print_format(capsys: pytest.CaptureFixture[str]) -> None:
    """The standard ones, none, or columns of one's own; a title unless it is not wanted."""
    standard = written(capsys, TableChoice(), "SELECT NOTITLE NOHEADER\nProcId\nSUMMARY STANDARD\n")
    assert ["0", "1", "2", "4", ""] == standard[:5]
    assert standard[5].startswith("Total for query: 4 jobs")
    for none in ("SUMMARY NONE\n", ""):
        assert ["-- here", "ProcId", "0", "1", "2", "4"] == written(
            capsys, TableChoice(), f"SELECT\nProcId\n{none}"
        )
    only = "SELECT NOTITLE\nSUMMARY\nJobs PRINTF '%d jobs'\nMyIdle PRINTF '%d mine'\nAllusersHeld AS H PRINTF '%d held'\n"
    assert ["", "4 jobs 2 mine 7 held"] == written(capsys, TableChoice(), only)
    assert "Total for query: 4 jobs" in written(capsys, TableChoice(totals=True))[2]
