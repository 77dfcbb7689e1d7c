"""What is done to workflows, over a connection of the person who asks for it."""

from collections.abc import Mapping
from typing import Final

import msgspec

from kettle.dag.view.run_view import RunView
from kettle.terminal.nearest_names import did_you_mean
from kettle_services.gateway.rest.access_points import AccessPoints
from kettle_services.gateway.rest.application import Answer, Asked
from kettle_services.gateway.rest.connections import PersonConnections
from kettle_services.gateway.rest.idempotency import Repeats, command_id
from kettle_services.gateway.rest.refusals import RequestRefused, refused_field
from kettle_services.gateway.rest.workflows.access import WorkflowAccess, no_such_workflow
from kettle_services.gateway.rest.workflows.views import Watched
from kettle_wire.commands.dagman import CHANGE_WORKFLOW, ChangeWorkflow
from kettle_wire.commands.queue import ACT, EDIT_JOBS, Act, EditJobs, Select
from kettle_wire.endpoint import Position
from kettle_wire.rest.problem import ProblemCode
from kettle_wire.rest.workflows import (
    ChangeLimits,
    ControlWorkflow,
    DeleteWorkflow,
    NewLimits,
    WorkflowOrder,
    WorkflowTold,
)

_LIMITS: Final = ("max_jobs", "max_idle", "max_pre", "max_post", "max_hold")


class WorkflowOrders:
    """Sends them; the services decide themselves who may."""

    def __init__(
        self, people: PersonConnections, access_points: AccessPoints, access: WorkflowAccess
    ) -> None:
        self._people = people
        self._access_points = access_points
        self._access = access
        self._repeats = Repeats()

    async def control(self, asked: Asked) -> Answer:
        """Halt a workflow, or let it go on."""
        parameters: ControlWorkflow = asked.parameters
        order: WorkflowOrder = asked.body
        if (first := self._repeats.first_answer(asked)) is not None:
            return first
        watched = await self._living(asked, parameters.id)
        change = ChangeWorkflow(
            workflow=watched.view.started.workflow, halt=parameters.action == "halt", reason=order.reason
        )
        return await self._changed(asked, watched, change)

    async def change(self, asked: Asked) -> Answer:
        """Other limits."""
        parameters: ChangeLimits = asked.parameters
        wanted: NewLimits = asked.body
        if (first := self._repeats.first_answer(asked)) is not None:
            return first
        watched = await self._living(asked, parameters.id)
        view = watched.view
        limits = {name: value for name in _LIMITS if (value := getattr(wanted, name)) is not None}
        categories = _categories(view, wanted.categories or {})
        if not limits and categories is None and wanted.priority is None:
            raise refused_field(
                "/body", "the body names nothing to change", code=ProblemCode.BODY_INVALID, status=422
            )
        told: Answer | None = None
        if wanted.priority is not None:
            told = await self._prioritized(asked, watched, wanted.priority)
        if limits or categories is not None:
            options = msgspec.structs.replace(view.options, **limits)
            number = view.started.workflow
            told = await self._changed(
                asked, watched, ChangeWorkflow(workflow=number, options=options, categories=categories)
            )
        assert told is not None, "something was to be changed"
        return told

    async def delete(self, asked: Asked) -> Answer:
        """Remove it, as its DAG job."""
        parameters: DeleteWorkflow = asked.parameters
        if (first := self._repeats.first_answer(asked)) is not None:
            return first
        schedd, number = await self._access.place(parameters.id)
        reason = parameters.reason or "removed over HTTP"
        request = Act(id=command_id(asked), action="remove", select=Select(clusters=[number]), reason=reason)
        async with self._people.of(asked.person) as client:
            there = await self._access_points.at(client, schedd, "/path/id")
            acted = await there.requests.ask(ACT, request)
        if not acted.outcomes:
            raise no_such_workflow(parameters.id)
        if any(each.outcome == "denied" for each in acted.outcomes):
            raise RequestRefused(
                403,
                ProblemCode.NOT_PERMITTED,
                f"workflow {parameters.id} is not {asked.person.name}'s to remove: its owner may, and who is in queue_super_users of [schedd]",
            )
        return self._answered(asked, f"{number}@{schedd}", acted.position)

    async def _living(self, asked: Asked, text: str) -> Watched:
        """A workflow that is not over; raises RequestRefused."""
        watched = await self._access.watched(asked, text)
        if watched.view.ended is not None:
            raise RequestRefused(
                409, ProblemCode.WORKFLOW_OVER, f"workflow {text} is over: nothing of it can be changed"
            )
        return watched

    async def _changed(self, asked: Asked, watched: Watched, change: ChangeWorkflow) -> Answer:
        async with self._people.of(asked.person) as client:
            there = await self._access_points.at(client, watched.schedd, "/path/id")
            told = await there.requests.ask(CHANGE_WORKFLOW, change)
        return self._answered(asked, watched.id, told.position)

    async def _prioritized(self, asked: Asked, watched: Watched, priority: int) -> Answer:
        number, change = watched.view.started.workflow, {"JobPrio": priority}

        def edit(part: str, select: Select) -> EditJobs:
            return EditJobs(id=command_id(asked, part), select=select, attributes=dict(change))

        async with self._people.of(asked.person) as client:
            there = await self._access_points.at(client, watched.schedd, "/path/id")
            await there.requests.ask(EDIT_JOBS, edit("job", Select(clusters=[number])))
            of_nodes = Select(owners=[watched.view.started.owner], constraint=f"DAGManJobId =?= {number}")
            told = await there.requests.ask(EDIT_JOBS, edit("nodes", of_nodes))
        return self._answered(asked, watched.id, told.position)

    def _answered(self, asked: Asked, name: str, position: Position) -> Answer:
        told = WorkflowTold(id=name, position=f"{position.shard}:{position.frame}")
        return self._repeats.answered(asked, Answer(told))


def _categories(view: RunView, wanted: Mapping[str, int]) -> dict[str, int] | None:
    """
    All limits of categories as they are to be; None: they stay.  A limit of 0 is none.

    Raises RequestRefused for a category that the workflow has not.
    """
    if not wanted:
        return None
    known = {*view.plan.categories.values(), *view.categories}
    for name in wanted:
        if name not in known:
            raise refused_field(
                "/body/categories",
                f"the workflow has no category {name}{did_you_mean(name, known)}",
                code=ProblemCode.BODY_INVALID,
                status=422,
            )
    return {name: most for name, most in {**view.categories, **wanted}.items() if most}
