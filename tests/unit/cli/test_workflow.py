"""`kettle workflow`: documents of workflows, checked and translated."""

import json
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import pytest

from kettle_services.cli.__main__ import main

JOB: dict[str, Any] = {
    "name": "run",
    "resources": {"cpus": 1, "memory": 1, "walltime": 2},
    "tasks": [{"image": "centos:7", "runtime": "singularity", "cmd": "echo $x"}],
}
SWEEP = {
    "name": "f",
    "type": "parameterSweep",
    "jobs": ["run"],
    "parameters": [{"name": "x", "start": 0, "end": 1, "step": 0.1}],
}
INSTANCE: dict[str, Any] = {
    "name": "small",
    "schemaVersion": "1.5",
    "workflow": {"specification": {"tasks": [{"name": "t", "id": "a", "parents": [], "children": []}]}},
}


class Said(NamedTuple):
    status: int
    out: str
    err: str


class Typed(Protocol):
    def __call__(self, *words: str, document: object = None) -> Said: ...


@pytest.fixture
def typed(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Typed:
    """The output of `kettle workflow` in a directory in which the document is `w.json`."""
    monkeypatch.chdir(tmp_path)

    def run(*words: str, document: object = None) -> Said:
        (tmp_path / "w.json").write_text(json.dumps(document))
        status = main(["workflow", *words])
        said = capsys.readouterr()
        return Said(status, said.out, said.err)

    return run


def test_a_sound_workflow_is_measured(typed: Typed) -> None:
    """Instances of factories are counted; what has no effect is a warning."""
    document = {"name": "w", "jobs": [{**JOB, "preemptible": True}], "factories": [SWEEP]}
    said = typed("check", "w.json", document=document)
    assert (0, "warning: /jobs/0/policies/preemptible: preemptible has no effect\n") == (
        said.status,
        said.err,
    )
    shown = {line[:13].strip(): line[13:].strip() for line in said.out.splitlines()[1:]}
    expected = {"jobs": "1", "submitted": "11", "height": "1", "width": "11", "takes at most": "120 s"}
    assert expected == {name: shown[name] for name in expected}


def test_faults_are_told_to_people_and_to_programs(typed: Typed) -> None:
    """Each with its place; the exit status says so too."""
    document = {"jobs": [JOB, JOB], "dependencies": {"ran": ["run"]}}
    said = typed("check", "w.json", document=document)
    assert 1 == said.status
    assert '/jobs/1/name: all jobs must have unique names: "run" is that of jobs[0] too' in said.err
    answer = json.loads(typed("check", "--json", "w.json", document=document).out)
    assert [
        "/jobs/1/name",
        "/dependencies/ran",
    ] == [fault["pointer"] for fault in answer["faults"]]
    assert answer["faults"][1]["sentence"].endswith("did you mean run?")


def test_a_job_alone_is_checked_too(typed: Typed) -> None:
    """A document without jobs is that of one."""
    assert (0, "a job, with nothing wrong\n", "") == typed("check", "w.json", document=JOB)
    said = typed("check", "w.json", document={**JOB, "task": 1})
    assert (1, True) == (said.status, 'invalid item "task" in job description' in said.err)


def test_an_instance_becomes_a_dag(typed: Typed) -> None:
    """Without commands it can be replayed, and the other way is refused with the task."""
    said = typed("dag", "--replay", "1", "w.json", document=INSTANCE)
    assert (0, "") == (said.status, said.err)
    assert "JOB a {" in said.out
    answer = json.loads(typed("dag", "--json", "--replay", "1", "w.json", document=INSTANCE).out)
    assert {"faults": [], "dag": said.out} == answer
    said = typed("dag", "w.json", document=INSTANCE)
    assert (1, "") == (said.status, said.out)
    assert "/workflow/specification/tasks/0: a has no command that was recorded" in said.err
    assert 0 == typed("check", "w.json", document=INSTANCE).status
    said = typed("dag", "w.json", document=JOB)
    assert (1, "") == (said.status, said.out)
    assert "this is no instance of WfFormat" in said.err


def test_what_cannot_be_read_is_said(typed: Typed) -> None:
    """A file that is not there, and YAML."""
    said = typed("check", "none.json")
    assert (2, True) == (said.status, "none.json: No such file or directory" in said.err)
    said = typed("check", "w.yaml")
    assert (2, True) == (said.status, "w.yaml is YAML" in said.err)
