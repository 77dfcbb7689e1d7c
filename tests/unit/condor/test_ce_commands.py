"""The commands of a compute entrypoint, as far as they need none."""

from pathlib import Path

import pytest

from kettle_services.condor.commands import (
    ce,
    ce_run,
    ce_verify_config,
    job_router_info,
    router_q,
    transform_ads,
)
from kettle_services.condor.errors import ToolError, WordsError
from kettle_services.condor.start import COMMANDS
from kettle_wire.ads.types import Ad
from kettle_wire.codes import JobStatus

ROUTES = """\
JOB_ROUTER_PRE_ROUTE_TRANSFORM_NAMES = Base
JOB_ROUTER_TRANSFORM_Base = SET RoutedJob true
JOB_ROUTER_ROUTE_NAMES = Slurm Here
JOB_ROUTER_ROUTE_Slurm @=end
    GridResource = "batch slurm"
    REQUIREMENTS Queue == "slurm"
    MaxJobs = 10000
    SET BatchQueue "long"
@end
JOB_ROUTER_ROUTE_Here @=end
    UNIVERSE VANILLA
    REQUIREMENTS Queue == "here"
    DELETE Queue
@end
"""
ADS = """\
ClusterId = 7
ProcId = 0
JobStatus = 2
RouteName = "Old"
Queue = "here"

ClusterId = 7
ProcId = 1
Queue = "nowhere"
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("routes").write_text(ROUTES)
    Path("ads").write_text(ADS)
    return tmp_path


def test_each_ce_command_says_what_it_is() -> None:
    """Those that are other commands name them."""
    assert set(ce.SAME) == {name for name, (module, _) in COMMANDS.items() if module == "ce"}
    assert set(ce.SAME.values()) <= set(COMMANDS)


@pytest.mark.usefixtures("here")
def test_routes_are_shown_in_their_order(capsys: pytest.CaptureFixture[str]) -> None:
    """With the transforms around them, as condor_job_router_info -config does."""
    assert 0 == job_router_info.run("condor_job_router_info", ["-config", "-routes", "routes"])
    assert capsys.readouterr().out == (
        "Pre-Route Transform : Base\n\tSET RoutedJob true\n\n"
        'Route 1\nName         : "Slurm"\nSource       : file\nUniverse     : 9\nMaxJobs      : 10000\n'
        'MaxIdleJobs  : 50\nGridResource : batch slurm\nRequirements : Queue == "slurm"\n'
        '\tGridResource = "batch slurm"\n\tREQUIREMENTS Queue == "slurm"\n\tMaxJobs = 10000\n\tSET BatchQueue "long"\n\n'
        'Route 2\nName         : "Here"\nSource       : file\nUniverse     : 5\nMaxJobs      : 100\n'
        'MaxIdleJobs  : 50\nGridResource : \nRequirements : Queue == "here"\n'
        '\tUNIVERSE VANILLA\n\tREQUIREMENTS Queue == "here"\n\tDELETE Queue\n\n'
    )


@pytest.mark.usefixtures("here")
def test_each_job_is_matched_with_reasons(capsys: pytest.CaptureFixture[str]) -> None:
    """What a route does not take is told with the clause that is not true."""
    words = ["-match-jobs", "-routes", "routes", "-jobads", "ads"]
    assert 0 == job_router_info.run("condor_job_router_info", words)
    assert capsys.readouterr().out == (
        "Matching jobs against routes to find candidate jobs: Slurm, Here\n"
        "Checking Job src=7.0 against all routes\n"
        '\tRoute does not match: Slurm: Queue == "slurm" is false\n'
        "\tRoute Matches: Here\n"
        "Checking Job src=7.1 against all routes\n"
        '\tRoute does not match: Slurm: Queue == "slurm" is false\n'
        '\tRoute does not match: Here: Queue == "here" is false\n'
        "1 candidate jobs found\n"
    )


def test_routed_ads_are_written(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As if nothing had been routed before, with each step."""
    words = [
        "-route-jobs",
        "out",
        "-log-steps",
        "-ignore-prior-routing",
        "-routes",
        "routes",
        "-jobads",
        "ads",
    ]
    assert 0 == job_router_info.run("condor_job_router_info", words)
    assert (here / "out").read_text() == (
        'ClusterId = 7\nJobStatus = 1\nJobUniverse = 5\nProcId = 0\nRoutedJob = true\nRouteName = "Here"\n\n'
    )
    steps = [line for line in capsys.readouterr().out.splitlines() if ", line " in line]
    assert steps == [
        "\troute Here, line 10: JobUniverse = 5",
        "\ttransform Base, line 2: RoutedJob = true",
        '\troute Here, line 13: Queue is taken away (it was "here")',
    ]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([], "say -config, -match-jobs or -route-jobs FILE"),
        (["-config", "-routes", "none"], "Can't open file none: No such file or directory"),
        (["-config", "-routes", "ads"], "there is no route"),
        (["-match-jobs", "-routes", "routes", "-jobads", "routes"], "ERROR: routes, line 6: "),
    ],
)
@pytest.mark.usefixtures("here")
def test_what_makes_no_sense_is_explained(words: list[str], sentence: str) -> None:
    with pytest.raises((ToolError, WordsError)) as refused:
        job_router_info.run("condor_job_router_info", words)
    assert sentence in str(refused.value)


def test_a_file_of_routes_is_verified(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Warnings are no failure."""
    assert 0 == ce_verify_config.run("condor_ce_verify_config", ["routes"])
    assert "routes: 2 routes can be used\n" == capsys.readouterr().out
    (here / "routes").write_text(ROUTES.replace("DELETE Queue", "SET A $(b"))
    assert 1 == ce_verify_config.run("condor_ce_verify_config", ["-quiet", "routes"])
    assert (
        "ERROR: routes: route Here, line 13: SET A $(b: the macro call is not closed\n"
        == capsys.readouterr().err
    )


def test_jobs_are_counted_by_route_and_status() -> None:
    """In the columns of condor_router_q -S."""
    slurm: Ad = {"RouteName": "Slurm", "GridResource": "batch slurm"}
    ads: list[Ad] = [slurm | {"JobStatus": 1}, slurm | {"JobStatus": 2}, slurm | {"JobStatus": 1}]
    ads.append({"RouteName": "Here", "JobStatus": 5})
    head = "   JOBS ST Route      GridResource\n"
    lines = [
        "      1  H Here\n",
        "      2  I Slurm      batch slurm\n",
        "      1  R Slurm      batch slurm\n",
    ]
    assert [head, *lines] == router_q.summed(ads, None)
    assert [head, lines[1]] == router_q.summed(ads, JobStatus.IDLE)


def test_a_host_stands_for_pool_and_name() -> None:
    """With the port of entrypoints."""
    assert ["-pool", "ce.example:9619", "-name", "ce.example"] == ce_run.reaching("ce.example")
    assert ["-pool", "ce.example:1", "-name", "ce.example"] == ce_run.reaching("ce.example:1")
    with pytest.raises(WordsError, match="which command"):
        ce_run.run("condor_ce_run", ["-l"])


def test_single_routes_and_transforms_are_tried(
    here: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    """By their names, from a file that configures them; old routes are converted."""
    (here / "conf").write_text(f"{ROUTES}JOB_TRANSFORM_One = SET A 1\nJOB_TRANSFORM_Two = SET B $(x:2)\n")
    words = ["-rules", "conf", "-jobroute", "Here", "-jobtransforms", "One,Two", "ads"]
    assert 0 == transform_ads.run("condor_transform_ads", words)
    first, second = capsysbinary.readouterr().out.decode().strip().split("\n\n")
    assert "Queue" not in first
    assert [2, 2] == [ad.count("A = 1") + ad.count("B = 2") for ad in (first, second)]
    with pytest.raises(ToolError, match="JOB_ROUTER_ROUTE_None is set neither"):
        transform_ads.run("condor_transform_ads", ["-rules", "conf", "-jobroute", "None", "ads"])
    (here / "old").write_text('JOB_ROUTER_ENTRIES = [ name = "N"; TargetUniverse = 5; set_A = 1; ]\n')
    assert 0 == transform_ads.run("condor_transform_ads", ["-convertoldroutes", "old"])
    assert b"JOB_ROUTER_ROUTE_N @=end\n    UNIVERSE 5\n    SET A 1\n@end\n" in capsysbinary.readouterr().out
