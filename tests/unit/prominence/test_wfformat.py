import json
from typing import Any

import pytest

from kettle.jobs.quoting import split_v2, unquote_v2
from kettle.prominence.faults import DocumentRefused, Fault
from kettle.prominence.wfformat import dag_of, dry_run, graph_of, read_instance

TASKS = "/workflow/specification/tasks"


def task(identifier: str, *parents: str, **parts: Any) -> dict[str, Any]:
    return {"name": "t", "id": identifier, "parents": list(parents), "children": [], **parts}


def ran(identifier: str, seconds: float, *words: str, **parts: Any) -> dict[str, Any]:
    command = {"program": words[0], "arguments": list(words[1:])} if words else {}
    return {"id": identifier, "runtimeInSeconds": seconds, "command": command, **parts}


def instance(*tasks: dict[str, Any], execution: list[dict[str, Any]] | None = None, **parts: Any) -> str:
    workflow: dict[str, Any] = {"specification": {"tasks": list(tasks), "files": []}}
    if execution is not None:
        workflow["execution"] = {
            "makespanInSeconds": 1,
            "executedAt": "x",
            "tasks": execution,
            "machines": [],
        }
    return json.dumps({"name": "small", "schemaVersion": "1.5", "workflow": workflow, "author": {}} | parts)


def faults(text: str) -> list[Fault]:
    with pytest.raises(DocumentRefused) as refusal:
        read_instance(text)
    return refusal.value.faults


DIAMOND = (
    task("a", children=["b", "c"]), task("b", "a"), task("c", "a"), task("d", "b", "c"),
)  # fmt: skip
TIMES = [ran("a", 1), ran("b", 5), ran("c", 2.5), ran("d", 1)]


@pytest.mark.parametrize("version", ["1.5", "1.6"])
def test_an_instance_is_measured_by_its_recorded_times(version: str) -> None:
    """What both ends say of an edge is one edge, and what an instance has besides is passed over."""
    found = read_instance(instance(*DIAMOND, execution=TIMES, schemaVersion=version))
    assert ((1, 2), (3,), (3,), ()) == graph_of(found).children
    shape = dry_run(found)
    assert (4, 3, 2, 7.0) == (shape.nodes, shape.height, shape.width, shape.seconds)
    assert ["a", "b", "d"] == shape.critical_path


def test_all_faults_of_an_instance_are_told() -> None:
    """Ids, edges and cycles with their places."""
    text = instance(task("alpha", "beta"), task("beta", "alpha"), task("alpha"), task("x", "alpha_"))
    assert [
        Fault(f"{TASKS}/2/id", 'two tasks have the id "alpha"'),
        Fault(f"{TASKS}/3/parents/0", 'there is no task with the id "alpha_"; did you mean alpha?'),
        Fault(TASKS, "tasks wait for each other in a cycle: alpha -> beta -> alpha"),
    ] == faults(text)
    assert ["/schemaVersion"] == [fault.pointer for fault in faults(instance(task("a"), schemaVersion="1.3"))]
    assert ["/workflow/specification/tasks"] == [fault.pointer for fault in faults(instance())]


def test_a_dag_has_the_programs_and_what_they_need() -> None:
    """Each task is a node; words of its command are those that the node's program gets."""
    words = ("/bin/run", "a b", "it's", 'say "x"', "$HOME", "", "ü")
    execution = [ran("a#1", 1, *words, coreCount=2, memoryInBytes=3 * 2**20 + 1), ran("a_1", 1, "tool")]
    text = dag_of(read_instance(instance(task("a#1"), task("a_1", "a#1"), execution=execution)))
    lines = [line.strip() for line in text.splitlines()]
    quoted = next(line for line in lines if line.startswith("arguments")).partition(" = ")[2]
    assert list(words[1:]) == [word.replace("$(DOLLAR)", "$") for word in split_v2(unquote_v2(quoted))]
    assert [
        "# small: 2 tasks", "JOB a_1 {", "executable = /bin/run", f"arguments = {quoted}", "transfer_executable = false",
        "request_cpus = 2", "request_memory = 4", "}", "JOB a_1_2 {", "executable = tool", "}", "PARENT a_1 CHILD a_1_2",
    ] == lines  # fmt: skip


def test_a_dag_may_replay_the_times() -> None:
    """Instances without commands can be run as well, faster than they were."""
    text = dag_of(read_instance(instance(*DIAMOND, execution=TIMES)), replay=0.1)
    assert ['"0.100"', '"0.500"', '"0.250"', '"0.100"'] == [
        line.partition(" = ")[2] for line in text.splitlines() if "arguments" in line
    ]
    assert text.endswith("PARENT a CHILD b c\nPARENT b CHILD d\nPARENT c CHILD d\n")


def test_a_task_without_a_command_is_told() -> None:
    """A submit description cannot have a line break in its arguments, either."""
    execution = [ran("a", 1), ran("b", 1, "x", "a\nb")]
    with pytest.raises(DocumentRefused) as refusal:
        dag_of(read_instance(instance(task("a"), task("b"), task("c"), execution=execution)))
    assert [f"{TASKS}/{number}" for number in range(3)] == [fault.pointer for fault in refusal.value.faults]
