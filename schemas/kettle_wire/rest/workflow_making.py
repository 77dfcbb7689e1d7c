"""New workflows over HTTP."""

from typing import Annotated, Final

import msgspec

from kettle_wire.rest.problem import FieldProblem
from kettle_wire.rest.route import Route
from kettle_wire.rest.streams import ClusterName
from kettle_wire.rest.workflows import NodeName

DAG_TEXT: Final = "text/plain"
DOCUMENT: Final = "application/json"
YAML_DOCUMENT: Final = "application/yaml"


class SubmitWorkflow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """
    Submit a workflow: a DAG file as text, in which each node has its description in braces, or as JSON or YAML a document of PROMINENCE or an
    instance of WfFormat 1.4, 1.5 or 1.6. All that is wrong is told at once.
    """

    dry_run: bool = False
    """Only say what it would be."""
    name: Annotated[str, msgspec.Meta(max_length=256)] = ""
    """Of the workflow in the queue; empty: as the document says, or the file with its number."""
    replay: Annotated[float, msgspec.Meta(ge=0, le=1e6)] | None = None
    """Of an instance of WfFormat: each node sleeps so many times the seconds that it took, instead of running its program."""


class NewWorkflow(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a workflow is, or would be."""

    id: str = ""
    """`CLUSTER@SCHEDD`; absent after a dry run."""
    kind: str
    """`dag`, `prominence` or `wfformat`."""
    name: str = ""
    jobs: int
    """Of the document."""
    nodes: int
    """What is run: with all instances of factories."""
    height: int
    """How many nodes wait for each other at most, one after the other."""
    width: int
    """How many nodes may run at a time at most: those of the widest level."""
    critical_path: list[str]
    """The chain that takes longest, by what is known of its nodes."""
    seconds: float | None = None
    """How long that takes; absent: a DAG file says nothing of it, and the longest chain is told."""
    is_limit: bool = False
    """What is known are limits (walltime), and no times that were recorded."""
    warnings: list[FieldProblem] = []
    """What is accepted and strange: by JSON pointers, of a DAG file by `FILE:LINE`."""


SUBMIT_WORKFLOW = Route(
    "POST",
    "/workflows",
    "submit_workflow",
    parameters=SubmitWorkflow,
    reply=NewWorkflow,
    level="WRITE",
    errors=(413, 415, 422),
    takes=(DAG_TEXT, DOCUMENT, YAML_DOCUMENT),
    creates=True,
    headers=("Idempotency-Key",),
)


MOST_SHOWN: Final = 1_000
"""Nodes of a new run that are named."""


class RerunWorkflow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """
    Run a workflow again that is over and was sent over HTTP: what has succeeded counts as done. Its owner may. The files of other
    workflows are where they were submitted: `kettle dag rerun`.
    """

    id: ClusterName
    after: list[NodeName] = msgspec.field(name="from", default_factory=list)
    """These nodes and all that wait for them run also where they have succeeded; none, or `failed`: what has not succeeded runs."""
    only: list[NodeName] = []
    """These nodes run, and no others."""
    name: Annotated[str, msgspec.Meta(max_length=256)] = ""
    """Of the new run in the queue; empty: that of a workflow that is sent."""
    dry_run: bool = False
    """Only say what would run."""


class WorkflowRerun(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a new run does, or would do; with nothing to run there is none."""

    id: str = ""
    """`CLUSTER@SCHEDD` of the new run; absent if there is none."""
    done: int
    """So many nodes count as done."""
    count: int
    """So many run."""
    runs: list[str]
    """The first 1,000 of these."""
    assumed: int = 0
    """So many of those that count as done have never succeeded: `only` says that they are not wanted."""


RERUN_WORKFLOW = Route(
    "POST",
    "/workflows/{id}/rerun",
    "rerun_workflow",
    parameters=RerunWorkflow,
    reply=WorkflowRerun,
    level="WRITE",
    errors=(404, 409, 422),
    creates=True,
    headers=("Idempotency-Key",),
)
