"""The page of all workflows."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Final, get_args

import msgspec

from kettle_services.gateway.pages.page import Link, Page, Shown
from kettle_services.gateway.pages.questions import Questions
from kettle_services.gateway.pages.workflows.drawing import Part, bar_of
from kettle_services.gateway.rest.application import Asked
from kettle_wire.jobs import Name
from kettle_wire.rest.jobs import At, Limit
from kettle_wire.rest.jobs import Page as PageToken
from kettle_wire.rest.route import Moment
from kettle_wire.rest.workflows import LIST_WORKFLOWS, ListWorkflows, Workflow, Workflows, WorkflowStateName


class AskedWorkflows(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which workflows."""

    owner: list[Name] = []
    state: list[WorkflowStateName] = []
    name: Annotated[str, msgspec.Meta(max_length=256)] = ""
    limit: Limit = 50
    page: PageToken = ""
    at_least: At | None = None
    as_of: Moment | None = None


WORKFLOWS: Final = Page(
    "/workflows",
    "Workflows",
    template="workflows/list.html",
    parameters=AskedWorkflows,
    link=Link("Jobs", 3),
    live="workflows/list_live.html",
    only_now=True,
)


class WorkflowRow(msgspec.Struct, frozen=True):
    """A workflow, with the parts of its states."""

    workflow: Workflow
    parts: Sequence[Part]
    done: int


class WorkflowsView(msgspec.Struct, frozen=True, kw_only=True):
    """The page."""

    asked: AskedWorkflows
    rows: Sequence[WorkflowRow]
    next: str | None
    states: Sequence[str]
    narrowed: bool


class WorkflowsPage:
    """Shows it."""

    def __init__(self, questions: Questions) -> None:
        self._questions = questions

    async def show(self, asked: Asked) -> Shown:
        """Those that are asked for, with how far they are."""
        wanted: AskedWorkflows = asked.parameters
        question = ListWorkflows(
            owner=wanted.owner,
            state=wanted.state,
            name=wanted.name,
            limit=wanted.limit,
            page=wanted.page,
            at_least=wanted.at_least,
        )
        found = await self._questions.ask(asked, LIST_WORKFLOWS, question, Workflows)
        view = WorkflowsView(
            asked=wanted,
            rows=[WorkflowRow(each, bar_of(each.counts), done_of(each.counts)) for each in found.workflows],
            next=found.next,
            states=get_args(WorkflowStateName),
            narrowed=bool(wanted.owner or wanted.state or wanted.name),
        )
        return Shown(view, frames=found.frames)


def done_of(counts: Mapping[str, int]) -> int:
    """Nodes that have succeeded."""
    return counts.get("done", 0) + counts.get("skipped", 0)
