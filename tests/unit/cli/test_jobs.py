"""Job ads as rows."""

from kettle_services.cli.tables.jobs import command_line, exit_text, history_row, queue_row, total_line
from kettle_wire.ads.types import Ad

AD: Ad = {
    "ClusterId": 3, "ProcId": 1, "Owner": "ada", "QDate": 0, "JobStatus": 2, "JobPrio": -5, "Cmd": "/bin/sh",
    "Arguments": "-c echo' 'it''''s", "RemoteWallClockTime": 10.0, "JobCurrentStartDate": 100, "MemoryUsage": 12,
}  # fmt: skip


def test_a_running_job_counts_its_present_run() -> None:
    """Earlier runs and the one that goes on are one time."""
    assert ["3.1", "ada", "0+00:00:15", "R", -5, "12.0", "sh -c echo it's"] == [
        cell for index, cell in enumerate(queue_row(AD, now=105.0)) if index != 2
    ]


def test_arguments_in_either_syntax() -> None:
    """Old ones stand as they are."""
    assert "a b 'c" == command_line({"Cmd": "/x/a", "Args": "b 'c"})
    assert "a" == command_line({"Cmd": "a", "Arguments": ""})


def test_how_a_job_ended() -> None:
    """A code, a signal, or nothing where it did not end by itself."""
    assert "3" == exit_text({"JobStatus": 4, "ExitCode": 3})
    assert "signal 9" == exit_text({"JobStatus": 4, "ExitSignal": 9})
    assert "" == exit_text({"JobStatus": 3, "ExitCode": 0})
    assert "X" == history_row({**AD, "JobStatus": 3})[4]


def test_totals() -> None:
    """The line that scripts look for."""
    expected = "Total for query: 2 jobs; 0 completed, 0 removed, 1 idle, 0 running, 1 held, 0 suspended"
    assert expected == total_line({"idle": 1, "held": 1})
