"""`kettle simulate`: what people see of it."""

import json
import sys
from pathlib import Path

import pytest

from kettle_services.cli.__main__ import main

_FILE = """\
[platform]
hosts = 2
cores = 2

[[workload]]
jobs = 8
duration = "1 min"
user = "alice"
"""


@pytest.fixture
def study(tmp_path: Path) -> Path:
    path = tmp_path / "study.toml"
    path.write_text(_FILE)
    return path


def test_a_run_says_how_long_jobs_waited(study: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert 0 == main(["simulate", "run", str(study)])
    titles, row, *_ = capfd.readouterr().out.splitlines()
    assert titles.split()[:6] == ["USER", "JOBS", "ENDED", "MAKESPAN", "WAIT", "MEDIAN"]
    assert row.split()[:6] == ["alice", "8", "8", "2", "min", "0"]
    assert "100.0%" in row


def test_several_seeds_are_several_runs(study: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert 0 == main(["simulate", "run", str(study), "--seed", "3", "--seed", "4", "--json"])
    runs = json.loads(capfd.readouterr().out)["runs"]
    assert [(run["seed"], run["all"]["wait_mean"]) for run in runs] == [(3, 30.0), (4, 30.0)]


def test_jobs_are_written_as_a_table(study: Path, tmp_path: Path) -> None:
    table = tmp_path / "jobs.csv"
    assert 0 == main(["simulate", "run", str(study), "--jobs", str(table)])
    lines = table.read_text().splitlines()
    assert lines[0] == "job,user,cores,nodes,memory,submitted,started,ended,reported"
    assert lines[8] == "7,alice,1,1,0,0.0,60.0,120.0,120.0"


def test_a_check_says_what_there_is_and_what_cannot_be(
    study: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert 0 == main(["simulate", "check", str(study)])
    assert "2 hosts with 4 cores; 8 jobs of 1 user" in capfd.readouterr().out
    study.write_text(_FILE + "cores = 3\n")
    assert 1 == main(["simulate", "check", str(study)])
    assert "job 0: no host has 3 cores" in capfd.readouterr().err


def test_a_slip_is_refused(study: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert 2 == main(["simulate", "run", str(study), "--jobs", "jobs.txt"])
    assert "a table is *.csv or *.parquet" in capfd.readouterr().err


def test_drawings_are_written(study: Path, tmp_path: Path) -> None:
    assert 0 == main(["simulate", "run", str(study), "--svg", str(tmp_path / "new" / "drawings")])
    names = sorted(path.name for path in (tmp_path / "new" / "drawings").iterdir())
    assert names == ["cores.svg", "gantt.svg", "shares.svg", "waits.svg"]
    assert 2 == main(["simulate", "run", str(study), "--svg", str(tmp_path), "--seed", "1", "--seed", "2"])


def test_a_comparison_says_what_matters(
    study: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    study.write_text(_FILE.replace("8", "80").replace('"1 min"', '{ kind = "exponential", mean = 60 }'))
    larger, longer = tmp_path / "larger.toml", tmp_path / "longer.toml"
    larger.write_text(study.read_text().replace("cores = 2", "cores = 4"))
    longer.write_text(study.read_text().replace("hosts = 2", "hosts = 2\nspeed = 1.01"))
    assert 0 == main(["simulate", "compare", str(study), str(longer), str(larger), "--seeds", "4"])
    said = capfd.readouterr().out
    assert "platform.cores: 2 -> 4" in said
    assert f"What matters most is {larger} (platform.cores: 2 -> 4): mean wait is " in said.splitlines()[-1]
    assert 0 == main(["simulate", "compare", str(study), str(larger), "--seeds", "3", "--json"])
    one = json.loads(capfd.readouterr().out)["compared"][0]
    wait = next(each for each in one["differences"] if each["measure"] == "wait_mean")
    assert wait["difference"] + wait["margin"] < 0
    assert wait["seeds"] == 3


def test_a_comparison_of_equals_or_of_one_seed_says_so(
    study: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert 0 == main(["simulate", "compare", str(study), str(study), "--seeds", "2"])
    assert "neither waits nor the makespan differ by more than chance" in capfd.readouterr().out
    assert 0 == main(["simulate", "compare", str(study), str(study), "--seeds", "1"])
    assert "One seed does not tell" in capfd.readouterr().out
    assert 2 == main(["simulate", "compare", str(study)])


def test_jobs_that_never_end_are_told(study: Path, capfd: pytest.CaptureFixture[str]) -> None:
    study.write_text(_FILE.replace("cores = 2", 'cores = 2\nleaves = "90 s"'))
    assert 0 == main(["simulate", "run", str(study)])
    said = capfd.readouterr()
    assert "4 jobs never ended." in said.out + said.err
    assert "LOST HOURS" in said.out


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_run_that_was_kept_is_drawn_as_it_was(
    study: Path, tmp_path: Path, kind: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """The table says enough for cores, shares and waits; of the hosts it says nothing."""
    table, at_once, later = tmp_path / f"jobs.{kind}", tmp_path / "once", tmp_path / "later"
    assert 0 == main(["simulate", "run", str(study), "--jobs", str(table), "--svg", str(at_once)])
    assert 0 == main(["simulate", "plot", str(table), str(later), "--cores", "4"])
    assert str(later / "waits.svg") in capfd.readouterr().out
    for name in ("cores.svg", "shares.svg", "waits.svg"):
        assert (at_once / name).read_text() == (later / name).read_text()
    assert "Gantt" not in (later / "gantt.svg").read_text()
    assert 0 == main(["simulate", "plot", str(study), str(tmp_path / "played")])
    assert (at_once / "gantt.svg").read_text() == (tmp_path / "played" / "gantt.svg").read_text()


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("job,user\n1,ada\n", "it has no column cores"),
        (
            "user,cores,nodes,memory,submitted,started,ended,reported\nada,x,1,0,0,1,2,2\n",
            "line 2: this is no job",
        ),
        (
            "user,cores,nodes,memory,submitted,started,ended,reported\nada,0,1,0,0,1,2,2\n",
            "line 2: a job has from 1 to",
        ),
        (
            f"user,cores,nodes,memory,submitted,started,ended,reported\nada,{'9' * 30},1,0,0,1,2,2\n",
            "line 2: a job has from 1 to",
        ),
        (
            "user,cores,nodes,memory,submitted,started,ended,reported\nada,1,1,0,0,inf,2,2\n",
            "line 2: this is no job: inf is no time in seconds",
        ),
        ("user,cores,nodes,memory,submitted,started,ended,reported\n", "there is no job in it"),
    ],
)
def test_a_table_that_is_none_is_refused(
    tmp_path: Path, text: str, sentence: str, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "jobs.csv").write_text(text)
    assert 1 == main(["simulate", "plot", str(tmp_path / "jobs.csv"), str(tmp_path / "drawings")])
    assert sentence in capfd.readouterr().err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--since", "1d"], "--since is about a recorded period: say --from log"),
        (["--from", "log"], "--from log needs --since"),
        (["--from", "log", "--since", "1d", "--seed", "1"], "--seed is about a platform and a workload"),
        (["--from", "log", "--since", "1d", "--skip-bad"], "--skip-bad is about a platform and a workload"),
    ],
)
def test_a_simulation_is_of_a_platform_or_of_a_recorded_period(
    study: Path, capfd: pytest.CaptureFixture[str], words: list[str], says: str
) -> None:
    assert 2 == main(["simulate", "run", str(study), *words])
    assert says in capfd.readouterr().err


def test_png_needs_its_library_and_a_place(
    study: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert 2 == main(["simulate", "run", str(study), "--png"])
    assert "say where, with --svg DIRECTORY" in capfd.readouterr().err
    monkeypatch.setitem(sys.modules, "resvg_py", None)
    assert 1 == main(["simulate", "plot", str(study), str(tmp_path / "drawings"), "--png"])
    assert "PNG needs the extra kettle[png]" in capfd.readouterr().err


def test_accounting_groups_have_figures_of_their_own(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """
    Two of physics, of which one is in a group below it, wait as their jobs do together; who is in no group is in none.
    """
    study = tmp_path / "study.toml"
    users = ("physics.ada", "physics.cms.bob", "cyd")
    study.write_text(
        'model = "kettle"\nnegotiator.groups = { physics = { quota = 2 }, "physics.cms" = { quota = 1 } }\n'
        "[platform]\ncores = 3\n"
        + "".join(f'[[workload]]\njobs = 4\nduration = 60\nuser = "{user}"\n' for user in users)
    )
    assert 0 == main(["simulate", "run", str(study), "--json"])
    [run] = json.loads(capfd.readouterr().out)["runs"]
    assert {"physics": 8, "physics.cms": 4} == {name: one["jobs"] for name, one in run["groups"].items()}
    of_users = [run["users"][user]["wait_mean"] for user in users]
    assert of_users[1] == run["groups"]["physics.cms"]["wait_mean"]
    assert sum(of_users[:2]) / 2 == pytest.approx(run["groups"]["physics"]["wait_mean"])
    assert 0 == main(["simulate", "run", str(study)])
    assert "<physics.cms>" in capfd.readouterr().out
