"""What people ask the compute entrypoint of their access point."""

from typing import Final

from kettle.bus.ports import Rep, Req
from kettle.client.connections.transport import Requests
from kettle.client.errors import ClientError, PoolUnreachableError
from kettle_wire.ads.types import Ad
from kettle_wire.commands import ce as wire
from kettle_wire.endpoint import Endpoint
from kettle_wire.jobs import JobId

PATIENCE_S: Final = 10.0
"""An access point need not have an entrypoint: it is not waited for as long as for others."""


class NoEntrypointError(ClientError):
    """The access point has no compute entrypoint; the message says what to add."""

    def __init__(self, schedd: str) -> None:
        super().__init__(
            f"the access point {schedd} has no compute entrypoint, or it does not answer: it needs ce in daemon_list of [master] "
            "and routes in [ce] of kettle.toml, see docs/how-to/a-ce-for-a-slurm-site.md"
        )


class Entrypoint:
    """Asks the entrypoint.  Every method raises NoEntrypointError where there is none."""

    def __init__(self, requests: Requests) -> None:
        self._requests = requests

    async def routes(self) -> wire.RoutesShown:
        """The routes in force, and how they stand."""
        return await self._ask(wire.SHOW_ROUTES, wire.ShowRoutes())

    async def decisions(self, job: JobId) -> list[wire.DecidedRoute]:
        """What was decided about a job, in order."""
        return (await self._ask(wire.SHOW_DECISION, wire.ShowDecision(job=job))).decisions

    async def try_route(self, ad: Ad, text: str = "") -> wire.RouteTried:
        """What would be decided about a job now, by the routes in force or by others; nothing is recorded."""
        return await self._ask(wire.TRY_ROUTE, wire.TryRoute(ad=ad, text=text))

    async def load(self) -> wire.RoutesRead:
        """Have the route file read again; for administrators."""
        return await self._ask(wire.LOAD_ROUTES, wire.LoadRoutes())

    async def _ask(self, endpoint: Endpoint[Req, Rep], request: Req) -> Rep:
        patience = min(self._requests.transport.patience, PATIENCE_S)
        try:
            return await self._requests.ask(endpoint, request, patience=patience)
        except PoolUnreachableError as error:
            raise NoEntrypointError(self._requests.pool.schedd) from error
