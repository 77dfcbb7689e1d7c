"""What people ask the service that decides about workflows."""

import msgspec

from kettle.client.connections.transport import Requests
from kettle_wire.commands.dagman import (
    CHANGE_WORKFLOW,
    EXPLAIN_NODE,
    SHOW_WORKFLOW,
    ChangeWorkflow,
    ExplainNode,
    NodeExplained,
    ShowWorkflow,
    WorkflowState,
)
from kettle_wire.workflows import WorkflowOptions


class Workflows:
    """Workflows by the cluster of their DAG job; only the owner and queue super users may change one."""

    def __init__(self, requests: Requests) -> None:
        self._requests = requests

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
