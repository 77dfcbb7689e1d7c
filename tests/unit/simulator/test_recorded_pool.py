"""A simulated pool is asked as a real one is: what its events say of a moment."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kettle_services.cli.__main__ import main

_STUDY = """\
model = "kettle"
[[platform]]
hosts = 3
cores = 2
memory = "4 GiB"
[[workload]]
jobs = 20
duration = "10 min"
every = "1 min"
user = "alice"
[[workload]]
jobs = 10
duration = "20 min"
every = "2 min"
cores = 2
user = "physics.bob"
[negotiator]
groups = { physics = { quota = 4 } }
[factors]
alice = 100
"""
"""Three hosts, of which two are for physics: bob has all that he may have, and alice waits for the third."""

Asked = Callable[..., Any]


@pytest.fixture(scope="module")
def events(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("simulated")
    (directory / "study.toml").write_text(_STUDY)
    assert 0 == main(
        ["simulate", "run", str(directory / "study.toml"), "--events", str(directory / "events")]
    )
    return directory / "events"


@pytest.fixture
def asked(events: Path, capfd: pytest.CaptureFixture[str]) -> Asked:
    def ask(*words: str, lines: bool = False) -> Any:
        capfd.readouterr()
        assert 0 == main([*words, "--simulated", str(events), "--json"])
        out = capfd.readouterr().out
        return [json.loads(line) for line in out.splitlines()] if lines else json.loads(out)

    return ask


def _files(place: Path) -> dict[str, bytes]:
    """All in a directory, by their paths below it."""
    return {str(path.relative_to(place)): path.read_bytes() for path in place.rglob("*") if path.is_file()}


def test_the_queue_is_that_of_the_moment(asked: Asked) -> None:
    """
    After half an hour alice has had three rounds of two jobs and bob one of two; of his, the fifth came at 8 minutes.
    """
    jobs = asked("q", "--at", "30m")
    running = [job["ClusterId"] for job in jobs if job["JobStatus"] == 2]
    assert ([8, 9, 10, 11], 23) == (running, len(jobs))
    assert asked("q", "--at", "30m", "--totals") == {
        "jobs": 23, "idle": 19, "running": 4, "held": 0, "suspended": 0, "removed": 0, "completed": 0,
    }  # fmt: skip
    assert [] == asked("q")


def test_jobs_are_chosen_as_in_a_real_queue(asked: Asked) -> None:
    bobs = asked(
        "q", "--at", "30m", "--owner", "bob", "--constraint", "JobStatus == 1", "--attributes", "ClusterId"
    )
    assert [14, 17, 20, 23, 26, 29] == [job["ClusterId"] for job in bobs]
    assert 2 == len(asked("q", "--at", "30m", "--limit", "2"))
    assert [9] == [job["ClusterId"] for job in asked("q", "9", "--at", "30m")]


def test_why_says_what_the_negotiator_said(asked: Asked) -> None:
    bob, alice = asked("why", "14.0", "--at", "30m"), asked("why", "12.0", "--at", "30m")
    assert "quota" == bob["rejection"]["cause"]
    assert any("physics.bob has 4 of 4" in sentence for sentence in bob["sentences"])
    assert "Job 12.0 has been idle for 23 min 0 s." == alice["sentences"][0]
    assert 3 == alice["analysis"]["slots"]
    assert "runs on slot1_1@host0-1, for 10 min" in asked("why", "8.0", "--at", "30m")["sentences"][0]
    assert "exited with code 0 after 20 min" in asked("why", "2.0", "--at", "30m")["sentences"][0]
    groups = asked("why", "--at", "30m")["groups"]
    assert [13, 6, 4] == [group["jobs"] for group in groups]


def test_shares_are_those_of_the_accountant(asked: Asked) -> None:
    """Up to then bob has had four cores for half an hour, and alice two for all but the first minutes."""
    found = asked("fairshare", "--at", "30m")
    people = {one["name"]: one for one in found["submitters"]}
    assert {"alice": 100.0, "physics.bob": 1000.0} == {name: one["factor"] for name, one in people.items()}
    assert 58 / 60 == pytest.approx(people["alice"]["hours"], abs=0.05)
    assert 1.93 == pytest.approx(people["physics.bob"]["hours"], abs=0.05)
    assert {"<none>": 2.0, "physics": 4.0} == {one["name"]: one["allotted"] for one in found["groups"]}


def test_events_of_a_job_end_at_the_moment(asked: Asked) -> None:
    kinds = [line["event"].partition("/")[0] for line in asked("events", "8.0", "--at", "30m", lines=True)]
    assert ["cluster.submitted", "job.assigned", "job.started"] == kinds
    later = asked("events", "8.0", lines=True)
    assert (4, 2400.0) == (len(later), later[-1]["at"])


def test_the_log_is_read_from_the_files(asked: Asked) -> None:
    then = asked("log", "at", "1970-01-01T00:30:00Z")
    assert 23 == len(then["jobs"])
    assert ["host0-1", "host0-2", "host0-3"] == [machine["machine"] for machine in then["machines"]]
    assert {"alice", "bob"} <= {owner["owner"] for owner in then["owners"]}
    assert then["cycle"] is not None
    shown = asked("log", "show", "--job", "3.0", lines=True)
    assert ["cluster.submitted/1", "job.assigned/1", "job.started/1", "job.completed/2"] == [
        line["type"] for line in shown
    ]


def test_the_same_run_makes_the_same_files(events: Path, tmp_path: Path) -> None:
    study = tmp_path / "study.toml"
    study.write_text(_STUDY)
    assert 0 == main(["simulate", "run", str(study), "--events", str(tmp_path / "again")])
    first, again = _files(events), _files(tmp_path / "again")
    assert 10 == len(first)
    assert first == again


def test_a_run_does_not_depend_on_how_texts_are_hashed(events: Path, tmp_path: Path) -> None:
    """Another process, in which sets of texts have other orders: not a byte is different."""
    study = tmp_path / "study.toml"
    study.write_text(_STUDY)
    words = ["simulate", "run", str(study), "--events", str(tmp_path / "again"), "--json"]
    code = f"from kettle_services.cli.__main__ import main; raise SystemExit(main({words!r}))"
    environ = {**os.environ, "PYTHONHASHSEED": "4711"}
    subprocess.run([sys.executable, "-c", code], env=environ, check=True, stdout=subprocess.DEVNULL)
    assert _files(events) == _files(tmp_path / "again")


def test_a_run_that_is_recorded_is_the_same_run(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Also if hosts fail and jobs make room for others meanwhile."""
    study = tmp_path / "study.toml"
    study.write_text(_STUDY.replace("[[workload]]", "mtbf = '2 h'\nrepair = '5 min'\n[[workload]]", 1))
    found: list[Any] = []
    for more in ([], ["--events", str(tmp_path / "events")]):
        assert 0 == main(["simulate", "run", str(study), "--json", *more])
        found.append(json.loads(capfd.readouterr().out))
    assert found[0] == found[1]
    assert found[0]["runs"][0]["all"]["lost_core_hours"] > 0


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["q", "--at", "soon"], "'soon' is no span of time"),
        (["events"], "kettle log show --simulated"),
        (["events", "8.0", "-f"], "kettle log show --simulated"),
        (["fairshare", "--since", "1d"], "ask for a moment: --at"),
        (["log", "show", "-f"], "nothing follows"),
        (["why", "99.0"], "there is no job 99.0"),
        (["q", "--constraint", "a +"], "cannot be read"),
    ],
)
def test_what_cannot_be_asked_is_refused(
    events: Path, capfd: pytest.CaptureFixture[str], words: list[str], sentence: str
) -> None:
    assert main([*words, "--simulated", str(events)]) in {1, 2}
    assert sentence in capfd.readouterr().err


def test_events_of_something_else_are_refused(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert 1 == main(["q", "--simulated", str(tmp_path)])
    assert "has no simulation.json: name a directory that kettle simulate run --events has written" in (
        capfd.readouterr().err
    )
    newer = '{"version": 2, "kettle": "9.0", "file": "", "sha256": "", "seed": 0, "rules": {}}'
    (tmp_path / "simulation.json").write_text(newer)
    assert 1 == main(["q", "--simulated", str(tmp_path)])
    assert "was written by release 9.0, which is newer" in capfd.readouterr().err
