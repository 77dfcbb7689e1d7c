import json
from typing import Any

from kettle.prominence.dry_run import dry_run
from kettle.prominence.workflow_documents import read_workflow


def job(name: str, **parts: Any) -> dict[str, Any]:
    resources = {"cpus": 1, "memory": 1, "walltime": parts.pop("walltime", 1)}
    return {"name": name, "resources": resources, "tasks": [{"image": "a", "runtime": "udocker"}], **parts}


def test_a_workflow_is_measured_without_being_made() -> None:
    """Ten million instances are counted at once; the longest way is that of the walltimes."""
    document = {
        "name": "w",
        "jobs": [job("a"), job("b", walltime=10), job("c"), job("d")],
        "dependencies": {"a": ["b", "c"], "c": ["d"], "b": ["d"]},
        "factories": [{"name": "f", "type": "repeat", "number": 9_000_000, "jobs": ["c"]}],
    }
    found = dry_run(read_workflow(json.dumps(document)))
    assert (4, 9_000_003, 3, 9_000_001) == (found.jobs, found.nodes, found.height, found.width)
    assert (["a", "b", "d"], 720.0, True, []) == (
        found.critical_path, found.seconds, found.is_limit, found.warnings,
    )  # fmt: skip


def test_what_has_another_effect_than_one_may_think_is_a_warning() -> None:
    """
    Placement that is replaced, ends that are not reached, seeds that are chosen, and what nothing carries out.
    """
    placement = {"requirements": {"sites": ["x"]}}
    sweep = [{"name": "x", "start": 0, "end": 0.99, "step": 0.5}]
    sample = [{"name": "x", "start": 0, "end": 1}]
    document = {
        "jobs": [
            job("a", policies={"placement": placement, "preemptible": True}, constraints={"site": "x"}),
            job("b", storage={"type": "webdav", "mountpoint": "/m", "webdav": {"url": "u", "username": "n", "password": "p"}}),
        ],
        "policies": {"placement": placement},
        "factories": [
            {"name": "f", "type": "parameterSweep", "jobs": ["a"], "parameters": sweep},
            {"name": "g", "type": "randomSample", "jobs": ["b"], "number": 2, "parameters": sample},
        ],
    }  # fmt: skip
    found = dry_run(read_workflow(json.dumps(document)))
    assert [
        "/jobs/0/constraints", "/jobs/0/policies/preemptible", "/jobs/0/policies/placement", "/jobs/1/storage",
        "/factories/0/parameters/0/end", "/factories/1",
    ] == [warning.pointer for warning in found.warnings]  # fmt: skip
    assert "no whole number of steps leads to end 0.99: the last value is 0.5" == found.warnings[4].sentence
