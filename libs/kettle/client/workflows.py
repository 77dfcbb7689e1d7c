"""What people, and the processes of DAG jobs, ask the service that decides about workflows."""

from typing import Final

import msgspec

from kettle.client.connections.transport import Requests
from kettle.client.errors import CommandRefusedError
from kettle_wire.codes import RefusalCode
from kettle_wire.commands.dagman import (
    CHANGE_WORKFLOW,
    EXPLAIN_NODE,
    FOLLOW_WORKFLOW,
    LONGEST_WAIT_S,
    REMEMBER_NODES,
    REPORT_FAILURES,
    SHOW_WORKFLOW,
    START_WORKFLOW,
    ChangeWorkflow,
    ExplainNode,
    FollowWorkflow,
    NodeExplained,
    RecordedWorkflowEvent,
    RememberNodes,
    ReportFailures,
    ShowWorkflow,
    StartWorkflow,
    WorkflowNews,
    WorkflowRuns,
    WorkflowState,
)
from kettle_wire.events import decode
from kettle_wire.events.workflow import StepFailure, WorkflowEvent, WorkflowStarted
from kettle_wire.workflows import WorkflowOptions

_SLACK_S: Final = 10.0
"""An answer may come so much later than was said."""


def dated(recorded: RecordedWorkflowEvent) -> tuple[float, WorkflowEvent]:
    """An event and when it was recorded, seconds since the epoch."""
    event = decode(bytes(recorded.data))
    assert isinstance(event, WorkflowEvent), f"a workflow has a {type(event).__name__}"
    return recorded.at / 1e6, event


class Workflows:
    """Workflows by the cluster of their DAG job; each is its owner's."""

    def __init__(self, requests: Requests) -> None:
        self._requests = requests

    async def start(self, request: StartWorkflow) -> WorkflowRuns:
        """The DAG job runs; what is to be done counts the first time only."""
        return await self._requests.ask(START_WORKFLOW, request)

    async def news(self, workflow: int, after: int) -> WorkflowNews:
        """What has happened after so many events, and what is to be done; waits for it, up to 20 seconds."""
        request = FollowWorkflow(workflow=workflow, after=after, wait=LONGEST_WAIT_S)
        return await self._requests.ask(FOLLOW_WORKFLOW, request, deadline=LONGEST_WAIT_S + _SLACK_S)

    async def begun(self, workflow: int) -> WorkflowStarted | None:
        """With what a workflow has begun; None: none of this number has."""
        try:
            news = await self._requests.ask(FOLLOW_WORKFLOW, FollowWorkflow(workflow=workflow, after=0))
        except CommandRefusedError as refusal:
            if refusal.code != RefusalCode.NOT_FOUND:
                raise
            return None
        first = dated(news.events[0])[1] if news.events else None
        return first if isinstance(first, WorkflowStarted) else None

    async def history(self, workflow: int) -> list[tuple[float, WorkflowEvent]]:
        """All that has happened to a workflow so far, with the times, seconds since the epoch."""
        found: list[tuple[float, WorkflowEvent]] = []
        while True:
            request = FollowWorkflow(workflow=workflow, after=len(found))
            news = await self._requests.ask(FOLLOW_WORKFLOW, request)
            found += map(dated, news.events)
            if news.complete:
                return found

    async def failed(self, workflow: int, failures: list[StepFailure]) -> None:
        """Jobs that were ordered cannot be submitted."""
        await self._requests.ask(REPORT_FAILURES, ReportFailures(workflow=workflow, failures=failures))

    async def remember(self, request: RememberNodes) -> None:
        """What nodes have left, and which are not run because it is still there."""
        await self._requests.ask(REMEMBER_NODES, request)

    async def halt(self, workflow: int, reason: str = "") -> None:
        """Submit nothing new and run no PRE script; when all that runs has ended, the workflow ends."""
        request = ChangeWorkflow(workflow=workflow, halt=True, reason=reason)
        await self._requests.ask(CHANGE_WORKFLOW, request)

    async def resume(self, workflow: int) -> None:
        """Let a halted workflow go on."""
        await self._requests.ask(CHANGE_WORKFLOW, ChangeWorkflow(workflow=workflow, halt=False))

    async def throttle(self, workflow: int, **limits: int) -> WorkflowOptions:
        """Change some limits, by the names of fields of `WorkflowOptions`; all limits as they are then."""
        now = await self.show(workflow)
        options = msgspec.structs.replace(now.options, **limits)
        await self._requests.ask(CHANGE_WORKFLOW, ChangeWorkflow(workflow=workflow, options=options))
        return options

    async def show(self, workflow: int, *, nodes: bool = False) -> WorkflowState:
        """How far it is; with the state of each node, if that is wanted."""
        return await self._requests.ask(SHOW_WORKFLOW, ShowWorkflow(workflow=workflow, nodes=nodes))

    async def explain(self, workflow: int, node: str) -> NodeExplained:
        """Why a node is where it is."""
        return await self._requests.ask(EXPLAIN_NODE, ExplainNode(workflow=workflow, node=node))
