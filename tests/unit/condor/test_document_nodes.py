"""The jobs of a workflow of PROMINENCE, as its hands submit them."""

import json
from pathlib import Path
from typing import Any

import msgspec

from kettle.client.errors import ClientError
from kettle.dag.files.progress import Progress
from kettle.dag.plan import plan_of
from kettle.dag.submission.options import SubmitDagOptions
from kettle.dag.submission.preparing import Site
from kettle.prominence.addresses import AS_JOB, Permit
from kettle.prominence.instances import Permits
from kettle.prominence.workflow_orders import OrderedWorkflow, WorkflowOrder
from kettle.submit import Submission
from kettle_services.condor.dagman.document_nodes import DocumentNodes
from kettle_services.condor.dagman.node_jobs import NodesInCommon
from kettle_services.condor.dagman.node_source import step_in, step_text
from kettle_wire.codes import NodePart
from kettle_wire.events.workflow import NodeStep

PERMIT = Permit(
    base="http://pool/objects", method="GET", area="uploads", owner="ada", within="", expires=1, key=b"k"
)
PERMITS = Permits(
    arch="X86_64",
    uploads=PERMIT,
    outputs=msgspec.structs.replace(PERMIT, method="PUT", area="scratch"),
    job=msgspec.structs.replace(PERMIT, method=AS_JOB, area="scratch"),
)


def made(directory: Path, step: NodeStep, **more: Any) -> Submission | Exception:
    """What is submitted for a step of a workflow with two jobs, of which the second is made twice."""
    task = {"image": "i.tar", "runtime": "udocker", "cmd": "run"}
    job = {"resources": {"cpus": 1, "memory": 1, "disk": 1}, "tasks": [task], **more}
    inputs = [{"filename": "some/run.sh", "content": "YQo=", "executable": True}]
    document = {
        "jobs": [{"name": "a", **job}, {"name": "b", "inputs": inputs, **job}],
        "dependencies": {"a": ["b"]},
        "factories": [{"name": "f", "type": "repeat", "jobs": ["b"], "number": 2}],
    }
    text = msgspec.Raw(json.dumps(document).encode())
    ordered = OrderedWorkflow(WorkflowOrder(document=text, identifier="id", permits=PERMITS))
    dag = ordered.dag("workflow.json")
    site = Site(directory=directory, environ={}, knob=lambda _: None, version="", dagman="")
    common = NodesInCommon(
        dag=dag,
        workflow=7,
        batch="w",
        directory=directory,
        nodes_log=directory / "log",
        parents=ordered.parents(),
        options=SubmitDagOptions(dag_files=["workflow.json"]),
        site=site,
    )
    return DocumentNodes(common, ordered).jobs([step], Progress(plan_of(dag)), {})[step]


def test_a_node_is_one_job_whose_files_are_sent_with_it(tmp_path: Path) -> None:
    """It says for which step it is, and its input files are where they are read from."""
    step = NodeStep(2, 1, NodePart.JOB)
    jobs = made(tmp_path, step)
    assert isinstance(jobs, Submission)
    assert 1 == jobs.count
    ad = jobs.job(0)
    assert ("b/1", "a", 7, "w") == (
        ad["DAGNodeName"], ad["DAGParentNodeNames"], ad["DAGManJobId"], ad["JobBatchName"],
    )  # fmt: skip
    assert step == step_in(step_text(7, step)) == step_in(str(ad["KettleWorkflowStep"]))
    program = Path(str(ad["Iwd"])) / str(ad["TransferInput"])
    assert (b"a\n", 0o755) == (program.read_bytes(), program.stat().st_mode & 0o777)


def test_what_no_machine_does_is_a_reason_why_it_cannot_be_submitted(tmp_path: Path) -> None:
    """The node fails with it; no other node is harmed."""
    refused = made(tmp_path, NodeStep(0, 0, NodePart.JOB), artifacts=[{"url": "others/file"}])
    assert isinstance(refused, ClientError)
    assert "in no group of this name" in str(refused)
