"""Jobs: submitted, listed, described, ended, copied, and what they have written."""

import time
from collections.abc import Mapping, Sequence
from typing import Final

from aiohttp import web

from kettle.auth.mapping.levels import Level
from kettle.client import Client
from kettle.client.connections.transport import new_id
from kettle.prominence.addresses import LONGEST_NAME, output_place
from kettle.prominence.instances import IDENTIFIER
from kettle.prominence.job_ads import DOCUMENT
from kettle.prominence.substitution import substituted, substituted_length
from kettle_services.gateway.prominence.application import Asked, Handler, Route, refused, reply
from kettle_services.gateway.prominence.data import address_of
from kettle_services.gateway.prominence.job_lists import JobLists, Written, one, wanted
from kettle_services.gateway.prominence.job_states import (
    described,
    document_of,
    listed,
    parameters_of,
    told,
)
from kettle_services.gateway.prominence.numbers import NUMBER, job_of, number_of, numbers_of
from kettle_services.gateway.prominence.object_directory import ObjectDirectory
from kettle_services.gateway.prominence.signatures import Signer
from kettle_services.gateway.prominence.submitting import Submitting
from kettle_services.gateway.rest.application import Asked as RestAsked
from kettle_services.gateway.rest.application import Handler as RestHandler
from kettle_services.gateway.rest.connections import PersonConnections
from kettle_wire.commands.queue import ACT, EDIT_JOBS, Act, EditJobs, Select
from kettle_wire.rest.files import GetStdout
from kettle_wire.rest.jobs import Job

_STATUSES: Final = frozenset({"", "idle", "running"})
_DELETED: Final = "Job deleted by user"
_LEAVE: Final = "LeaveJobInQueue"


class Streams:
    """What jobs have written to their standard streams."""

    def __init__(self, people: PersonConnections, handlers: Mapping[str, RestHandler]) -> None:
        """`handlers`: what answers with each, by its name."""
        self._people = people
        self._handlers = handlers

    async def answer(self, asked: Asked, number: int, name: str) -> web.StreamResponse:
        """One of a job, from a byte on."""
        if asked.number("node"):
            raise refused("the job has one node: leave the parameter node out")
        offset = asked.number("offset")
        if not 0 <= offset < 1 << 62:
            raise refused("the parameter offset begins at 0")
        async with self._people.of(asked.person) as client:
            job = f"{job_of(number)}@{client.pool.schedd}"
        parameters = GetStdout(id=job, offset=offset)
        inside = RestAsked(asked.person, parameters, None, asked.request, admission=asked.admitted.admission)
        response = await self._handlers[name](inside)
        assert isinstance(response, web.StreamResponse)
        return response


class JobHandlers:
    """Answers what is asked about jobs, each in the name of who asks."""

    def __init__(
        self,
        people: PersonConnections,
        lists: JobLists,
        written: Written,
        submitting: Submitting,
        objects: ObjectDirectory,
        signer: Signer,
        streams: Streams,
    ) -> None:
        self._people = people
        self._lists = lists
        self._written = written
        self._submitting = submitting
        self._objects = objects
        self._signer = signer
        self._streams = streams

    def routes(self) -> Sequence[Route]:
        """What is asked."""
        job = f"/jobs/{NUMBER}"
        return (
            Route("POST", "/jobs", Level.WRITE, self.submit),
            Route("GET", "/jobs", Level.READ, self.list),
            Route("DELETE", "/jobs", Level.WRITE, self.delete_some),
            Route("GET", job, Level.READ, self.describe),
            Route("DELETE", job, Level.WRITE, self.delete),
            Route("GET", f"{job}/stdout", Level.READ, self._stream("stdout")),
            Route("GET", f"{job}/stderr", Level.READ, self._stream("stderr")),
            Route("PUT", f"{job}/remove", Level.WRITE, self.remove),
            Route("PUT", f"{job}/clone", Level.WRITE, self.clone),
        )

    async def submit(self, asked: Asked) -> web.StreamResponse:
        """A job as its document describes it."""
        async with self._people.of(asked.person) as client:
            text = await asked.body()
            return reply(
                {"id": await self._submitting.submit(client, asked.person, text, now=time.time())}, 201
            )

    async def list(self, asked: Asked) -> web.StreamResponse:
        """Jobs, with as much of each as is wanted."""
        if asked.text("status") not in _STATUSES:
            return reply({"error": "Invalid status: it has to be idle or running"})
        found = await self._lists.find(asked, wanted(asked))
        if asked.has("detail"):
            return reply([await self._described(asked, job) for job in found])
        return reply([listed(job) for job in found])

    async def describe(self, asked: Asked) -> web.StreamResponse:
        """One job with everything, in a list, which is empty if there is none."""
        found = await self._lists.find(asked, one(asked.path_number()))
        return reply([await self._described(asked, job) for job in found])

    async def _described(self, asked: Asked, job: Job) -> dict[str, object]:
        ad = job.attributes or {}
        identifier, owner = str(ad.get(IDENTIFIER, "")), asked.person.name
        document, parameters = document_of(ad), parameters_of(ad)
        addresses: dict[tuple[str, bool], str] = {}
        for kind, directory in (("outputFiles", False), ("outputDirs", True)):
            for name in document.get(kind, ()):
                if substituted_length(name, parameters) > LONGEST_NAME:
                    continue  # nothing is called so
                plain = substituted(name, parameters)
                place = output_place(owner, identifier, plain, directory=directory)
                if identifier and await self._objects.file(place) is not None:
                    addresses[name, directory] = address_of(self._signer, place)
        return described(job, lambda name, directory: addresses.get((name, directory), ""))

    async def delete(self, asked: Asked) -> web.StreamResponse:
        """End a job."""
        return await self._deleted(asked, [asked.path_number()])

    async def delete_some(self, asked: Asked) -> web.StreamResponse:
        """End jobs."""
        return await self._deleted(asked, numbers_of(asked.text("id")))

    async def _deleted(self, asked: Asked, numbers: Sequence[int]) -> web.StreamResponse:
        select = Select(jobs=list(map(job_of, numbers)))
        request = Act(id=new_id(), action="remove", select=select, reason=_DELETED)
        async with self._people.of(asked.person) as client:
            acted = await client.requests.ask(ACT, request)
        self._written.note_acted(asked.person.name, acted)
        for each in acted.outcomes:
            if each.outcome in {"not_found", "denied"}:
                raise refused(
                    f"there is no job {number_of(each.job.cluster, each.job.proc)} of yours to delete"
                )
        return reply({})

    async def remove(self, asked: Asked) -> web.StreamResponse:
        """Have a job leave the queue that has ended."""
        number = asked.path_number()
        found = await self._lists.find(asked, one(number))
        if not found:
            raise refused(f"there is no job {number} of yours")
        if not told(found[0]).has_ended:
            raise refused(f"job {number} has not ended: delete it")
        async with self._people.of(asked.person) as client:
            await self._released(asked, client, number)
        return reply({})

    async def _released(self, asked: Asked, client: Client, number: int) -> None:
        """One that has left already stays where it is."""
        request = EditJobs(id=new_id(), select=Select(jobs=[job_of(number)]), attributes={_LEAVE: False})
        self._written.note_acted(asked.person.name, await client.requests.ask(EDIT_JOBS, request))

    async def clone(self, asked: Asked) -> web.StreamResponse:
        """Submit the same job again."""
        number = asked.path_number()
        found = await self._lists.find(asked, one(number))
        if not found:
            raise refused(f"there is no job {number} of yours")
        ad = found[0].attributes or {}
        if document_of(ad).get("inputs"):
            raise refused(f"the input files of job {number} are not kept: submit its document again")
        async with self._people.of(asked.person) as client:
            text = str(ad[DOCUMENT]).encode()
            return reply(
                {"id": await self._submitting.submit(client, asked.person, text, now=time.time())}, 201
            )

    def _stream(self, name: str) -> Handler:
        async def answer(asked: Asked) -> web.StreamResponse:
            return await self._streams.answer(asked, asked.path_number(), name)

        return answer
