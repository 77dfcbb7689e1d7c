"""
Workflows: submitted, listed, described, ended, run again, copied, and what their jobs have written.

Those whose jobs wait for nothing but machines are one cluster, with a job for each job of the document and each instance of a factory;
others are a DAG job, and the jobs that it submits name it.
"""

import asyncio
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
from kettle.client.errors import CommandRefusedError
from kettle.prominence.faults import DocumentRefused
from kettle.prominence.instances import IDENTIFIER
from kettle.prominence.nodes import WorkflowNode, WorkflowNodes, seeded
from kettle.prominence.pull_credentials import taken_out
from kettle.prominence.workflow_documents import read_workflow
from kettle.prominence.workflow_orders import WorkflowOrder, node_names, stays
from kettle_services.gateway.prominence.application import Asked, Route, refused, reply
from kettle_services.gateway.prominence.dag_workflows import DagWorkflows
from kettle_services.gateway.prominence.job_lists import (
    WORKFLOW_OF,
    Wanted,
    constrained,
    has,
    node_of,
    wanted,
)
from kettle_services.gateway.prominence.job_states import ENDED, FIELDS, told
from kettle_services.gateway.prominence.numbers import NUMBER, job_of, number_of, numbers_of
from kettle_services.gateway.prominence.resource import Parts, Resource
from kettle_services.gateway.prominence.submitting import first_fault
from kettle_services.gateway.prominence.workflow_states import FIELDS as OF_WORKFLOWS
from kettle_services.gateway.prominence.workflow_states import (
    FIRST,
    RUNS,
    SIZE,
    WORKFLOW,
    WORKFLOW_LABEL,
    WORKFLOW_NAME,
    attributes_of,
    described,
    is_dag,
    runs_of,
    runs_said,
)
from kettle_services.gateway.rest.persons import Person
from kettle_wire.codes import NodeState, RefusalCode
from kettle_wire.commands.queue import Select
from kettle_wire.jobs import JobId
from kettle_wire.prominence.workflow import Workflow
from kettle_wire.rest.jobs import Job

MOST: Final = 1000
"""Jobs of a workflow that is one cluster; one that has more is a DAG job."""
_SEEDS: Final = 1 << 31
_DELETED: Final = "Job part of a workflow which was deleted by user"


class Workflows(Resource):
    """Answers what is asked about them."""

    def __init__(self, parts: Parts, dags: DagWorkflows) -> None:
        super().__init__("/workflows", parts)
        self._dags = dags

    def routes(self) -> Sequence[Route]:
        """What is asked."""
        one = f"/workflows/{NUMBER}"
        return (
            *super().routes(),
            Route("PUT", one, Level.WRITE, self.rerun),
            Route("GET", one + "/{name:.+}/{stream:stdout|stderr}", Level.READ, self.stream),
        )

    async def submit(self, asked: Asked) -> web.StreamResponse:
        """All of its jobs, or none."""
        try:
            workflow = await _read(await asked.described())
        except DocumentRefused as error:
            raise refused(first_fault(error)) from error
        return await self._submitted(asked, workflow)

    async def _submitted(self, asked: Asked, workflow: Workflow) -> web.StreamResponse:
        async with self._parts.people.of(asked.person) as client:
            number = await self._number_of(client, asked.person, workflow)
        return reply({"id": number}, 201)

    async def submit_dag(self, client: Client, person: Person, text: str) -> int:
        """
        The number of a workflow that is run by a DAG job, whatever it has.  Raises DocumentRefused, and RequestRefused for what is not
        carried out.
        """
        workflow = await _read(text)
        return await self._dags.submit(client, person, workflow)

    async def rerun_dag(
        self, client: Client, person: Person, number: int, order: WorkflowOrder, done: list[int]
    ) -> int:
        """
        The number of a new run of a workflow that was run by a DAG job: what that one was given, and the nodes that are done.
        """
        select = Select(jobs=[JobId(number, 0)])
        [ad] = await client.jobs(select, projection=[RUNS])
        workflow = await asyncio.to_thread(read_workflow, bytes(order.document))
        runs = [*runs_said(ad.get(RUNS)), number]
        return await self._dags.submit(
            client, person, workflow, done=done, identifier=order.identifier, runs=runs
        )

    async def _number_of(self, client: Client, person: Person, workflow: Workflow) -> int:
        size = len(WorkflowNodes(workflow))
        told_of_its_end = workflow.notifications or workflow.policies.maximum_reruns
        if workflow.dependencies or told_of_its_end or size > MOST:
            return await self._dags.submit(client, person, workflow)
        jobs, logins = taken_out(workflow.jobs)
        workflow = msgspec.structs.replace(workflow, jobs=jobs)
        more = [attributes_of(workflow, size, is_first=not number) for number in range(size)]
        treated = [_treated(node, workflow) for node in WorkflowNodes(workflow)]
        return await self._parts.submitting.submit_together(
            client, person, workflow, treated, more, logins, now=time.time()
        )

    async def find(self, asked: Asked) -> web.StreamResponse:
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

    async def _first(self, asked: Asked, asks: Wanted, mark: str, *, ended: bool) -> "list[Job]":
        """Jobs by which workflows are found that may be meant."""
        named = text_of(constrained(asked, has(mark), name=WORKFLOW_NAME, label=WORKFLOW_LABEL))
        which = Wanted(filter=named, active=not ended, ended=ended, newest=asks.newest)
        return await self._parts.lists.find(asked, which)

    async def _found(self, asked: Asked, clusters: Sequence[int]) -> "list[_Found]":
        if not clusters:
            return []
        of_them = Wanted(
            filter=text_of(has(SIZE)),
            ended=True,
            newest=-1,
            clusters=[*clusters],
            fields=(*FIELDS, *OF_WORKFLOWS),
        )
        jobs = await self._parts.lists.find(asked, of_them)
        groups = [[*group] for _, group in groupby(jobs, key=lambda job: job.cluster)]
        return [_Found(group, shown) for group in groups if (shown := described(group)) is not None]

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

    async def end(self, asked: Asked, numbers: Sequence[int]) -> None:
        """End all jobs of workflows; raises RequestRefused: one is not there."""
        clusters = sorted({job_of(number).cluster for number in numbers})
        found = {each.number for each in await self._found(asked, clusters)}
        if missing := [number for number in numbers if number not in found]:
            raise refused(f"there is no workflow {missing[0]} of yours to delete")
        await self.removed(asked, Select(clusters=clusters), _DELETED)

    async def remove(self, asked: Asked) -> web.StreamResponse:
        """Have its jobs leave the queue that have all ended."""
        found = await self._one(asked)
        if not found.has_ended:
            raise refused(f"workflow {found.number} has not ended: delete it")
        await self.let_go(asked, Select(clusters=[found.number]))
        if found.is_dag:
            of_nodes = f"{WORKFLOW_OF} =?= {found.number}"
            await self.let_go(asked, Select(owners=[asked.person.name], constraint=of_nodes))
        return reply({})

    async def clone(self, asked: Asked) -> web.StreamResponse:
        """Submit the same workflow again."""
        found = await self._one(asked)
        return await self._submitted(asked, await self._document(asked, found))

    async def rerun(self, asked: Asked) -> web.StreamResponse:
        """Run what has not been done of a workflow that has ended, as a workflow with a number of its own."""
        found = await self._one(asked)
        if not found.has_ended:
            raise refused(f"workflow {found.number} has not ended")
        if found.shown["status"] == "completed":
            raise refused(f"workflow {found.number} has completed: clone it to run all of it again")
        workflow = await self._document(asked, found)
        async with self._parts.people.of(asked.person) as client:
            number = await self._dags.submit(
                client,
                asked.person,
                workflow,
                done=await _done(client, found),
                identifier=found.identifier,
                runs=runs_of(found.jobs[0]),
            )
        return reply({"id": number})

    async def _document(self, asked: Asked, found: "_Found") -> Workflow:
        """As it was submitted; raises RequestRefused: its input files are not kept any more."""
        workflow = found.document()
        if not any(job.inputs for job in workflow.jobs):
            return workflow
        return read_workflow(await self._parts.documents.find(asked.person.name, found.identifier))

    async def stream(self, asked: Asked) -> web.StreamResponse:
        """What one of its jobs has written, by the job's name and which instance it is."""
        found, said = await self._one(asked), asked.request.match_info["name"]
        names = node_names(WorkflowNodes(found.document()))
        name = said if said in names else f"{said}/0"  # the first instance, where none is named
        if name not in names:
            raise refused(f"the workflow has no job {said}")
        number = number_of(found.number, names.index(name))
        if found.is_dag:
            tried = await self._parts.lists.find(asked, node_of(runs_of(found.jobs[0]), name))
            if not tried:
                raise refused(f"the job {name} of workflow {found.number} has not been submitted")
            number = number_of(tried[-1].cluster, tried[-1].proc)
        return await self._parts.streams.answer(asked, number, asked.request.match_info["stream"])


class _Found(msgspec.Struct, frozen=True):
    """A workflow that somebody has asked for."""

    jobs: list[Job]
    """Its jobs, or its DAG job."""
    shown: dict[str, Any]

    @property
    def number(self) -> int:
        """Of the workflow."""
        return self.jobs[0].cluster

    @property
    def is_dag(self) -> bool:
        """Whether it is a DAG job, and not a cluster of its jobs."""
        return is_dag(self.jobs[0])

    @property
    def identifier(self) -> str:
        """What its results are kept under."""
        return str((self.jobs[0].attributes or {}).get(IDENTIFIER, "")).partition("/")[0]

    @property
    def has_ended(self) -> bool:
        """Whether nothing more will happen to it by itself."""
        return self.shown["status"] in ENDED

    def document(self) -> Workflow:
        """As it was submitted, but for its secrets and the content of its input files."""
        return read_workflow(str((self.jobs[0].attributes or {})[WORKFLOW]))


async def _done(client: Client, found: _Found) -> list[int]:
    """The nodes of a workflow that has ended which are done."""
    if not found.is_dag:
        return [job.proc for job in found.jobs if told(job).status == "completed"]
    try:
        state = await client.workflows.show(found.number, nodes=True)
    except CommandRefusedError as error:
        if error.code != RefusalCode.NOT_FOUND:
            raise
        return []  # its process has never run
    return [number for number, each in enumerate(state.states) if each in {NodeState.DONE, NodeState.SKIPPED}]


async def _read(text: bytes | str) -> Workflow:
    """As it is to run.  It may take seconds, in which others are answered.  Raises DocumentRefused."""
    return seeded(await asyncio.to_thread(read_workflow, text), _seeds())


def _seeds() -> Iterator[int]:
    while True:
        yield secrets.randbelow(_SEEDS)


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
