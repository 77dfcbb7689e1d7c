"""
Compute entrypoints over HTTP: they are asked in people's own names, so they and the schedd decide themselves what these may see.
"""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Final

from kettle.client.entrypoint import Entrypoint, NoSuchJobError, job_called
from kettle.client.jobs.queue import JobQueue
from kettle.routes.chain import JobChain, chain_of
from kettle_services.gateway.rest.access_points import AccessPoints
from kettle_services.gateway.rest.application import Answer, Asked
from kettle_services.gateway.rest.connections import PersonConnections
from kettle_services.gateway.rest.refusals import RequestRefused
from kettle_wire.ads.types import Ad
from kettle_wire.rest import entrypoint as rest
from kettle_wire.rest.problem import ProblemCode
from kettle_wire.routes import RouteRefusal

_SCHEDD: Final = "/query/schedd"
PATIENCE_S: Final = 2.0
"""So long an entrypoint is waited for: who asks over HTTP asks again."""


class EntrypointQuestions:
    """Answers them."""

    def __init__(self, people: PersonConnections, access_points: AccessPoints) -> None:
        self._people: Final = people
        self._access_points: Final = access_points

    async def routes(self, asked: Asked) -> Answer:
        """Those in force."""
        parameters: rest.GetRoutes = asked.parameters
        async with self._people.of(asked.person) as client:
            there = await self._access_points.at(client, parameters.schedd, _SCHEDD)
            found = await Entrypoint(there.requests, PATIENCE_S, absent=0.0).routes()
        routes = [
            rest.RouteOf(
                name=each.name,
                target=each.target,
                max_jobs=each.max_jobs,
                max_idle_jobs=each.max_idle,
                jobs=each.jobs,
                idle=each.idle,
                running=each.running,
                held=each.held,
                closed=each.closed,
                slowed_until=_moment(each.slowed_until) if each.slowed_until else None,
                failure=each.failure,
            )
            for each in found.routes
        ]
        return Answer(
            rest.Routes(
                version=found.version,
                source=found.source,
                loaded=_moment(found.loaded),
                waiting=found.waiting,
                routes=routes,
                problems=found.problems,
                vos=[
                    rest.VoOf(
                        vo=each.vo,
                        jobs=each.jobs,
                        idle=each.idle,
                        running=each.running,
                        held=each.held,
                        max_jobs=each.max_jobs,
                        max_idle=each.max_idle,
                        max_running=each.max_running,
                        spooled=each.spooled,
                        max_spool=each.max_spool,
                        full=each.full,
                    )
                    for each in found.vos
                ],
                draining=found.draining,
            )
        )

    async def job(self, asked: Asked) -> Answer:
        """One at all its stations."""
        parameters: rest.GetChain = asked.parameters
        async with self._people.of(asked.person) as client:
            there = await self._access_points.at(client, parameters.schedd, _SCHEDD)
            chain = chain_of(await found_job(there, parameters.job))
        return Answer(shown(chain))

    async def try_route(self, asked: Asked) -> Answer:
        """Where a job would go."""
        parameters: rest.TryRoute = asked.parameters
        body: rest.JobToRoute = asked.body
        async with self._people.of(asked.person) as client:
            there = await self._access_points.at(client, parameters.schedd, _SCHEDD)
            found = await Entrypoint(there.requests, PATIENCE_S).try_route(body.ad)
        return Answer(
            rest.Routed(
                route=found.route,
                attributes=found.attributes,
                removed=found.removed,
                refusals=not_taken(found.refusals),
                trace=found.trace,
            )
        )


async def found_job(there: JobQueue, name: str) -> Ad:
    """The ad of the job that any of its stations calls so; raises RequestRefused."""
    try:
        return await job_called(there, name)
    except NoSuchJobError as error:
        raise RequestRefused(404, ProblemCode.NOT_FOUND, str(error)) from error


def shown(chain: JobChain) -> rest.Chain:
    """A job at all its stations, as it is answered."""
    return rest.Chain(
        id=chain.id,
        global_id=chain.global_id,
        state=chain.state,
        outcome=chain.outcome,
        reason=chain.reason,
        exit_code=chain.exit_code,
        route=chain.route,
        resource=chain.resource,
        grid_id=chain.grid_id,
        batch_id=chain.batch_id,
        host=chain.host,
        submitted=_moment(chain.submitted),
        since=_moment(chain.since),
    )


def not_taken(refusals: Iterable[RouteRefusal]) -> list[rest.RouteNotTaken]:
    """Why routes do not take a job, as it is answered."""
    return [rest.RouteNotTaken(route=each.route, why=each.why, sentence=each.sentence) for each in refusals]


def _moment(at: float) -> datetime:
    return datetime.fromtimestamp(at, UTC)
