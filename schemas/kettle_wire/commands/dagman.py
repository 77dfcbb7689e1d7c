"""What the process of a DAG job, and people, ask the service that decides about workflows."""

from typing import Annotated

import msgspec

from kettle_wire.endpoint import Caller, Endpoint, Position, Repeat
from kettle_wire.events.workflow import NodeMemory, NodeReuse, NodeStep, StepFailure
from kettle_wire.jobs import Number
from kettle_wire.workflows import PLAN_BYTES, WorkflowOptions

LONGEST_WAIT_S = 20.0
"""So long somebody may wait for news of a workflow in one question."""
_Text = Annotated[str, msgspec.Meta(max_length=65_536)]
_Reason = Annotated[str, msgspec.Meta(max_length=4096)]


class StartWorkflow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The DAG job runs. What is to be done is said the first time; after that it changes nothing."""

    workflow: Number
    """The cluster of the DAG job, which belongs to the caller."""
    files: list[_Text]
    directory: _Text
    digest: Annotated[str, msgspec.Meta(max_length=64)]
    plan: Annotated[bytes, msgspec.Meta(max_length=PLAN_BYTES)]
    options: WorkflowOptions


class WorkflowRuns(msgspec.Struct, frozen=True, kw_only=True):
    """That is recorded."""

    position: Position
    digest: str
    """Of the files with which it was started."""


class FollowWorkflow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What has happened to a workflow since, and what is to be done; waits until there is something."""

    workflow: Number
    after: Number
    """So many events are known already."""
    wait: Annotated[float, msgspec.Meta(ge=0, le=LONGEST_WAIT_S)] = 0.0
    """Seconds."""


class RecordedWorkflowEvent(msgspec.Struct, frozen=True, array_like=True):
    """One event and when it was recorded, microseconds since the epoch."""

    at: int
    data: msgspec.Raw


class WorkflowNews(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """
    Events in their order, none left out; with those that fit the answer is full, and more come at the next
    question.
    """

    events: list[RecordedWorkflowEvent]
    complete: bool
    """Whether these were all: only then there are orders and removals."""
    orders: list[NodeStep] = []
    """Jobs to be submitted. They stay until the schedd has them, so that some may be there twice."""
    removals: list[int] = []
    """Clusters of which what is left is to be removed."""
    remember: list[NodeStep] = []
    """Of nodes that have run well: what they have left is to be told."""


class ReportFailures(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Jobs that were ordered cannot be submitted, and are not tried again."""

    workflow: Number
    failures: Annotated[list[StepFailure], msgspec.Meta(max_length=1000)]


class RememberNodes(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What nodes have left, and which are not run because it is still there."""

    workflow: Number
    reuses: Annotated[list[NodeReuse], msgspec.Meta(max_length=1000)] = []
    memories: Annotated[list[NodeMemory], msgspec.Meta(max_length=1000)] = []
    others: Annotated[list[Number], msgspec.Meta(max_length=1000)] = []
    """Nodes that have left nothing that could be used again."""


class ChangeWorkflow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Halt a workflow, let it go on, or change how fast it goes; what is not named stays."""

    workflow: Number
    halt: bool | None = None
    reason: _Reason = ""
    options: WorkflowOptions | None = None
    categories: dict[str, Number] | None = None


class WorkflowChanged(msgspec.Struct, frozen=True, kw_only=True):
    """That is recorded, or was so before."""

    position: Position


class ShowWorkflow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How far a workflow is; one that is over is read from the log."""

    workflow: Number
    nodes: bool = False
    """The state of each node, too."""


class WorkflowState(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How far it is."""

    workflow: int
    owner: str
    files: list[str]
    directory: str
    """Where its DAG job was submitted; the files are relative to it."""
    counts: dict[str, int]
    """By the name of the state how many nodes there are."""
    idle: int
    """Jobs of nodes that wait for a machine."""
    running: int
    held: int
    options: WorkflowOptions
    reused: int = 0
    """Nodes that were not run, because what one like them has left is still there."""
    halted: bool = False
    halted_because: str = ""
    """The reason that was given."""
    status: int | None = None
    """`DagStatus`, of one that is over."""
    exit_code: int | None = None
    names: list[str] = []
    states: bytes = b""
    """One byte for each node (`NodeState`), in the order of the names."""


class ExplainNode(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Why is a node where it is?"""

    workflow: Number
    node: Annotated[str, msgspec.Meta(max_length=4096)]


class NodeExplained(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """As sentences."""

    node: str
    state: int
    """`NodeState`."""
    attempt: int
    sentences: list[str]
    cluster: int = 0
    """Of its jobs in the queue; 0: it has none there."""


START_WORKFLOW = Endpoint(
    "dagman", "start", StartWorkflow, WorkflowRuns, callers=(Caller.USER,), repeat=Repeat.HARMLESS
)
FOLLOW_WORKFLOW = Endpoint(
    "dagman",
    "follow",
    FollowWorkflow,
    WorkflowNews,
    callers=(Caller.USER, Caller.GATEWAY),
    repeat=Repeat.QUERY,
)
"""The gateway asks for everybody, and knows itself who may look."""
REPORT_FAILURES = Endpoint(
    "dagman", "failed", ReportFailures, WorkflowChanged, callers=(Caller.USER,), repeat=Repeat.HARMLESS
)
REMEMBER_NODES = Endpoint(
    "dagman", "remember", RememberNodes, WorkflowChanged, callers=(Caller.USER,), repeat=Repeat.HARMLESS
)
CHANGE_WORKFLOW = Endpoint(
    "dagman", "change", ChangeWorkflow, WorkflowChanged, callers=(Caller.USER,), repeat=Repeat.HARMLESS
)
SHOW_WORKFLOW = Endpoint(
    "dagman", "show", ShowWorkflow, WorkflowState, callers=(Caller.USER,), repeat=Repeat.QUERY
)
EXPLAIN_NODE = Endpoint(
    "dagman",
    "explain",
    ExplainNode,
    NodeExplained,
    callers=(Caller.USER, Caller.GATEWAY),
    repeat=Repeat.QUERY,
)
