"""
Workflows: submitted, listed, described, ended, run again, copied, and what their jobs have written.

Those whose jobs wait for nothing but machines are one cluster, with a job for each job of the document and each instance of a factory;
others are a DAG job, whose jobs name it.
"""

import secrets
import time
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any, Final

import msgspec
from aiohttp import web

from kettle.auth.mapping.levels import Level
from kettle.classad.ad import text_of
from kettle.client import Client
from kettle.client.connections.transport import new_id
from kettle.prominence.faults import DocumentRefused
from kettle.prominence.nodes import WorkflowNode, WorkflowNodes, seeded
from kettle.prominence.workflow_documents import read_workflow
from kettle.prominence.workflow_orders import node_names, stays
from kettle_services.gateway.prominence.application import Asked, Route, refused, reply
from kettle_services.gateway.prominence.dag_workflows import DagWorkflows
from kettle_services.gateway.prominence.job_lists import (
    WORKFLOW_OF,
    JobLists,
    Wanted,
    Written,
    constrained,
    has,
    node_of,
    wanted,
)
from kettle_services.gateway.prominence.job_states import ENDED, FIELDS
from kettle_services.gateway.prominence.jobs import Streams
from kettle_services.gateway.prominence.numbers import NUMBER, job_of, number_of, numbers_of
from kettle_services.gateway.prominence.submitting import Submitting, first_fault
from kettle_services.gateway.prominence.workflow_states import FIELDS as OF_WORKFLOWS
from kettle_services.gateway.prominence.workflow_states import (
    FIRST,
    SIZE,
    WORKFLOW,
    WORKFLOW_LABEL,
    WORKFLOW_NAME,
    attributes_of,
    described,
    is_dag,
)
from kettle_services.gateway.rest.connections import PersonConnections
from kettle_services.gateway.rest.persons import Person
from kettle_wire.commands.queue import ACT, EDIT_JOBS, Act, EditJobs, Select
from kettle_wire.prominence.workflow import Workflow
from kettle_wire.rest.jobs import Job

MOST: Final = 1000
"""Jobs of one workflow."""
_SEEDS: Final = 1 << 31
_DELETED: Final = "Job part of a workflow which was deleted by user"


class Workflows:
    """Answers what is asked about them."""

    def __init__(
        self,
        people: PersonConnections,
        lists: JobLists,
        written: Written,
        submitting: Submitting,
        dags: DagWorkflows,
        streams: Streams,
    ) -> None:
        self._dags = dags
        self._people = people
        self._lists = lists
        self._written = written
        self._submitting = submitting
        self._streams = streams

    def routes(self) -> Sequence[Route]:
        """What is asked."""
        one = f"/workflows/{NUMBER}"
        return (
            Route("POST", "/workflows", Level.WRITE, self.submit),
            Route("GET", "/workflows", Level.READ, self.show),
            Route("DELETE", "/workflows", Level.WRITE, self.delete_some),
            Route("GET", one, Level.READ, self.describe),
            Route("DELETE", one, Level.WRITE, self.delete),
            Route("PUT", one, Level.WRITE, self.rerun),
            Route("PUT", f"{one}/remove", Level.WRITE, self.remove),
            Route("PUT", f"{one}/clone", Level.WRITE, self.clone),
            Route("GET", one + "/{name:.+}/{stream:stdout|stderr}", Level.READ, self.stream),
        )

    async def submit(self, asked: Asked) -> web.StreamResponse:
        """All of its jobs, or none."""
        return await self._submitted(asked, await asked.body())

    async def _submitted(self, asked: Asked, text: bytes) -> web.StreamResponse:
        try:
            workflow = seeded(read_workflow(text), _seeds())
        except DocumentRefused as error:
            raise refused(first_fault(error)) from error
        if complaint := _not_carried_out(workflow):
            raise refused(complaint)
        async with self._people.of(asked.person) as client:
            number = await self._number_of(client, asked.person, workflow)
        return reply({"id": number}, 201)

    async def submit_dag(self, client: Client, person: Person, text: str) -> int:
        """
        The number of a workflow that is run by a DAG job, whatever it has.  Raises DocumentRefused, and RequestRefused for what is not
        carried out.
        """
        workflow = seeded(read_workflow(text), _seeds())
        if complaint := _not_carried_out(workflow):
            raise refused(complaint)
        return await self._dags.submit(client, person, workflow)

    async def _number_of(self, client: Client, person: Person, workflow: Workflow) -> int:
        nodes = WorkflowNodes(workflow)
        if workflow.dependencies or len(nodes) > MOST:
            return await self._dags.submit(client, person, workflow)
        size = len(nodes)
        more = [attributes_of(workflow, size, is_first=not number) for number in range(size)]
        treated = [_treated(node, workflow) for node in nodes]
        return await self._submitting.submit_together(client, person, treated, more, now=time.time())

    async def show(self, asked: Asked) -> web.StreamResponse:
        """Workflows that are active, or have ended, or both."""
        asks = wanted(asked)
        numbers = numbers_of(asked.text("id")) if asked.has("id") else []
        found = await self._first(asked, asks, SIZE, ended=False) if asks.active else []
        if asks.ended:
            found += await self._first(asked, asks, FIRST, ended=True)
        clusters = [job.cluster for job in found if not numbers or job.cluster in numbers]
        shown = [each.shown for each in await self._found(asked, clusters) if _is_asked(each.shown, asks)]
        newest = len(shown) if asks.newest < 0 or asks.active else asks.newest
        return reply(shown[max(0, len(shown) - newest) :])

    async def _first(self, asked: Asked, asks: Wanted, mark: str, *, ended: bool) -> list[Job]:
        """Jobs by which workflows are found that may be meant."""
        named = text_of(constrained(asked, has(mark), name=WORKFLOW_NAME, label=WORKFLOW_LABEL))
        return await self._lists.find(
            asked, Wanted(filter=named, active=not ended, ended=ended, newest=asks.newest)
        )

    async def _found(self, asked: Asked, clusters: Sequence[int]) -> list["_Found"]:
        if not clusters:
            return []
        of_them = Wanted(
            filter=text_of(has(SIZE)),
            ended=True,
            newest=-1,
            clusters=list(clusters),
            fields=(*FIELDS, *OF_WORKFLOWS),
        )
        jobs = await self._lists.find(asked, of_them)
        groups = [list(group) for _, group in groupby(jobs, key=lambda job: job.cluster)]
        return [_Found(group[0], shown) for group in groups if (shown := described(group)) is not None]

    async def describe(self, asked: Asked) -> web.StreamResponse:
        """One workflow in a list, which is empty if there is none."""
        found = await self._found(asked, [job_of(asked.path_number()).cluster])
        return reply([each.shown for each in found])

    async def _one(self, asked: Asked) -> "_Found":
        number = asked.path_number()
        found = await self._found(asked, [job_of(number).cluster])
        if not found or found[0].number != number:
            raise refused(f"there is no workflow {number} of yours")
        return found[0]

    async def delete(self, asked: Asked) -> web.StreamResponse:
        """End all of its jobs."""
        return await self._deleted(asked, [asked.path_number()])

    async def delete_some(self, asked: Asked) -> web.StreamResponse:
        """End workflows."""
        return await self._deleted(asked, numbers_of(asked.text("id")))

    async def _deleted(self, asked: Asked, numbers: Sequence[int]) -> web.StreamResponse:
        clusters = sorted({job_of(number).cluster for number in numbers})
        found = {each.number for each in await self._found(asked, clusters)}
        if missing := [number for number in numbers if number not in found]:
            raise refused(f"there is no workflow {missing[0]} of yours to delete")
        request = Act(id=new_id(), action="remove", select=Select(clusters=clusters), reason=_DELETED)
        async with self._people.of(asked.person) as client:
            self._written.note_acted(asked.person.name, await client.requests.ask(ACT, request))
        return reply({})

    async def rerun(self, asked: Asked) -> web.StreamResponse:
        """Nothing runs a part of a workflow again."""
        await self._one(asked)
        raise refused("a part of a workflow is not run again yet: clone the workflow, or its jobs")

    async def remove(self, asked: Asked) -> web.StreamResponse:
        """Have its jobs leave the queue that have all ended."""
        found = await self._one(asked)
        number = found.number
        if not found.has_ended:
            raise refused(f"workflow {number} has not ended: delete it")
        whole = [Select(clusters=[number])]
        if is_dag(found.first):
            whole.append(Select(constraint=f"{WORKFLOW_OF} =?= {number}"))
        async with self._people.of(asked.person) as client:
            for select in whole:
                request = EditJobs(id=new_id(), select=select, attributes={"LeaveJobInQueue": False})
                self._written.note_acted(asked.person.name, await client.requests.ask(EDIT_JOBS, request))
        return reply({})

    async def clone(self, asked: Asked) -> web.StreamResponse:
        """Submit the same workflow again."""
        found = await self._one(asked)
        if any(job.get("inputs") for job in found.shown["jobs"]):
            raise refused(
                f"the input files of workflow {found.number} are not kept: submit its document again"
            )
        async with self._people.of(asked.person) as client:
            number = await self._number_of(client, asked.person, found.document())
        return reply({"id": number}, 201)

    async def stream(self, asked: Asked) -> web.StreamResponse:
        """What one of its jobs has written, by the job's name and which instance it is."""
        found, said = await self._one(asked), asked.request.match_info["name"]
        names = node_names(WorkflowNodes(found.document()))
        name = said if said in names else f"{said}/0"  # the first instance, where none is named
        if name not in names:
            raise refused(f"the workflow has no job {said}")
        number = number_of(found.number, names.index(name))
        if is_dag(found.first):
            tried = await self._lists.find(asked, node_of(found.number, name))
            if not tried:
                raise refused(f"the job {name} of workflow {found.number} has not been submitted")
            number = number_of(tried[-1].cluster, tried[-1].proc)
        return await self._streams.answer(asked, number, asked.request.match_info["stream"])


class _Found(msgspec.Struct, frozen=True):
    """A workflow that somebody has asked for."""

    first: Job
    """The first of its jobs, or its DAG job."""
    shown: dict[str, Any]

    @property
    def number(self) -> int:
        """Of the workflow."""
        return self.first.cluster

    @property
    def has_ended(self) -> bool:
        """Whether nothing more will happen to it by itself."""
        return self.shown["status"] in ENDED

    def document(self) -> Workflow:
        """As it was submitted, but for its secrets and the content of its input files."""
        return read_workflow(str((self.first.attributes or {})[WORKFLOW]))


def _seeds() -> Iterator[int]:
    while True:
        yield secrets.randbelow(_SEEDS)


def _not_carried_out(workflow: Workflow) -> str:
    """What of it would have no effect, in a sentence; empty: nothing."""
    if workflow.policies.maximum_reruns:
        return "a part of a workflow is not run again yet: leave maximumReruns out, and give maximumRetries"
    if workflow.notifications:
        return "no mail is sent about workflows yet: give each job its notifications"
    return ""


def _treated(node: WorkflowNode, workflow: Workflow) -> WorkflowNode:
    """A job of a workflow that is one cluster: what the workflow says of all of its jobs is said of it."""
    policies = msgspec.structs.replace(
        node.job.policies,
        maximum_retries=workflow.policies.maximum_retries or node.job.policies.maximum_retries,
        leave_in_queue=stays(workflow),
    )
    return msgspec.structs.replace(node, job=msgspec.structs.replace(node.job, policies=policies))


def _is_asked(shown: dict[str, Any], asks: Wanted) -> bool:
    ended = shown["status"] in ENDED
    return (asks.ended if ended else asks.active) and asks.status in {"", shown["status"]}
