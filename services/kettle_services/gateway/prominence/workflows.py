"""Workflows: their documents are checked, and nothing runs them yet, so there are none."""

from collections.abc import Sequence

from aiohttp import web

from kettle.auth.mapping.levels import Level
from kettle.prominence.faults import DocumentRefused
from kettle.prominence.workflow_documents import read_workflow
from kettle_services.gateway.prominence.application import Asked, Route, refused, reply
from kettle_services.gateway.prominence.jobs import NUMBER
from kettle_services.gateway.prominence.submitting import first_fault


class Workflows:
    """Says so."""

    def routes(self) -> Sequence[Route]:
        """What is asked."""
        one = f"/workflows/{NUMBER}"
        return (
            Route("POST", "/workflows", Level.WRITE, self.submit),
            Route("GET", "/workflows", Level.READ, self.list),
            Route("GET", one, Level.READ, self.list),
            Route("DELETE", "/workflows", Level.WRITE, self.none),
            *(Route(method, one, Level.WRITE, self.none) for method in ("DELETE", "PUT")),
            *(Route("PUT", f"{one}/{action}", Level.WRITE, self.none) for action in ("remove", "clone")),
            Route("GET", one + "/{rest:.+}", Level.READ, self.none),
        )

    async def submit(self, asked: Asked) -> web.StreamResponse:
        """Refuse it: for its faults, or because nothing would run it."""
        try:
            read_workflow(await asked.body())
        except DocumentRefused as error:
            raise refused(first_fault(error)) from error
        raise refused(
            "the workflow is sound, and this pool does not run workflows yet: submit its jobs one by one"
        )

    async def list(self, _asked: Asked) -> web.StreamResponse:
        """There are none."""
        return reply([])

    async def none(self, _asked: Asked) -> web.StreamResponse:
        """Whatever is wanted of one."""
        raise refused("there is no such workflow of yours")
