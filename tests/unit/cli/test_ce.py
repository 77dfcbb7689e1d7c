"""`kettle ce`, as far as it needs no pool: route files, and files of records."""

import json
from datetime import date
from pathlib import Path

import pytest

from kettle.routes.apel import apel_records, read_identities
from kettle_services.cli.__main__ import main
from kettle_services.cli.ce import accounting
from kettle_wire.ads.types import Ad

ROUTES = """\
JOB_ROUTER_ROUTE_NAMES = Slurm
JOB_ROUTER_ROUTE_Slurm @=end
    GridResource = "batch slurm"
    REQUIREMENTS Queue == "slurm"
    MaxJobs = 1
    SET BatchQueue "long"
@end
"""
ADS = 'ClusterId = 7\nProcId = 0\nQueue = "slurm"\n\nQueue = "slurm"\n'


@pytest.fixture
def routes(tmp_path: Path) -> str:
    (tmp_path / "ads").write_text(ADS)
    (tmp_path / "routes").write_text(ROUTES)
    return str(tmp_path / "routes")


def test_a_check_has_three_outcomes(routes: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Clean; only warnings, which fail it with --strict alone; refused."""
    assert 0 == main(["ce", "check", routes])
    assert f"{routes}: nothing is wrong (1 route).\n" == capsys.readouterr().out
    Path(routes).write_text(f"{ROUTES}JOB_ROUTER_MAX_JOB = 1\n")
    assert [0, 1] == [main(["ce", "check", routes]), main(["ce", "check", "--strict", routes])]
    warning = f"{routes}: line 8: there is no JOB_ROUTER_MAX_JOB; did you mean JOB_ROUTER_MAX_JOBS?\n"
    assert warning * 2 == capsys.readouterr().out
    Path(routes).write_text(ROUTES.replace('"long"', "$(long"))
    assert 2 == main(["ce", "check", routes])
    assert (
        f"{routes}: route Slurm, line 6: SET BatchQueue $(long: the macro call is not closed\n"
        == capsys.readouterr().err
    )
    assert 2 == main(["ce", "check", "--json", routes])
    assert [6] == [each["line"] for each in json.loads(capsys.readouterr().out)["refused"]]


def test_jobs_are_tried_one_after_the_other(routes: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The first one fills the route; each statement's effect is told on request."""
    words = ["ce", "route", routes, "--ads", str(Path(routes).parent / "ads")]
    assert 1 == main([*words, "--explain"])
    assert capsys.readouterr().out.splitlines() == [
        "job 7.0: Slurm",
        '  BatchQueue = "long"',
        '  GridResource = "batch slurm"',
        "  JobUniverse = 9",
        "  route Slurm, line 2: JobUniverse = 9",
        '  route Slurm, line 2: GridResource = "batch slurm"',
        '  route Slurm, line 6: BatchQueue = "long"',
        "job 2: no route",
        "  not Slurm: the route has 1 jobs of at most 1 (MaxJobs)",
    ]
    assert 1 == main([*words, "--json"])
    first, second = json.loads(capsys.readouterr().out)
    assert ("Slurm", "", "max_jobs") == (first["route"], second["route"], second["refusals"][0]["why"])


def test_old_routes_are_converted(routes: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A file that cannot be read is refused with its line."""
    Path(routes).write_text('JOB_ROUTER_ENTRIES = [ name = "N"; TargetUniverse = 5; ]\n')
    assert 0 == main(["ce", "convert", routes])
    assert "JOB_ROUTER_ROUTE_N @=end\n    UNIVERSE 5\n@end\n" in capsys.readouterr().out
    Path(routes).write_text("JOB_ROUTER_ENTRIES = [ name = ]\n")
    assert 2 == main(["ce", "convert", routes])
    assert f"{routes}: line 1: JOB_ROUTER_ENTRIES: " in capsys.readouterr().err


def test_the_files_of_a_day_are_written_once(tmp_path: Path) -> None:
    """Made again they are the same; one that is there stays, and a difference is told."""
    ran: Ad = {
        "GlobalJobId": "a#7.0#1",
        "Owner": "anna",
        "JobStartDate": 1,
        "CompletionDate": 9,
        "RemoteWallClockTime": 8,
    }
    rules = read_identities("anna /CN=anna /vo", "map")
    records = apel_records([ran, ran | {"GlobalJobId": "a#8.0#1", "Owner": "ben"}], rules)
    files = accounting.files_of(records, date(2026, 11, 25), "ce:9619/here", tmp_path)
    assert ["batch-20261125", "blah-20261125", "quarantine-20261125"] == [path.name for path in files]
    assert [1, 1, 1] == [text.count("\n") for text in files.values()]
    batch = tmp_path / "batch-20261125"
    assert f"{batch}: 1 job" == accounting.write_once(batch, files[batch])
    assert f"{batch} was written before" == accounting.write_once(batch, files[batch])
    assert "and differs" in accounting.write_once(batch, "other\n")
    assert files[batch] == batch.read_text()
