"""A workflow as the process of its DAG job is given it."""

from typing import Any

import msgspec
import pytest

from kettle.dag.plan import plan_of
from kettle.prominence.addresses import AS_JOB, Permit
from kettle.prominence.faults import DocumentRefused
from kettle.prominence.instances import IDENTIFIER, PARAMETERS, Permits
from kettle.prominence.job_documents import encoded
from kettle.prominence.workflow_documents import read_workflow
from kettle.prominence.workflow_orders import OrderedWorkflow, WorkflowOrder


def permit(method: str, area: Any, owner: str, within: str = "") -> Permit:
    return Permit(
        base="https://pool.example.org/objects",
        method=method,
        area=area,
        owner=owner,
        within=within,
        expires=1,
        key=b"key",
    )


PERMITS = Permits(
    arch="X86_64",
    uploads=permit("GET", "uploads", "ada"),
    groups=[permit("GET", "groups", "fusion"), permit("GET", "groups", "fusion/jet")],
    outputs=permit("PUT", "scratch", "ada", "secret/"),
    job=permit(AS_JOB, "scratch", "ada", "secret/"),
)


def job(name: str, **more: Any) -> dict[str, Any]:
    task = {"image": "i.tar", "runtime": "udocker", "cmd": "run $x"}
    return {"name": name, "resources": {"cpus": 1, "memory": 1, "disk": 1}, "tasks": [task], **more}


def ordered(done: tuple[int, ...] = (), **more: Any) -> OrderedWorkflow:
    document = {
        "name": "w",
        "jobs": [
            job("a"),
            job("sweep", outputFiles=["made"]),
            job("last", artifacts=[{"url": "fusion/jet/x"}]),
        ],
        "dependencies": {"a": ["sweep"], "sweep": ["last"]},
        "factories": [
            {
                "name": "f",
                "type": "parameterSweep",
                "jobs": ["sweep"],
                "parameters": [{"name": "x", "start": 0, "end": 0.2, "step": 0.1}],
            }
        ],
        **more,
    }
    text = encoded(read_workflow(msgspec.json.encode(document)))
    order = WorkflowOrder(document=msgspec.Raw(text), identifier="secret", permits=PERMITS, done=list(done))
    return OrderedWorkflow.read(msgspec.json.encode(order))


def test_each_instance_is_a_node_that_waits_for_all_before_it() -> None:
    """The graph is that of a DAG; what is done before, and retries, are in its plan."""
    workflow = ordered(done=(0, 2), policies={"maximumRetries": 3})
    dag = workflow.dag("workflow.json")
    plan = plan_of(dag)
    assert ["a", "sweep/0", "sweep/1", "sweep/2", "last"] == plan.names
    children = dag.edges.children()
    assert [[1, 2, 3], [4], [4], [4], []] == [list(children.nodes_of(node)) for node in range(5)]
    assert [0, 2] == plan.done
    assert {3} == {retries.most for retries in plan.retries.values()}
    assert ["", "a", "a", "a", "sweep"] == list(workflow.parents())


def test_two_factories_wait_for_each_other_through_one_vertex() -> None:
    """A thousand instances that wait for a thousand others are no million edges."""
    factory = {"name": "f", "type": "repeat", "jobs": ["a", "sweep"], "number": 1000}
    edges = ordered(factories=[factory]).dag("workflow.json").edges
    assert 1 == edges.joins
    assert len(edges.ends) // 4 < 4000


def test_an_instance_has_addresses_of_its_own() -> None:
    """
    Its results are under its number, its uploads in the area of who is named, and its parameters are exact.
    """
    workflow = ordered()
    second = workflow.submission(2, 7).ad
    assert "secret/2" == second[IDENTIFIER]
    assert '{"x":"0.1"}' == second[PARAMETERS]
    assert "/objects/scratch/secret/2/made?of=ada" in str(second["KettleTasks"])
    assert "/objects/uploads/i.tar?of=ada" in str(second["KettleTasks"])
    assert '"workflow":7' in str(second["KettleTasks"])
    assert "/objects/groups/x?of=fusion%2Fjet" in str(workflow.submission(4, 7).ad["KettleTasks"])


def test_files_of_others_are_refused() -> None:
    """A name that begins like a group is in no group."""
    for foreign in ("fus/x", "bob/x", "fusionist/x"):
        with pytest.raises(DocumentRefused, match="no group of this name"):
            ordered(jobs=[job("a", artifacts=[{"url": foreign}])], dependencies={}, factories=[]).submission(
                0, 7
            )
