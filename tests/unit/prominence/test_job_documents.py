import base64
import json
from typing import Any

import pytest

from kettle.prominence.faults import DocumentRefused, Fault
from kettle.prominence.job_documents import artifact_of, read_job
from kettle_wire.prominence.job import Artifact, Resources

SMALL: dict[str, Any] = {
    "resources": {"cpus": 1, "memory": 1},
    "tasks": [{"image": "centos:7", "runtime": "singularity"}],
}


def faults(document: object) -> list[Fault]:
    with pytest.raises(DocumentRefused) as refusal:
        read_job(json.dumps(document))
    return refusal.value.faults


def pointers(document: object) -> list[str]:
    return [fault.pointer for fault in faults(document)]


def test_defaults_are_the_documented_ones() -> None:
    """A job that says nothing of disk and time gets 10 GB and 720 minutes on one node."""
    assert Resources(cpus=1, memory=1.0, disk=10, walltime=720) == read_job(json.dumps(SMALL)).resources


def test_memory_may_be_a_fraction() -> None:
    """Newer clients send memory as 1.0, and 1.5 GB are 1.5 GB."""
    for said in ("1.0", "1.5"):
        assert (
            float(said)
            == read_job(json.dumps(SMALL).replace('"memory": 1', f'"memory": {said}')).resources.memory
        )


def test_older_forms_are_read() -> None:
    """Artifacts as texts, and retries and preemption outside of the policies, mean what they mean today."""
    job = read_job(
        json.dumps(
            SMALL
            | {"artifacts": ["in.tgz"], "numberOfRetries": 3, "preemptible": True, "constraints": {"a": 1}}
        )
    )
    assert [Artifact(url="in.tgz")] == [artifact_of(one) for one in job.artifacts]
    assert (3, True) == (job.policies.maximum_retries, job.policies.preemptible)


def test_what_the_clients_python_classes_misspell_is_read() -> None:
    """The class Policies of the client writes ignoreTaskTailures."""
    assert read_job(
        json.dumps(SMALL | {"policies": {"ignoreTaskTailures": True}})
    ).policies.ignore_task_failures


def test_all_faults_are_told_at_once() -> None:
    """Each has the pointer to its place and a sentence."""
    document: dict[str, Any] = {
        "resources": {"cpus": 0, "memory": "1", "dsik": 1},
        "tasks": [{"image": "a", "runtime": "docker"}, {"image": "s3://b", "runtime": "udocker"}, 3],
        "name": "../x!",
        "labels": {"a b": "c", "d": "e f"},
        "inputs": [{"filename": "..", "content": "&"}],
        "outputFiles": ["/etc/passwd", "a/../../b", "fine/*.out"],
        "policies": {"maximumTimeInQueue": -2, "placement": {"requirements": {"site": []}}},
    }
    assert {
        "/resources/cpus",
        "/resources/memory",
        "/resources/dsik",
        "/tasks/0/runtime",
        "/tasks/1/image",
        "/tasks/2",
        "/name",
        "/labels/a b",
        "/labels/d",
        "/inputs/0/filename",
        "/inputs/0/content",
        "/outputFiles/0",
        "/outputFiles/1",
        "/policies/maximumTimeInQueue",
        "/policies/placement/requirements/site",
    } == set(pointers(document))


def test_an_unknown_name_is_told_in_the_services_words_with_the_nearest() -> None:
    """Programs look for the words; people read on."""
    for document, expected in (
        (SMALL | {"task": 1}, 'invalid item "task" in job description; did you mean tasks?'),
        (
            SMALL | {"resources": {"cpus": 1, "memory": 1, "wall": 1}},
            'invalid item "wall" in resources; did you mean walltime?',
        ),
    ):
        assert expected == faults(document)[0].sentence


@pytest.mark.parametrize(
    ("resources", "sentence"),
    [
        (
            {"cpus": 1, "cpusRange": [1, 2], "memory": 1},
            "cpus and cpusRange exclude each other in resources: leave one of them",
        ),
        ({"memory": 1}, "one of cpus, cpusRange, cpusOptions must be given in resources"),
        ({"cpus": 1}, "one of memory, memoryPerCpu must be given in resources"),
        ({"cpusRange": [4, 2], "memory": 1}, "cpusRange must begin with the smaller number, not 4"),
        ({"cpusRange": [4], "memory": 1}, "cpusRange must have 2 items, not 1"),
        (
            {"cpus": 1, "memory": 1, "nodes": 2, "totalCpusRange": [1, 2]},
            "nodes and totalCpusRange exclude each other in resources: leave one of them",
        ),
        ({"cpus": 1, "memory": 0}, "memory must be more than 0, not 0"),
        ({"cpus": True, "memory": 1}, "cpus must be a whole number or null, not true"),
        (
            {"cpus": 1, "memory": 1, "gpuMemory": 8},
            "gpuMemory chooses among the GPUs that gpus asks for; add gpus",
        ),
    ],
)
def test_resources_that_contradict_themselves_are_refused(resources: object, sentence: str) -> None:
    """The sentence says what to change."""
    assert [sentence] == [fault.sentence for fault in faults(SMALL | {"resources": resources})]


@pytest.mark.parametrize(
    ("task", "pointer"),
    [
        ({"image": "a"}, "/tasks/0"),
        ({"image": "a", "runtime": "udocker", "app": "x"}, "/tasks/0/app"),
        ({"image": "a", "runtime": "udocker", "type": "openmpi"}, "/tasks/0"),
        ({"image": "a", "runtime": "udocker", "type": "openmpi", "cmd": ""}, "/tasks/0/cmd"),
        ({"image": "a", "runtime": "udocker", "type": "mpich", "cmd": "mpirun x"}, "/tasks/0/cmd"),
        ({"image": "a", "runtime": "udocker", "type": "sidecar"}, "/tasks"),
        ({"image": "a", "runtime": "udocker", "cmd": "echo 'x"}, "/tasks/0/cmd"),
        ({"image": "a", "runtime": "udocker", "cmd": "'' x"}, "/tasks/0/cmd"),
        ({"image": "a", "runtime": "udocker", "cmd": "x\0y"}, "/tasks/0/cmd"),
        (
            {"image": "a", "runtime": "udocker", "type": "openmpi", "cmd": "x", "procsPerNode": 2},
            "/tasks/0/procsPerNode",
        ),
        ({"image": "a", "runtime": "udocker", "procsPerNode": 1}, "/tasks/0/procsPerNode"),
        ({"image": "a", "runtime": "udocker", "env": {"PROMINENCE_CPUS": 1}}, "/tasks/0/env/PROMINENCE_CPUS"),
        ({"image": "a", "runtime": "udocker", "env": {"A=B": "1"}}, "/tasks/0/env/A=B"),
        ({"image": "a", "runtime": "udocker", "stdout": "../x"}, "/tasks/0/stdout"),
        ({"image": "a", "runtime": "udocker", "workdir": "/a/../b"}, "/tasks/0/workdir"),
        ({"image": "a", "runtime": "udocker", "imageSha256": "abc"}, "/tasks/0/imageSha256"),
    ],
)
def test_a_task_that_cannot_run_is_refused_where_it_says_so(task: object, pointer: str) -> None:
    """What is wrong with one task is told at its place."""
    assert [pointer] == pointers(SMALL | {"tasks": [task]})


def test_an_input_has_at_most_a_megabyte_and_a_name_of_its_own() -> None:
    """Only the last part of a name is kept, so two must not have the same."""
    content = base64.b64encode(b"x" * 1_000_001).decode()
    [fault] = faults(SMALL | {"inputs": [{"filename": "big", "content": content}]})
    assert fault.sentence.startswith("content has 1000001 bytes; the most are 1000000")
    twice = [{"filename": name, "content": ""} for name in ("a/x", "b/x")]
    assert ["/inputs/1/filename"] == pointers(SMALL | {"inputs": twice})


@pytest.mark.parametrize("text", ["", "[", "3", "null", '"x"', '{"a":NaN}', "[" * 100_000, b"\xff"])
def test_what_is_no_document_is_refused(text: str | bytes) -> None:
    """There is always a sentence."""
    with pytest.raises(DocumentRefused, match=r"."):
        read_job(text)


def test_a_pointer_escapes_what_pointers_are_made_of() -> None:
    """A name with / and ~ is written as RFC 6901 says."""
    assert ["/a~1b~0c"] == pointers(SMALL | {"a/b~c": 1})
