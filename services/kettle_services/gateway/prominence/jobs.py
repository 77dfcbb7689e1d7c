"""Jobs: submitted, listed, described, ended, copied, and what they have written."""

import re
import time
from collections.abc import Sequence
from typing import Final

from aiohttp import web

from kettle.auth.mapping.levels import Level
from kettle.client import Client
from kettle.client.connections.transport import new_id
from kettle.prominence.job_ads import DOCUMENT
from kettle_services.gateway.prominence.application import Asked, Handler, Route, refused, reply
from kettle_services.gateway.prominence.data import address_of
from kettle_services.gateway.prominence.job_lists import JobLists, Written, one, wanted
from kettle_services.gateway.prominence.job_states import IDENTIFIER, described, document_of, listed, told
from kettle_services.gateway.prominence.object_directory import ObjectDirectory
from kettle_services.gateway.prominence.signatures import Signer
from kettle_services.gateway.prominence.submitting import Submitting, output_place
from kettle_services.gateway.rest.application import Asked as RestAsked
from kettle_services.gateway.rest.application import Handler as RestHandler
from kettle_services.gateway.rest.connections import PersonConnections
from kettle_wire.commands.queue import ACT, EDIT_JOBS, Act, Acted, EditJobs, Select
from kettle_wire.jobs import JobId
from kettle_wire.rest.files import GetStdout
from kettle_wire.rest.jobs import Job

_STATUSES: Final = frozenset({"", "idle", "running"})
_DELETED: Final = "Job deleted by user"
_LEAVE: Final = "LeaveJobInQueue"
NUMBER: Final = "{id:[0-9]{1,9}}"
_NUMBERS: Final = re.compile(r"[0-9]{1,9}(,[0-9]{1,9}){0,999}")


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
        streams: Sequence[RestHandler],
    ) -> None:
        """`streams`: what answers with a job's standard output, and with its standard error."""
        self._people = people
        self._lists = lists
        self._written = written
        self._submitting = submitting
        self._objects = objects
        self._signer = signer
        self._stdout, self._stderr = streams

    def routes(self) -> Sequence[Route]:
        """What is asked."""
        job = f"/jobs/{NUMBER}"
        return (
            Route("POST", "/jobs", Level.WRITE, self.submit),
            Route("GET", "/jobs", Level.READ, self.list),
            Route("DELETE", "/jobs", Level.WRITE, self.delete_some),
            Route("GET", job, Level.READ, self.describe),
            Route("DELETE", job, Level.WRITE, self.delete),
            Route("GET", f"{job}/stdout", Level.READ, self._stream(self._stdout)),
            Route("GET", f"{job}/stderr", Level.READ, self._stream(self._stderr)),
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
        found = await self._lists.find(asked, one(asked.path_number("id")))
        return reply([await self._described(asked, job) for job in found])

    async def _described(self, asked: Asked, job: Job) -> dict[str, object]:
        ad = job.attributes or {}
        identifier, owner = str(ad.get(IDENTIFIER, "")), asked.person.name
        document = document_of(ad)
        addresses: dict[tuple[str, bool], str] = {}
        for kind, directory in (("outputFiles", False), ("outputDirs", True)):
            for name in document.get(kind, ()):
                place = output_place(owner, identifier, name, directory=directory)
                if identifier and await self._objects.file(place) is not None:
                    addresses[name, directory] = address_of(self._signer, place)
        return described(job, lambda name, directory: addresses.get((name, directory), ""))

    async def delete(self, asked: Asked) -> web.StreamResponse:
        """End a job."""
        return await self._deleted(asked, [asked.path_number("id")])

    async def delete_some(self, asked: Asked) -> web.StreamResponse:
        """End jobs."""
        text = asked.text("id")
        if not _NUMBERS.fullmatch(text):
            raise refused("A job id or list of job ids must be provided: id=1,2")
        return await self._deleted(asked, [int(each) for each in text.split(",")])

    async def _deleted(self, asked: Asked, numbers: Sequence[int]) -> web.StreamResponse:
        select = Select(jobs=[JobId(number, 0) for number in numbers])
        request = Act(id=new_id(), action="remove", select=select, reason=_DELETED)
        async with self._people.of(asked.person) as client:
            self._note(asked, acted := await client.requests.ask(ACT, request))
        for each in acted.outcomes:
            if each.outcome in {"not_found", "denied"}:
                raise refused(f"there is no job {each.job.cluster} of yours that could be deleted")
        return reply({})

    async def remove(self, asked: Asked) -> web.StreamResponse:
        """Have a job leave the queue that has ended."""
        number = asked.path_number("id")
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
        request = EditJobs(id=new_id(), select=Select(jobs=[JobId(number, 0)]), attributes={_LEAVE: False})
        self._note(asked, await client.requests.ask(EDIT_JOBS, request))

    async def clone(self, asked: Asked) -> web.StreamResponse:
        """Submit the same job again."""
        number = asked.path_number("id")
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

    def _stream(self, handler: RestHandler) -> Handler:
        async def answer(asked: Asked) -> web.StreamResponse:
            if asked.number("node"):
                raise refused("the job has one node: leave the parameter node out")
            offset = asked.number("offset")
            if offset < 0:
                raise refused("the parameter offset begins at 0")
            async with self._people.of(asked.person) as client:
                name = f"{asked.path_number('id')}.0@{client.pool.schedd}"
            parameters = GetStdout(id=name, offset=offset)
            inside = RestAsked(
                asked.person, parameters, None, asked.request, admission=asked.admitted.admission
            )
            response = await handler(inside)
            assert isinstance(response, web.StreamResponse)
            return response

        return answer

    def _note(self, asked: Asked, acted: Acted) -> None:
        self._written.note(asked.person.name, f"{acted.position.shard}:{acted.position.frame}")
