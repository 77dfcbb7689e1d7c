"""Which nodes are the same, and which are run in any case."""

import pytest

from kettle.dag import memo
from kettle.dag.structure import Node, NodeKind, Script
from kettle_wire.ads.types import Ad, Expr

NODE = Node("A", NodeKind.JOB, "a.sub")
AD: Ad = {
    "Cmd": "/home/ann/step.sh",
    "Arguments": "1",
    "Environment": "X=1",
    "Iwd": "/home/ann",
    "Out": "a.out",
    "Err": "/dev/null",
    "JobUniverse": 5,
    "ShouldTransferFiles": "IF_NEEDED",
    "TransferInput": "in.txt",
    "TransferOutput": "a,b",
    "TransferOutputRemaps": "b=results/b",
    "Requirements": Expr("TARGET.Arch == MY.MyArch"),
}
CONTENTS = {"step.sh": "0" * 64, "in.txt": "1" * 64}


@pytest.mark.parametrize(
    "changed",
    [
        {"DAGNodeName": "B", "DAGManJobId": 12, "KettleWorkflowStep": "12/0/1/1/0"},
        {"RequestMemory": 4096, "requirements": Expr("false"), "JobPrio": 5},
        {"UserLog": "/home/ann/log", "JobBatchName": "x", "ImageSize": 7},
    ],
)
def test_where_a_node_belongs_and_what_it_needs_does_not_count(changed: Ad) -> None:
    """A node of another name, or in another run, or with more memory, does the same."""
    assert memo.key(AD, CONTENTS) == memo.key({**AD, **changed}, CONTENTS)


@pytest.mark.parametrize(
    "changed",
    [
        {"Arguments": "2"},
        {"Environment": "X=2"},
        {"Cmd": "/home/ann/other.sh"},
        {"ContainerImage": f"docker://a@sha256:{'0' * 64}"},
        {"TransferOutput": "a"},
        {"MyOwn": True},
        {"MyOwn": "true"},
        {"MyOwn": Expr("true")},
        {"Iwd": "/home/bob"},
    ],
)
def test_all_else_counts(changed: Ad) -> None:
    """Also attributes that nobody knows, and of what kind a value is."""
    found = {memo.key({**AD, **each}, CONTENTS) for each in ({}, changed, {"MyOwn": 1})}
    assert 3 == len(found)


def test_the_contents_of_files_count() -> None:
    """And by which names the job sees them, but not the order in which they were read."""
    swapped = {"step.sh": CONTENTS["in.txt"], "in.txt": CONTENTS["step.sh"]}
    backwards = dict(reversed(CONTENTS.items()))
    assert memo.key(AD, CONTENTS) == memo.key(AD, backwards)
    assert memo.key(AD, CONTENTS) != memo.key(AD, swapped)


def test_a_job_leaves_its_results_where_they_are_to_be() -> None:
    """Results by their remaps, and streams that are kept."""
    assert ["/home/ann/a.out", "/home/ann/a", "/home/ann/results/b"] == list(memo.left_by(AD))


@pytest.mark.parametrize(
    ("node", "changed", "reason"),
    [
        (Node("A", NodeKind.FINAL, "a.sub"), {}, "it is no JOB"),
        (Node("A", NodeKind.JOB, "a.sub", post=Script("x")), {}, "it has a script"),
        (NODE, {"JobUniverse": 12}, "not of the vanilla universe"),
        (NODE, {"ShouldTransferFiles": "NO"}, "not transferred"),
        (NODE, {"TransferOutput": Expr("undefined")}, "does not name its results"),
        (NODE, {"TransferOutput": "directory/"}, "has no name on the access point"),
        (NODE, {"TransferInput": "in.txt, https://example.org/x"}, "an input of it is a URL"),
        (NODE, {"ContainerImage": "docker://debian:12"}, "named by a tag"),
        (NODE, {"DockerImage": "debian"}, "named by a tag"),
        (NODE, {"ContainerImage": "/images/a.sif", "ContainerImageSource": "local"}, "named by a tag"),
    ],
)
def test_what_may_have_changed_unseen_is_run(node: Node, changed: Ad, reason: str) -> None:
    """A node is left out only if all that it reads, runs and leaves is known."""
    assert reason in memo.refusal(node, {**AD, **changed}, 1)


def test_what_is_known_may_be_left_out() -> None:
    """One job whose results have names, also in an image that never changes, or is one of its inputs."""
    assert "" == memo.refusal(NODE, AD, 1)
    assert "" == memo.refusal(NODE, {**AD, "DockerImage": f"debian@sha256:{'a' * 64}"}, 1)
    assert "" == memo.refusal(NODE, {**AD, "ContainerImage": "a.sif", "ContainerImageSource": "cedar"}, 1)
    assert "it has not one job" == memo.refusal(NODE, AD, 2)
