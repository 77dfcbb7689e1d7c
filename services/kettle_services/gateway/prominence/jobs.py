"""Jobs: submitted, listed, described, ended, copied, and what they have written."""

import time
from collections.abc import Sequence
from typing import Final

from aiohttp import web

from kettle.auth.mapping.levels import Level
from kettle.prominence.addresses import LONGEST_NAME, output_place
from kettle.prominence.instances import IDENTIFIER
from kettle.prominence.job_ads import DOCUMENT
from kettle.prominence.substitution import substituted, substituted_length
from kettle_services.gateway.prominence.application import Asked, Handler, Route, refused, reply
from kettle_services.gateway.prominence.data import address_of
from kettle_services.gateway.prominence.job_lists import one, wanted, workflows_of
from kettle_services.gateway.prominence.job_states import (
    described,
    document_of,
    listed,
    parameters_of,
    told,
)
from kettle_services.gateway.prominence.numbers import NUMBER, job_of, number_of
from kettle_services.gateway.prominence.object_directory import ObjectDirectory
from kettle_services.gateway.prominence.resource import Parts, Resource
from kettle_services.gateway.prominence.signatures import Signer
from kettle_wire.commands.queue import Select
from kettle_wire.rest.jobs import Job

_STATUSES: Final = frozenset({"", "idle", "running"})
_DELETED: Final = "Job deleted by user"


class JobHandlers(Resource):
    """Answers what is asked about jobs."""

    def __init__(self, parts: Parts, objects: ObjectDirectory, signer: Signer) -> None:
        super().__init__("/jobs", parts)
        self._objects = objects
        self._signer = signer

    def routes(self) -> Sequence[Route]:
        """What is asked."""
        streams = (
            Route("GET", f"/jobs/{NUMBER}/{name}", Level.READ, self._stream(name))
            for name in ("stdout", "stderr")
        )
        return (*super().routes(), *streams)

    async def submit(self, asked: Asked) -> web.StreamResponse:
        """A job as its document describes it."""
        return await self._submitted(asked, await asked.described())

    async def _submitted(self, asked: Asked, text: bytes) -> web.StreamResponse:
        async with self._parts.people.of(asked.person) as client:
            number = await self._parts.submitting.submit(client, asked.person, text, now=time.time())
        return reply({"id": number}, 201)

    async def find(self, asked: Asked) -> web.StreamResponse:
        """Jobs, with as much of each as is wanted."""
        if asked.text("status") not in _STATUSES:
            return reply({"error": "Invalid status: it has to be idle or running"})
        lists = self._parts.lists
        found = await lists.find(asked, wanted(asked, await lists.runs(asked, workflows_of(asked))))
        if asked.has("detail"):
            return reply([await self._described(asked, job) for job in found])
        return reply([listed(job) for job in found])

    async def describe(self, asked: Asked) -> web.StreamResponse:
        """One job with everything, in a list, which is empty if there is none."""
        found = await self._parts.lists.find(asked, one(asked.path_number()))
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
                if identifier and await self._objects.find(place) is not None:
                    addresses[name, directory] = address_of(self._signer, place)
        return described(job, lambda name, directory: addresses.get((name, directory), ""))

    async def end(self, asked: Asked, numbers: Sequence[int]) -> None:
        """End jobs; raises RequestRefused: one is not there, or somebody else's."""
        acted = await self.removed(asked, Select(jobs=list(map(job_of, numbers))), _DELETED)
        for each in acted.outcomes:
            if each.outcome in {"not_found", "denied"}:
                raise refused(
                    f"there is no job {number_of(each.job.cluster, each.job.proc)} of yours to delete"
                )

    async def remove(self, asked: Asked) -> web.StreamResponse:
        """Have a job leave the queue that has ended."""
        number = asked.path_number()
        if not told(await self._one(asked)).has_ended:
            raise refused(f"job {number} has not ended: delete it")
        await self.let_go(asked, Select(jobs=[job_of(number)]))
        return reply({})

    async def clone(self, asked: Asked) -> web.StreamResponse:
        """Submit the same job again."""
        ad = (await self._one(asked)).attributes or {}
        text = str(ad[DOCUMENT]).encode()
        if document_of(ad).get("inputs"):
            text = await self._parts.documents.find(asked.person.name, str(ad.get(IDENTIFIER, "")))
        return await self._submitted(asked, text)

    async def _one(self, asked: Asked) -> Job:
        number = asked.path_number()
        found = await self._parts.lists.find(asked, one(number))
        if not found:
            raise refused(f"there is no job {number} of yours")
        return found[0]

    def _stream(self, name: str) -> Handler:
        async def answer(asked: Asked) -> web.StreamResponse:
            return await self._parts.streams.answer(asked, asked.path_number(), name)

        return answer
