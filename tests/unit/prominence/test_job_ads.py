import json
from base64 import b64encode
from typing import Any

import msgspec
import pytest

from kettle.classad import ClassAd, Context, evaluate_attribute, matches, parse, rank
from kettle.jobs.match_references import unknown
from kettle.prominence.faults import DocumentRefused
from kettle.prominence.job_ads import Surroundings, submission
from kettle.prominence.job_documents import read_job
from kettle.prominence.pull_credentials import taken_out
from kettle.tasks.reading import read_tasks
from kettle_wire.ads import Ad, Expr
from kettle_wire.tasks import Artifact, Output, Task

SLOT: Ad = {
    "Arch": "X86_64", "HasContainer": True, "HasDockerURL": True, "HasFileTransfer": True,
    "Cpus": 4, "Memory": 4000, "Disk": 20 * 1024 * 1024, "Requirements": True, "Site": "CERN-PROD", "Region": "EU",
}  # fmt: skip
HERE = Surroundings(
    arch="X86_64",
    upload=lambda name: f"https://store/uploads/{name}?sig=1",
    output=lambda path: f"https://store/scratch/{path}?sig=2",
)


def submitted(around: Surroundings = HERE, **parts: Any) -> Ad:
    document = {
        "resources": {"cpus": 1, "memory": 1},
        "tasks": [{"image": "centos:7", "runtime": "singularity", "cmd": "echo hello"}],
    }
    return submission(read_job(json.dumps(document | parts)), around).ad


def fits(ad: Ad, **slot: Any) -> bool:
    return matches(ClassAd.from_wire(ad), ClassAd.from_wire(SLOT | slot))


def asked(ad: Ad, name: str, **slot: Any) -> object:
    now = Context(now=lambda: 2**32)
    return evaluate_attribute(name, ClassAd.from_wire(ad), ClassAd.from_wire(SLOT | slot), now)


def test_resources_are_requests() -> None:
    """A GB of memory is 1000 MiB, rounded up; a GB of disk a GiB."""
    ad = submitted(resources={"cpus": 2, "memory": 1.0001, "disk": 3})
    assert (2, 1001, 3 * 1024 * 1024) == (ad["RequestCpus"], ad["RequestMemory"], ad["RequestDisk"])


@pytest.mark.parametrize(
    ("resources", "cpus", "expected"),
    [
        ({"cpusRange": [2, 6]}, 4, (4, 4000)),
        ({"cpusRange": [2, 6]}, 8, (6, 6000)),
        ({"cpusRange": [2, 6]}, 1, (2, 2000)),
        ({"cpusOptions": [2, 4]}, 4, (4, 4000)),
        ({"cpusOptions": [2, 4]}, 3, (2, 2000)),
        ({"cpus": 3}, 8, (3, 3000)),
    ],
)
def test_a_job_takes_of_a_slot_what_it_can_use(
    resources: dict[str, object], cpus: int, expected: tuple[int, int]
) -> None:
    """Memory for each CPU follows the number that the job gets."""
    ad = submitted(resources={**resources, "memoryPerCpu": 1})
    assert expected == (asked(ad, "RequestCpus", Cpus=cpus), asked(ad, "RequestMemory", Cpus=cpus))
    assert fits(ad, Cpus=cpus, Memory=8000) == (cpus >= expected[0])


def test_more_cpus_are_better_within_the_range() -> None:
    """Of two slots the job prefers the one of which it can use more."""
    ad = ClassAd.from_wire(submitted(resources={"cpusRange": [2, 6], "memory": 1}))
    few, most, more = (rank(ad, ClassAd.from_wire(SLOT | {"Cpus": cpus})) for cpus in (4, 6, 64))
    assert few < most == more


def test_placement_requires_and_prefers() -> None:
    """
    A site that is required excludes the others; the first preference counts most, and CPUs only after it.
    """
    ad = submitted(policies={"placement": {"requirements": {"sites": ['a"b', "CERN-PROD"]}}})
    assert fits(ad)
    assert not fits(ad, Site="other")
    assert not fits({**ad}, Site=Expr("undefined"))
    wishes = {"preferences": {"sites": ["A", "B"], "regions": ["EU"]}}
    job = ClassAd.from_wire(
        submitted(resources={"cpusRange": [1, 8], "memory": 1}, policies={"placement": wishes})
    )
    ranks = [
        rank(job, ClassAd.from_wire(SLOT | {"Site": site, "Region": region, "Cpus": cpus}))
        for site, region, cpus in (
            ("A", "EU", 1),
            ("A", "US", 1),
            ("B", "US", 8),
            ("C", "US", 8),
            ("C", "US", 1),
        )
    ]
    assert sorted(ranks, reverse=True) == ranks
    assert len(ranks) == len(set(ranks))


def test_gpus_are_chosen_by_memory_and_model() -> None:
    """The expressions are those that request_gpus and require_gpus make."""
    ad = submitted(
        resources={"cpus": 1, "memory": 1, "gpus": 2, "gpuMemory": 8, "gpuModels": ["Tesla T4", 'x"y']}
    )
    assert 2 == ad["RequestGPUs"]
    assert Expr('GlobalMemoryMb >= 8000 && member(DeviceName,{ "Tesla T4","x\\"y" })') == ad["RequireGPUs"]


def test_policies_are_attributes_of_the_job() -> None:
    """Retries, time in the queue, priority, leaving and labels are where the schedd looks."""
    ad = submitted(
        name="a/b",
        labels={"app": "x.y/z"},
        notifications=[{"event": "jobFinished", "type": "email"}],
        policies={
            "maximumRetries": 2, "maximumTimeInQueue": 10, "priority": 5, "leaveInQueue": True,
            "autoScalingType": "shared", "maximumIdleTimePerResource": 3,
        },
    )  # fmt: skip
    expected = {
        "JobPrio": 5, "JobMaxRetries": 2, "ProminenceLabel_app": "x.y/z", "ProminenceName": "a/b",
        "ProminenceAutoScalingType": "shared", "ProminenceMaximumIdleTime": 180, "JobNotification": 2,
        "AllowedExecuteDuration": 3 * 720 * 60,
    }  # fmt: skip
    assert expected == {name: ad[name] for name in expected}
    tried = {"NumJobCompletions": 2, "ExitCode": 1}
    assert [False, True, True] == [
        asked(ad | tried | more, "OnExitRemove") for more in ({}, {"NumJobCompletions": 3}, {"ExitCode": 0})
    ]
    waiting = ad | {"JobStatus": 1, "NumJobStarts": 0, "QDate": 0}
    assert [True, False, False] == [
        asked(waiting | more, "PeriodicRemove") for more in ({}, {"QDate": 2**32 - 599}, {"NumJobStarts": 1})
    ]
    assert [True, False] == [
        asked(ad | {"EnteredCurrentStatus": at}, "LeaveJobInQueue") for at in (2**32 - 599, 0)
    ]


@pytest.mark.parametrize("minutes", [0, -1])
def test_a_job_may_wait_without_limit(minutes: int) -> None:
    """0 and -1 remove no job from the queue."""
    assert "PeriodicRemove" not in submitted(policies={"maximumTimeInQueue": minutes})


def test_tasks_are_what_the_starter_runs() -> None:
    """
    Images, words of commands, artifacts and outputs become those of the job's tasks, with URLs where files are stored.
    """
    ad = submitted(
        Surroundings(
            arch="X86_64", upload=HERE.upload, output=HERE.output, parameters={"x": "it's $y"}, workflow=7
        ),
        resources={"cpus": 1, "memory": 1, "walltime": 5},
        tasks=[
            {
                "image": "centos:7",
                "runtime": "singularity",
                "cmd": "echo 'a b' $HOME",
                "env": {"A": 1.0, "B": True},
            },
            {"image": "mine.sif", "runtime": "singularity", "imageSha256": "AB" * 32, "type": "sidecar"},
            {"image": "https://x/y.tar", "runtime": "udocker", "workdir": "w", "stdout": "o"},
        ],
        artifacts=["group/in.tgz", {"url": "http://x/z.zip", "mountpoint": "z:/z", "executable": True}],
        outputFiles=["*.dat"],
        outputDirs=["out"],
        policies={"maximumTaskRetries": 2, "ignoreTaskFailures": True, "reportJobSuccessOnTaskFailure": True},
    )
    found = read_tasks(ad["KettleTasks"])
    parameter = {"PROMINENCE_PARAMETER_x": "it's $y"}
    assert (
        Task(
            image="docker://centos:7",
            cmd=("echo", "a b", "$HOME"),
            env={"A": "1", "B": "true", **parameter},
        ),
        Task(image="https://store/uploads/mine.sif?sig=1", env=parameter, type="sidecar", sha256="ab" * 32),
        Task(image="https://x/y.tar", env=parameter, workdir="w", stdout="o"),
    ) == found.tasks
    assert (
        Artifact(url="https://store/uploads/group/in.tgz?sig=1", name="in.tgz"),
        Artifact(url="http://x/z.zip", mountpoint="z:/z", executable=True),
    ) == found.artifacts
    assert (
        Output(name="*.dat", url="https://store/scratch/*.dat?sig=2"),
        Output(name="out", url="https://store/scratch/out?sig=2", directory=True),
    ) == found.outputs
    assert (2, True, True, 300.0, 7) == (
        found.retries, found.ignore_failures, found.success_on_failure, found.wall_time, found.workflow,
    )  # fmt: skip


def test_the_document_in_the_ad_has_no_secrets_and_no_contents() -> None:
    """Lists and descriptions are made from it."""
    job = read_job(
        json.dumps(
            {
                "resources": {"cpus": 1, "memory": 1},
                "tasks": [{"image": "a", "runtime": "udocker"}],
                "inputs": [{"filename": "d/x", "content": "aGVsbG8="}],
            }
        )
    )
    made = submission(job, HERE)
    assert ("x", "x", b"hello") == (made.ad["TransferInput"], made.inputs[0].filename, made.inputs[0].content)
    document = msgspec.json.decode(str(made.ad["ProminenceDocument"]))
    assert [{"filename": "d/x", "content": ""}] == document["inputs"]


@pytest.mark.parametrize("kind", ["onedata", "webdav", "b2drop"])
def test_what_nothing_carries_out_is_refused_with_its_place(kind: str) -> None:
    """Storage is not passed over, with what to do instead; nor is a login for what comes from no registry."""
    access = {
        "onedata": {"provider": "p", "token": "t"},
        "webdav": {"url": "https://s", "username": "u", "password": "p"},
        "b2drop": {"app-username": "u", "app-password": "p"},
    }
    document = {
        "resources": {"cpus": 1, "memory": 1},
        "tasks": [
            {"image": image, "runtime": "udocker", "imagePullCredential": {"username": "u", "token": "t"}}
            for image in ("a.tar", "https://h/a.tar", "/a", "a")
        ],
        "storage": {"type": kind, "mountpoint": "/m", kind: access[kind]},
    }
    with pytest.raises(DocumentRefused) as refusal:
        submission(read_job(json.dumps(document)), HERE)
    assert ["/storage", *(f"/tasks/{number}/imagePullCredential" for number in range(3))] == [
        fault.pointer for fault in refusal.value.faults
    ]
    assert "name files that are read as artifacts" in refusal.value.faults[0].sentence


def test_an_application_of_an_image_is_said_to_the_starter() -> None:
    """With the command, or without one: then it runs what the application itself runs."""
    tasks = [{"image": "a", "runtime": "singularity", "app": "x", "cmd": "b c"}]
    tasks += [{"image": "a", "runtime": "singularity", "app": "y"}]
    found = read_tasks(submitted(tasks=tasks)["KettleTasks"]).tasks
    assert [("x", ("b", "c")), ("y", ())] == [(task.app, task.cmd) for task in found]


def test_logins_of_registries_are_named_and_nowhere_said() -> None:
    """
    One for each user of a registry, however many tasks show it; the text that is stored is what files of logins have.
    """
    credential = {"username": "ada", "token": "se cret"}
    images = ("docker://hub.example/a", "hub.example/b:1", "c")
    document = {
        "resources": {"cpus": 1, "memory": 1},
        "tasks": [
            {"image": image, "runtime": "udocker", "imagePullCredential": credential} for image in images
        ],
    }
    (job,), logins = taken_out([read_job(json.dumps(document))])
    made = submission(job, HERE)
    assert not unknown(made.ad)
    one, other = logins.given
    assert {
        one: b64encode(b"ada:se cret").decode(),
        other: b64encode(b"ada:se cret").decode(),
    } == logins.given
    assert f"image_registry*{one},image_registry*{other}" == made.ad["OAuthServicesNeeded"]
    assert [f"image_registry_{each}" for each in (one, one, other)] == [
        task.login for task in read_tasks(made.ad["KettleTasks"]).tasks
    ]
    assert "cret" not in str(made) + str(logins)
    (_,), again = taken_out([read_job(str(made.ad["ProminenceDocument"]))])
    assert {} == again.given
    assert {one: "ada at hub.example", other: "ada at docker.io"} == again.named


def ranks(image: str = "a", **more: Any) -> dict[str, Any]:
    return {"image": image, "runtime": "udocker", "cmd": "solve", "type": "mpich", **more}


def test_a_job_of_several_nodes_is_one_of_the_parallel_universe() -> None:
    """
    Each node has the CPUs, and its part of the disk; an MPI task says its kind, and how many ranks a node has.
    """
    resources = {"cpus": 4, "memory": 1, "nodes": 3, "disk": 10}
    ad = submitted(resources=resources, tasks=[ranks(procsPerNode=2), ranks(cmd="b")])
    assert not unknown(ad)
    assert (11, 3, 3, 4 << 20) == tuple(
        ad[name] for name in ("JobUniverse", "MinHosts", "MaxHosts", "RequestDisk")
    )
    assert [("mpich", 2, ("solve",)), ("mpich", 0, ("b",))] == [
        (task.type, task.ranks, task.cmd) for task in read_tasks(ad["KettleTasks"]).tasks
    ]
    assert 5 == submitted(tasks=[ranks()])["JobUniverse"]


@pytest.mark.parametrize(
    ("cpus", "total", "expected"),
    [
        (4, [8, 16], (11, 2, 4)),
        (4, [5, 15], (11, 2, 3)),
        (1, [1, 5000], (11, 1, 1000)),
        (8, [1, 15], (5, None, None)),
    ],
)
def test_a_job_takes_as_many_nodes_as_its_cpus_allow(
    cpus: int, total: list[int], expected: tuple[int, int | None, int | None]
) -> None:
    """
    Each has as many CPUs as the document says, all of them together as many as are there within the range.
    """
    resources = {"cpus": cpus, "memory": 1, "totalCpusRange": total, "disk": 10}
    ad = submitted(resources=resources, tasks=[ranks()])
    assert not unknown(ad)
    assert expected == tuple(ad.get(name) for name in ("JobUniverse", "MinHosts", "MaxHosts"))
    assert cpus == ad["RequestCpus"]


@pytest.mark.parametrize(
    ("parts", "pointer"),
    [
        (
            {"resources": {"cpus": 4, "memory": 1, "totalCpusRange": [5, 7]}},
            "/resources/totalCpusRange",
        ),
        (
            {"resources": {"cpusRange": [1, 2], "memory": 1, "totalCpusRange": [2, 4]}},
            "/resources/totalCpusRange",
        ),
        (
            {
                "resources": {"cpus": 1, "memory": 1, "totalCpusRange": [2, 4]},
                "tasks": [{"image": "a", "runtime": "udocker"}],
            },
            "/resources/nodes",
        ),
        ({"tasks": [{"image": "a", "runtime": "udocker"}]}, "/resources/nodes"),
        ({"tasks": [ranks(), ranks("b")]}, "/tasks/1/image"),
        ({"policies": {"runSerialTasksOnAllNodes": True}}, "/policies/runSerialTasksOnAllNodes"),
        ({"resources": {"cpusRange": [1, 2], "memory": 1, "nodes": 2}}, "/resources/cpusRange"),
        ({"resources": {"cpus": 1, "memory": 1, "nodes": 1001}}, "/resources/nodes"),
    ],
)
def test_nodes_that_cannot_work_together_are_refused(parts: dict[str, Any], pointer: str) -> None:
    """With the place of what makes them impossible."""
    document = {"resources": {"cpus": 1, "memory": 1, "nodes": 2}, "tasks": [ranks()], **parts}
    with pytest.raises(DocumentRefused) as refusal:
        submission(read_job(json.dumps(document)), HERE)
    assert [pointer] == [fault.pointer for fault in refusal.value.faults]


def test_dollars_of_a_document_mean_nothing_to_the_schedd() -> None:
    """
    It puts the machine's attributes into `$$(...)` of other jobs, and evaluates what stands in brackets.
    """
    ad = submitted(
        name="n", tasks=[{"image": "a$$(Cpus)", "runtime": "udocker", "cmd": "$$(Memory) '$$([1 + 1])'"}]
    )
    assert not unknown(ad)
    [task] = read_tasks(ad["KettleTasks"]).tasks
    assert ("docker://a$$(Cpus)", ("$$(Memory)", "$$([1 + 1])")) == (task.image, task.cmd)
    assert "$$(Memory) '$$([1 + 1])'" == msgspec.json.decode(str(ad["ProminenceDocument"]))["tasks"][0]["cmd"]


def test_what_no_starter_takes_is_a_fault_of_the_document() -> None:
    """Nothing is submitted that the schedd would refuse for its tasks."""
    refused: list[dict[str, Any]] = [
        {"artifacts": ["a/x.tgz", "b/x.tgz"]},
        {"tasks": [{"image": "a", "runtime": "udocker", "imageSha256": "0" * 64}]},
        {"outputFiles": [f"f{n}" for n in range(60)], "outputDirs": [f"d{n}" for n in range(60)]},
        {"outputFiles": ["_condor_stdout"]},
    ]
    for parts in refused:
        with pytest.raises(DocumentRefused, match="KettleTasks") as refusal:
            submitted(HERE, **parts)
        assert ["/tasks"] == [fault.pointer for fault in refusal.value.faults]


def test_every_expression_is_read_back_as_it_was_made() -> None:
    """What an ad carries as text means what was put together."""
    ad = submitted(
        resources={"cpusRange": [1, 8], "memoryPerCpu": 2, "gpus": 1, "gpuModels": ["a"]},
        policies={
            "placement": {"preferences": {"sites": ["a", "b"]}},
            "maximumRetries": 1,
            "leaveInQueue": True,
        },
    )
    for value in ad.values():
        if isinstance(value, Expr):
            parse(value.expr)
