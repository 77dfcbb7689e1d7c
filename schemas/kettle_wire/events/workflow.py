"""
What happens to a workflow, on the stream `workflow/<cluster of its DAG job>`.

Nodes are numbers, places in the plan's list of names; times are those of the frames. What many nodes go through at once
is one event. The files that other programs read of a workflow follow from these events and from its DAG files alone.
"""

import msgspec

from kettle_wire.events.base import Event
from kettle_wire.workflows import WorkflowOptions


class WorkflowStarted(Event, frozen=True, tag="workflow.started/1"):
    """The DAG job runs for the first time, and this is what it is to do."""

    workflow: int
    """The cluster of the DAG job."""
    owner: str
    """From the credential of the process of the DAG job, and never from the DAG file."""
    files: list[str]
    """The DAG files, as they were named."""
    directory: str
    digest: str
    """SHA-256 of everything that was read of the DAG files, in hexadecimal."""
    plan: bytes
    """`kettle_wire.workflows.packed`."""
    options: WorkflowOptions
    followed: int
    """Frames of the schedd's shard up to this one have nothing of this workflow."""


class NodeChange(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """
    A node comes into a state (`NodeState`).

    `ready`: its attempt may begin. `pre`: its PRE script is to be run. `queued`: its job is to be submitted, or there is none
    for a node without one. `post`: its POST script is to be run. What is to be run has not been submitted yet.
    """

    node: int
    state: int
    attempt: int = 0
    """Counts retries from 0."""
    value: int = 0
    """
    Of `post`, `done`, `failed` and `skipped` the node value; of `futile` the node because of which it can never run.
    """


class NodesChanged(Event, frozen=True, tag="workflow.nodes_changed/1"):
    """Nodes came into other states, in this order; a node may be there several times."""

    changes: list[NodeChange]


class NodeStep(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One job of a node: what it is submitted for."""

    node: int
    attempt: int
    part: int
    """`NodePart`."""
    run: int = 0
    """Counts the runs of a deferred script, and HOLD scripts, from 0."""


class NodeJobFact(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What the schedd has recorded of a job of a node."""

    step: NodeStep
    cluster: int
    proc: int
    """-1: of the whole cluster."""
    kind: int
    """`NodeJobKind`."""
    value: int = 0
    """
    Of `submitted` how many jobs the cluster has, of `unmade` how many it will not have, of `completed` the exit code, or
    the number of the signal below zero, of `held` the HoldReasonCode, which earlier versions did not record (0).
    """


class NodeJobsSeen(Event, frozen=True, tag="workflow.jobs_seen/1"):
    """What frames of the schedd's shard say of the jobs of the workflow, in their order."""

    frame: int
    """The last of them."""
    facts: list[NodeJobFact]
    reasons: dict[int, str] = {}
    """Why a job was held or removed, by the place of the fact in the list."""


class StepFailure(msgspec.Struct, frozen=True, array_like=True):
    """A job that could not be submitted, and will not be tried again."""

    step: NodeStep
    reason: str
    tries: int = 1
    """How often it was tried."""


class SubmissionsFailed(Event, frozen=True, tag="workflow.submissions_failed/1"):
    """These jobs do not exist and never will."""

    failures: list[StepFailure]


class ScriptsOrdered(Event, frozen=True, tag="workflow.scripts_ordered/1"):
    """
    Scripts to be run that come with no change of their node: deferred ones, whose time has come, and HOLD
    scripts.
    """

    steps: list[NodeStep]


class ScriptsDeferred(Event, frozen=True, tag="workflow.scripts_deferred/1"):
    """Scripts that want to run again later."""

    steps: list[NodeStep]
    """Those that have ended."""
    until: list[int]
    """When each runs again, seconds since the epoch."""


class JobsRemovalOrdered(Event, frozen=True, tag="workflow.jobs_removal_ordered/1"):
    """What is left of these clusters is to be removed."""

    clusters: list[int]
    reason: str


class WorkflowThrottled(Event, frozen=True, tag="workflow.throttled/1"):
    """Somebody has changed how fast it goes: it has all values, changed or not."""

    options: WorkflowOptions
    categories: dict[str, int] = {}
    """MAXJOBS by category."""
    by: str = ""


class WorkflowHalted(Event, frozen=True, tag="workflow.halted/1"):
    """Nothing new is submitted and no PRE script runs; when all that runs has ended, the workflow ends."""

    by: str = ""
    reason: str = ""


class WorkflowResumed(Event, frozen=True, tag="workflow.resumed/1"):
    """It is not halted any more."""

    by: str = ""


class WorkflowAborted(Event, frozen=True, tag="workflow.aborted/1"):
    """The value of a node met its ABORT-DAG-ON."""

    node: int
    value: int
    exit_code: int


class WorkflowRemoved(Event, frozen=True, tag="workflow.removed/1"):
    """Its DAG job was removed."""

    by: str = ""
    reason: str = ""


class WorkflowStopping(Event, frozen=True, tag="workflow.stopping/1"):
    """
    None of its nodes runs any more, except for the one that comes last (FINAL).

    A rescue DAG is to be written now unless the status is 0.
    """

    status: int
    """`DagStatus`, before the FINAL node has run."""
    exit_code: int


class WorkflowEnded(Event, frozen=True, tag="workflow.ended/1"):
    """It is over; nothing more is recorded about it."""

    status: int
    """`DagStatus`."""
    exit_code: int
    """Of its DAG job."""
    reason: str = ""


class WorkflowRerunBegun(Event, frozen=True, tag="workflow.rerun_begun/1"):
    """
    Nothing of it could run any more, and these nodes had failed: they begin again with all of their retries, and what can never run
    because of them waits for them again.  What they become is recorded of them.
    """

    nodes: list[int]


class SavePointReached(Event, frozen=True, tag="workflow.save_point_reached/1"):
    """A node with a SAVE_POINT_FILE starts for the first time."""

    node: int


class NodeMemory(msgspec.Struct, frozen=True, array_like=True):
    """What a node has left that ran well, and of what it was made."""

    node: int
    cluster: int
    """Its job was number 0 of this one."""
    key: str
    """SHA-256, in hexadecimal, of its command, its environment, its image, and the contents of its input files."""
    outputs: dict[str, str]
    """SHA-256 in hexadecimal by path, of each file that it left on the access point."""


class NodesRemembered(Event, frozen=True, tag="workflow.nodes_remembered/1"):
    """What may be used again instead of running a node that is the same."""

    memories: list[NodeMemory]
    others: list[int] = []
    """Nodes that have left nothing that could be used again."""


class NodeReuse(msgspec.Struct, frozen=True, array_like=True):
    """A node that is not run, because what one has left that was the same is still there."""

    step: NodeStep
    key: str
    outputs: dict[str, str]
    """See `NodeMemory`."""
    workflow: int
    """The one whose node has run."""
    name: str
    """Of that node."""
    cluster: int
    at: int
    """When that was remembered, seconds since the epoch."""


class NodesReused(Event, frozen=True, tag="workflow.nodes_reused/1"):
    """Nodes that are done without a job."""

    reuses: list[NodeReuse]


WorkflowEvent = (
    WorkflowStarted
    | NodesChanged
    | NodeJobsSeen
    | SubmissionsFailed
    | ScriptsOrdered
    | ScriptsDeferred
    | JobsRemovalOrdered
    | WorkflowThrottled
    | WorkflowHalted
    | WorkflowResumed
    | WorkflowAborted
    | WorkflowRemoved
    | WorkflowStopping
    | WorkflowEnded
    | WorkflowRerunBegun
    | SavePointReached
    | NodesRemembered
    | NodesReused
)
