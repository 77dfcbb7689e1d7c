"""What is done to a workflow from its page."""

from typing import Annotated, Final, Literal

import msgspec

from kettle_services.gateway.pages.notices import Notice, refused
from kettle_services.gateway.pages.page import Form, Led
from kettle_services.gateway.pages.questions import Questions
from kettle_services.gateway.rest.application import Asked
from kettle_services.gateway.rest.refusals import RequestRefused
from kettle_wire.rest.streams import ClusterName
from kettle_wire.rest.workflows import (
    CHANGE_LIMITS,
    CONTROL_WORKFLOW,
    DELETE_WORKFLOW,
    ChangeLimits,
    ControlWorkflow,
    DeleteWorkflow,
    NewLimits,
    WorkflowOrder,
    WorkflowTold,
)
from kettle_wire.workflows import Count

_SAID: Final = {
    "halt": "The workflow is halted: what runs comes to its end, and nothing new begins.",
    "resume": "The workflow goes on.",
    "remove": "The workflow is being removed.",
    "limits": "The workflow goes by these limits from now on.",
}


class WhichWorkflow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The workflow."""

    id: ClusterName


class WorkflowForm(msgspec.Struct, frozen=True, kw_only=True):
    """What was sent."""

    action: Literal["halt", "resume", "remove", "limits"]
    reason: Annotated[str, msgspec.Meta(max_length=1000)] = ""
    max_jobs: Count | None = None
    max_idle: Count | None = None
    priority: Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)] | None = None


ACT_ON_WORKFLOW: Final = Form(
    "/workflows/{id}/actions",
    "Workflow",
    fields=WorkflowForm,
    parameters=WhichWorkflow,
    template="problem.html",
)


class WorkflowActions:
    """Carries them out."""

    def __init__(self, questions: Questions) -> None:
        self._questions = questions

    async def act(self, asked: Asked) -> Led:
        """Do it, and go back to the page; what is wrong is said there."""
        form: WorkflowForm = asked.body
        workflow: str = asked.parameters.id
        try:
            await self._done(asked, workflow, form)
        except RequestRefused as refusal:
            return Led(f"/workflows/{workflow}", notice=refused(refusal))
        return Led(f"/workflows/{workflow}", notice=Notice(said=[_SAID[form.action]]))

    async def _done(self, asked: Asked, workflow: str, form: WorkflowForm) -> None:
        ask = self._questions.ask
        match form.action:
            case "remove":
                removal = DeleteWorkflow(id=workflow, reason=form.reason)
                await ask(asked, DELETE_WORKFLOW, removal, WorkflowTold)
            case "limits":
                limits = NewLimits(max_jobs=form.max_jobs, max_idle=form.max_idle, priority=form.priority)
                await ask(asked, CHANGE_LIMITS, ChangeLimits(id=workflow), WorkflowTold, body=limits)
            case action:
                order = WorkflowOrder(reason=form.reason)
                await ask(
                    asked,
                    CONTROL_WORKFLOW,
                    ControlWorkflow(id=workflow, action=action),
                    WorkflowTold,
                    body=order,
                )
