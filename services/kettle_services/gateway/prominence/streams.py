"""What jobs have written to their standard streams."""

from collections.abc import Mapping

from aiohttp import web

from kettle_services.gateway.prominence.application import Asked, refused
from kettle_services.gateway.prominence.numbers import job_of
from kettle_services.gateway.rest.application import Asked as RestAsked
from kettle_services.gateway.rest.application import Handler as RestHandler
from kettle_services.gateway.rest.connections import PersonConnections
from kettle_wire.rest.files import GetStdout


class Streams:
    """Reads them in the name of who asks."""

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
