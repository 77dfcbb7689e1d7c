"""What people ask the compute entrypoint of their access point."""

from typing import Final

from kettle.bus.ports import Rep, Req
from kettle.client.connections.transport import Requests
from kettle.client.errors import ClientError, PoolUnreachableError
from kettle.client.jobs.queue import JobQueue
from kettle.routes.chain import CHAIN, chain_condition, chain_of
from kettle_wire.ads.types import Ad
from kettle_wire.commands import ce as wire
from kettle_wire.commands import payloads as of_pilots
from kettle_wire.commands.queue import Select
from kettle_wire.endpoint import Endpoint
from kettle_wire.jobs import JobId
from kettle_wire.payloads import PayloadReport

PATIENCE_S: Final = 10.0
"""An access point need not have an entrypoint: it is not waited for as long as for others."""

_DIGITS: Final = 9
"""Of the number of a cluster, or of a job in it."""


class NoEntrypointError(ClientError):
    """The access point has no compute entrypoint; the message says what to add."""

    def __init__(self, schedd: str) -> None:
        super().__init__(
            f"the access point {schedd} has no compute entrypoint, or it does not answer: it needs ce in daemon_list of [master] "
            "and routes in [ce] of kettle.toml, see docs/how-to/a-ce-for-a-slurm-site.md"
        )


class Entrypoint:
    """Asks the entrypoint.  Every method raises NoEntrypointError where there is none."""

    def __init__(
        self, requests: Requests, patience: float = PATIENCE_S, *, absent: float | None = None
    ) -> None:
        """`absent`: seconds for which nobody may listen; None: as many as the patience."""
        self._requests = requests
        self._patience = patience
        self._absent = absent

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

    async def drain(self, reason: str = "") -> wire.DrainSet:
        """Have it take no jobs until it is resumed; for administrators."""
        return await self._ask(wire.DRAIN, wire.DrainEntrypoint(reason=reason))

    async def resume(self) -> wire.DrainSet:
        """Have it take jobs again; for administrators."""
        return await self._ask(wire.RESUME, wire.ResumeEntrypoint())

    async def payloads(self, job: JobId | None = None, owner: str = "") -> of_pilots.PayloadsListed:
        """What pilots run for others now; all that one of them has run. `owner`: for this person alone."""
        return await self._ask(of_pilots.LIST_PAYLOADS, of_pilots.ListPayloads(job=job, owner=owner))

    async def report_payloads(self, job: JobId, report: PayloadReport) -> of_pilots.PayloadsReported:
        """Say what a pilot of ours runs for others."""
        return await self._ask(of_pilots.REPORT_PAYLOADS, of_pilots.ReportPayloads(job=job, report=report))

    async def _ask(self, endpoint: Endpoint[Req, Rep], request: Req) -> Rep:
        patience = min(self._requests.transport.patience, self._patience)
        try:
            return await self._requests.ask(endpoint, request, patience=patience, absent=self._absent)
        except PoolUnreachableError as error:
            raise NoEntrypointError(self._requests.pool.schedd) from error


class NoSuchJobError(ClientError):
    """No job is called so, or several are."""


async def job_called(client: JobQueue, text: str) -> Ad:
    """
    The ad of the job that its access point, its route's batch system or anybody between them calls so: in the queue, else in the
    history.

    Raises:
        NoSuchJobError: there is none, or there are several.
    """
    cluster, dot, proc = text.partition(".")
    is_id = _is_number(cluster) and (_is_number(proc) or not dot)
    wanted = [Select(jobs=[JobId(int(cluster), int(proc or 0))])] if is_id else []
    if not dot or not is_id:  # a batch system numbers its jobs, too
        wanted.insert(0, Select(constraint=chain_condition(text)))
    for select in wanted:
        found = await client.jobs(select, projection=list(CHAIN), limit=2)
        found = found or await client.history(select, limit=2)
        if len(found) > 1:
            names = " and ".join(chain_of(ad).id for ad in found)
            raise NoSuchJobError(f"several jobs are called {text}, such as {names}: name one of these")
        if found:
            return found[0]
    raise NoSuchJobError(f"no job is called {text}, by its access point or a batch system")


def _is_number(text: str) -> bool:
    """Whether it may be a part of the id of a job."""
    return text.isascii() and text.isdecimal() and len(text) <= _DIGITS
