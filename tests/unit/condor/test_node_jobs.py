"""The jobs of the nodes of a DAG, as they are worked out together."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, cast

import msgspec
import pytest

from kettle.client.errors import ClientError
from kettle.dag.building.parser import check
from kettle.dag.submission.options import SubmitDagOptions
from kettle.dag.submission.preparing import Site
from kettle_services.condor.dagman.dag_nodes import DagNodes, refuse_what_runs_here
from kettle_services.condor.dagman.macros import words_of
from kettle_services.condor.dagman.node_jobs import NodesInCommon, node_submissions
from kettle_wire.codes import NodePart
from kettle_wire.events.workflow import NodeStep

if TYPE_CHECKING:
    from kettle.dag.files.progress import Progress

DAG = """\
JOB A work.sub
JOB B work.sub
JOB C work.sub DIR below
JOB D none.sub
JOB E work.sub
VARS A memory="64"
VARS B memory="65"
VARS C memory="66"
VARS E memory="much of it"
VARS A APPEND arguments="$(JOB)"
PARENT A CHILD B
"""
WORK = (
    "executable = /bin/true\ntransfer_executable = false\nrequest_memory = $(memory)\noutput = $(JOB).out\n"
)


@pytest.fixture
def source(tmp_path: Path) -> NodesInCommon:
    """A DAG with a description that its nodes share."""
    for place in (tmp_path, tmp_path / "below"):
        place.mkdir(exist_ok=True)
        (place / "work.sub").write_text(f"{WORK}queue\n")
    dag, faults = check(["x.dag"], lambda _: DAG)
    assert not faults
    return NodesInCommon(
        dag=dag,
        workflow=7,
        batch="x.dag+7",
        directory=tmp_path,
        nodes_log=tmp_path / "x.dag.nodes.log",
        parents=["", "A", "", "", ""],
        options=SubmitDagOptions(dag_files=["x.dag"]),
        site=Site(directory=tmp_path, environ=os.environ, knob=lambda _: None, version="", dagman=""),
    )


def test_a_node_that_is_refused_keeps_no_other_from_its_jobs(source: NodesInCommon) -> None:
    """Whether its file is not there, or cannot be carried out; each of the others is as it were alone."""
    steps = [NodeStep(node, 0, NodePart.JOB) for node in range(5)]
    together = node_submissions(source, steps, failed=1, status=0)
    assert set(steps) == set(together)
    ads = [each.ad for each in together.values() if not isinstance(each, Exception)]
    refused = {step.node: str(each) for step, each in together.items() if isinstance(each, Exception)}
    assert ["A", "B", "C"] == sorted(str(ad["DAGNodeName"]) for ad in ads)
    assert [64, 65, 66] == sorted(int(str(ad["RequestMemory"])) for ad in ads)
    assert {3, 4} == refused.keys()
    assert "none.sub" in refused[3]
    assert "much" in refused[4]
    for step in steps:
        alone = node_submissions(source, [step], failed=1, status=0)[step]
        assert str(alone) == str(together[step])
        if not isinstance(alone, Exception):
            assert alone.ad["KettleWorkflowStep"] == f"7/{step.node}/0/1/0"


@pytest.mark.parametrize(("said", "priorities"), [(0, [5, 0, 2]), (10, [15, 10, 12])])
def test_the_priority_of_the_dag_is_the_base_of_its_nodes(
    source: NodesInCommon, said: int, priorities: list[int]
) -> None:
    """Of those that have one of their own, and of all others."""
    nodes = [
        msgspec.structs.replace(node, priority=own)
        for node, own in zip(source.dag.nodes, (5, 0, 2), strict=False)
    ]
    common = msgspec.structs.replace(
        source,
        dag=msgspec.structs.replace(source.dag, nodes=tuple(nodes)),
        options=SubmitDagOptions(dag_files=["x.dag"], priority=said),
    )
    steps = [NodeStep(node, 0, NodePart.JOB) for node in range(3)]
    made = [node_submissions(common, steps, failed=0, status=0)[step] for step in steps]
    assert priorities == [0 if isinstance(each, Exception) else each.ad.get("JobPrio", 0) for each in made]


def test_the_arguments_of_a_script_are_taken_as_they_are() -> None:
    """As HTCondor does: a pattern or a quote is what it is, and words are between blanks and tabs."""
    assert ["check.sh", r"^ERROR\.\d+$", '"a', 'b"', "it's", "$RETURN"] == words_of(
        '\tcheck.sh  ^ERROR\\.\\d+$ "a b" it\'s\t$RETURN '
    )


def by_token(tmp_path: Path, text: str) -> DagNodes:
    """The nodes of a DAG that came by a token."""
    dag, faults = check(["x.dag"], lambda _: text)
    assert not faults
    refuse_what_runs_here(dag)
    return DagNodes(
        NodesInCommon(
            dag=dag,
            workflow=7,
            batch="x.dag+7",
            directory=tmp_path,
            nodes_log=tmp_path / "x.dag.nodes.log",
            parents=["", ""],
            options=SubmitDagOptions(dag_files=["x.dag"]),
            site=Site(directory=tmp_path, environ=os.environ, knob=lambda _: None, version="", dagman=""),
        ),
        sent=True,
        by_token=True,
    )


@pytest.mark.parametrize("universe", ["local", "scheduler"])
def test_what_came_by_a_token_submits_no_job_for_the_access_point(tmp_path: Path, universe: str) -> None:
    """
    The process has the account's own credential, and looks itself at what the nodes want; the others are as they are.
    """
    node = "JOB {} {{\nexecutable = /bin/true\nuniverse = {}\nqueue\n}}\n"
    nodes = by_token(tmp_path, node.format("A", universe) + node.format("B", "vanilla"))
    steps = [NodeStep(number, 0, NodePart.JOB) for number in (0, 1)]
    refused, made = nodes.jobs(steps, cast("Progress", _Progress()), {}).values()
    assert "which does not give them" in str(refused)
    assert isinstance(refused, ClientError)
    assert not isinstance(made, Exception)


@pytest.mark.parametrize(
    "line", ["SCRIPT PRE A /bin/true", "SCRIPT POST A x", "SCRIPT HOLD A x", "SUBDAG EXTERNAL B y.dag"]
)
def test_what_came_by_a_token_has_no_scripts_and_no_dags_within(tmp_path: Path, line: str) -> None:
    """Each is a job on the access point."""
    with pytest.raises(ClientError, match=r"node [AB] would run on the access point"):
        by_token(tmp_path, f"JOB A a.sub\n{line}\n")


class _Progress:
    """What of the progress of a DAG its nodes are told."""

    dag_status = 0

    class counts:  # noqa: N801 - as it is called there
        failed = 0
