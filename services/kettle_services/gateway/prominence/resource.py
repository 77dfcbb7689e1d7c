"""
What jobs and workflows have in common: they are submitted, listed, described, ended, and copied under the same paths.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence

import msgspec
from aiohttp import web

from kettle.auth.mapping.levels import Level
from kettle.client.connections.transport import new_id
from kettle_services.gateway.prominence.application import Asked, Route, reply
from kettle_services.gateway.prominence.documents import Documents
from kettle_services.gateway.prominence.job_lists import JobLists, Written
from kettle_services.gateway.prominence.numbers import NUMBER, numbers_of
from kettle_services.gateway.prominence.streams import Streams
from kettle_services.gateway.prominence.submitting import Submitting
from kettle_services.gateway.rest.connections import PersonConnections
from kettle_wire.commands.queue import ACT, EDIT_JOBS, Act, Acted, EditJobs, Select


class Parts(msgspec.Struct, frozen=True):
    """With which both are answered."""

    people: PersonConnections
    lists: JobLists
    written: Written
    submitting: Submitting
    documents: Documents
    streams: Streams


class Resource(ABC):
    """Answers what is asked about one of them, each in the name of who asks."""

    def __init__(self, path: str, parts: Parts) -> None:
        self._path = path
        self._parts = parts

    def routes(self) -> Sequence[Route]:
        """What is asked of both."""
        one = f"{self._path}/{NUMBER}"
        return (
            Route("POST", self._path, Level.WRITE, self.submit),
            Route("GET", self._path, Level.READ, self.find),
            Route("DELETE", self._path, Level.WRITE, self.delete_some),
            Route("GET", one, Level.READ, self.describe),
            Route("DELETE", one, Level.WRITE, self.delete),
            Route("PUT", f"{one}/remove", Level.WRITE, self.remove),
            Route("PUT", f"{one}/clone", Level.WRITE, self.clone),
        )

    @abstractmethod
    async def submit(self, asked: Asked) -> web.StreamResponse:
        """What a document describes."""

    @abstractmethod
    async def find(self, asked: Asked) -> web.StreamResponse:
        """Those that are active, or have ended, or both."""

    @abstractmethod
    async def describe(self, asked: Asked) -> web.StreamResponse:
        """One with everything, in a list, which is empty if there is none."""

    @abstractmethod
    async def remove(self, asked: Asked) -> web.StreamResponse:
        """Have one leave the queue that has ended."""

    @abstractmethod
    async def clone(self, asked: Asked) -> web.StreamResponse:
        """Submit the same document again."""

    @abstractmethod
    async def end(self, asked: Asked, numbers: Sequence[int]) -> None:
        """End some; raises RequestRefused: one is not there."""

    async def delete(self, asked: Asked) -> web.StreamResponse:
        """End one."""
        await self.end(asked, [asked.path_number()])
        return reply({})

    async def delete_some(self, asked: Asked) -> web.StreamResponse:
        """End those that are named."""
        await self.end(asked, numbers_of(asked.text("id")))
        return reply({})

    async def removed(self, asked: Asked, select: Select, reason: str) -> Acted:
        """What became of jobs that were to end."""
        request = Act(id=new_id(), action="remove", select=select, reason=reason)
        async with self._parts.people.of(asked.person) as client:
            acted = await client.requests.ask(ACT, request)
        self._parts.written.note_acted(asked.person.name, acted)
        return acted

    async def let_go(self, asked: Asked, select: Select) -> None:
        """Nothing keeps these jobs in the queue any more; one that has left already stays where it is."""
        request = EditJobs(id=new_id(), select=select, attributes={"LeaveJobInQueue": False})
        async with self._parts.people.of(asked.person) as client:
            self._parts.written.note_acted(asked.person.name, await client.requests.ask(EDIT_JOBS, request))
