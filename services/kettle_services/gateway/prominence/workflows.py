"""
Workflows whose jobs wait for nothing but machines: one cluster, with a job for each job of the document and each instance of a factory.
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
from kettle.client.connections.transport import new_id
from kettle.prominence.faults import DocumentRefused
from kettle.prominence.job_ads import redacted
from kettle.prominence.nodes import WorkflowNode, WorkflowNodes, seeded
from kettle.prominence.workflow_documents import read_workflow
from kettle_services.gateway.prominence.application import Asked, Route, refused, reply
from kettle_services.gateway.prominence.job_lists import JobLists, Wanted, Written, constrained, has, wanted
from kettle_services.gateway.prominence.job_states import ENDED, FIELDS
from kettle_services.gateway.prominence.jobs import Streams
from kettle_services.gateway.prominence.numbers import NUMBER, job_of, number_of, numbers_of
from kettle_services.gateway.prominence.submitting import Submitting, first_fault
from kettle_services.gateway.prominence.workflow_states import (
    FIRST,
    SIZE,
    WORKFLOW,
    WORKFLOW_LABEL,
    WORKFLOW_NAME,
    described,
)
from kettle_services.gateway.rest.connections import PersonConnections
from kettle_wire.ads.types import Ad
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
        streams: Streams,
    ) -> None:
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
        nodes = WorkflowNodes(workflow)
        if len(nodes) > MOST:
            raise refused(
                f"the workflow has {len(nodes):,} jobs, and one has {MOST:,} at most: submit it in parts"
            )
        more = [_attributes(workflow, nodes, number) for number in range(len(nodes))]
        async with self._people.of(asked.person) as client:
            number = await self._submitting.submit_together(
                client, asked.person, [_treated(node, workflow) for node in nodes], more, now=time.time()
            )
        return reply({"id": number}, 201)

    async def show(self, asked: Asked) -> web.StreamResponse:
        """Workflows that are active, or have ended, or both."""
        asks = wanted(asked)
        numbers = numbers_of(asked.text("id")) if asked.has("id") else []
        found = await self._first(asked, asks, SIZE, ended=False) if asks.active else []
        if asks.ended:
            found += await self._first(asked, asks, FIRST, ended=True)
        clusters = [job.cluster for job in found if not numbers or job.cluster in numbers]
        shown = [each for each in await self._described(asked, clusters) if _is_asked(each, asks)]
        newest = len(shown) if asks.newest < 0 or asks.active else asks.newest
        return reply(shown[max(0, len(shown) - newest) :])

    async def _first(self, asked: Asked, asks: Wanted, mark: str, *, ended: bool) -> list[Job]:
        """Jobs by which workflows are found that may be meant."""
        named = text_of(constrained(asked, has(mark), name=WORKFLOW_NAME, label=WORKFLOW_LABEL))
        return await self._lists.find(
            asked, Wanted(filter=named, active=not ended, ended=ended, newest=asks.newest)
        )

    async def _described(self, asked: Asked, clusters: Sequence[int]) -> list[dict[str, Any]]:
        if not clusters:
            return []
        of_them = Wanted(
            filter=text_of(has(SIZE)),
            ended=True,
            newest=-1,
            clusters=list(clusters),
            fields=(*FIELDS, WORKFLOW, SIZE),
        )
        jobs = await self._lists.find(asked, of_them)
        groups = [list(group) for _, group in groupby(jobs, key=lambda job: job.cluster)]
        return [shown for group in groups if (shown := described(group)) is not None]

    async def describe(self, asked: Asked) -> web.StreamResponse:
        """One workflow in a list, which is empty if there is none."""
        return reply(await self._described(asked, [job_of(asked.path_number()).cluster]))

    async def _one(self, asked: Asked) -> dict[str, Any]:
        number = asked.path_number()
        found = await self._described(asked, [job_of(number).cluster])
        if not found or found[0]["id"] != number:
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
        found = {each["id"] for each in await self._described(asked, clusters)}
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
        if found["status"] not in ENDED:
            raise refused(f"workflow {found['id']} has not ended: delete it")
        request = EditJobs(
            id=new_id(), select=Select(clusters=[found["id"]]), attributes={"LeaveJobInQueue": False}
        )
        async with self._people.of(asked.person) as client:
            self._written.note_acted(asked.person.name, await client.requests.ask(EDIT_JOBS, request))
        return reply({})

    async def clone(self, asked: Asked) -> web.StreamResponse:
        """Submit the same workflow again."""
        found = await self._one(asked)
        if any(job.get("inputs") for job in found["jobs"]):
            raise refused(
                f"the input files of workflow {found['id']} are not kept: submit its document again"
            )
        document = {name: found[name] for name in Workflow.__struct_encode_fields__ if name in found}
        return await self._submitted(asked, msgspec.json.encode(document))

    async def stream(self, asked: Asked) -> web.StreamResponse:
        """What one of its jobs has written, by the job's name and which instance it is."""
        found = await self._one(asked)
        document = {name: found[name] for name in Workflow.__struct_encode_fields__ if name in found}
        proc = _place(read_workflow(msgspec.json.encode(document)), asked.request.match_info["name"])
        stream = asked.request.match_info["stream"]
        return await self._streams.answer(asked, number_of(found["id"], proc), stream)


def _seeds() -> Iterator[int]:
    while True:
        yield secrets.randbelow(_SEEDS)


def _not_carried_out(workflow: Workflow) -> str:
    """What of it would have no effect, in a sentence; empty: nothing."""
    if workflow.dependencies:
        return "jobs that wait for others are not run yet: leave dependencies out, or submit the workflow in parts"
    if workflow.policies.maximum_reruns:
        return "a part of a workflow is not run again yet: leave maximumReruns out, and give maximumRetries"
    if workflow.notifications:
        return "no mail is sent about workflows yet: give each job its notifications"
    return ""


def _treated(node: WorkflowNode, workflow: Workflow) -> WorkflowNode:
    """A job with what the workflow says of all of its jobs; they stay in the queue if one of them is to."""
    stays = [workflow.policies.leave_in_queue, *(job.policies.leave_in_queue for job in workflow.jobs)]
    policies = msgspec.structs.replace(
        node.job.policies,
        maximum_retries=workflow.policies.maximum_retries or node.job.policies.maximum_retries,
        leave_in_queue=any(stays),
    )
    return msgspec.structs.replace(node, job=msgspec.structs.replace(node.job, policies=policies))


def _attributes(workflow: Workflow, nodes: WorkflowNodes, number: int) -> Ad:
    """Attributes of a job that say that it is of this workflow; only the first has the document."""
    shared: Ad = {
        SIZE: len(nodes),
        "JobBatchName": workflow.name or "workflow",
        **{WORKFLOW_LABEL + name: value for name, value in workflow.labels.items()},
    }
    if workflow.name:
        shared[WORKFLOW_NAME] = workflow.name
    if number:
        return shared
    shown = msgspec.structs.replace(workflow, jobs=[redacted(job) for job in workflow.jobs])
    return {**shared, FIRST: True, WORKFLOW: msgspec.json.encode(shown).decode()}


def _place(workflow: Workflow, name: str) -> int:
    """
    The place of a job in the cluster; raises RequestRefused: there is none of this name, or no such instance.
    """
    nodes = WorkflowNodes(workflow)
    places = {job.name: nodes.numbers(place) for place, job in enumerate(workflow.jobs)}
    if name in places:
        return places[name][0]
    job, _, instance = name.rpartition("/")
    if job in places and instance.isascii() and instance.isdigit() and len(instance) < len(str(MOST)) + 1:
        of_job = places[job]
        if int(instance) < len(of_job):
            return of_job[int(instance)]
    raise refused(f"the workflow has no job {name}")


def _is_asked(shown: dict[str, Any], asks: Wanted) -> bool:
    ended = shown["status"] in ENDED
    return (asks.ended if ended else asks.active) and asks.status in {"", shown["status"]}
