"""The jobs of the nodes of a DAG, as they are worked out together."""

import os
from pathlib import Path

import pytest

from kettle.dag.building.parser import check
from kettle.dag.submission.options import SubmitDagOptions
from kettle.dag.submission.preparing import Site
from kettle_services.condor.dagman.node_jobs import NodesInCommon, node_submissions
from kettle_wire.codes import NodePart
from kettle_wire.events.workflow import NodeStep

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
