"""Jobs that come in by a compute entrypoint, and are removed from it."""

from collections.abc import Sequence
from typing import Final

import msgspec

from kettle.client import Client
from kettle.client.entrypoint import Entrypoint
from kettle.routes.chain import CHAIN, chain_of
from kettle_services.gateway.rest.access_points import AccessPoints
from kettle_services.gateway.rest.application import Answer, Asked
from kettle_services.gateway.rest.ce.questions import PATIENCE_S, found_job, not_taken
from kettle_services.gateway.rest.connections import PersonConnections
from kettle_services.gateway.rest.idempotency import Repeats, command_id
from kettle_services.gateway.rest.job_commands import acted_on, recorded, whole_submission
from kettle_services.gateway.rest.persons import Person
from kettle_services.gateway.rest.refusals import RequestRefused
from kettle_wire.ads.types import Ad
from kettle_wire.codes import JobStatus, Universe
from kettle_wire.commands.ce import RouteTried
from kettle_wire.commands.queue import Select
from kettle_wire.jobs import JobId
from kettle_wire.rest.entrypoint_jobs import RemoveRouted, SubmittedToEntrypoint, SubmitToEntrypoint
from kettle_wire.rest.jobs import Submission, SubmittedJobs
from kettle_wire.rest.problem import FieldProblem, ProblemCode
from kettle_wire.routes import RouteRefusal

_SCHEDD: Final = "/query/schedd"
_UNIVERSE: Final = "jobuniverse"


class EntrypointCommands:
    """
    Carries them out in the name of the person: whom and how much an entrypoint lets in is for its access point to say, and is passed on
    with its code.
    """

    def __init__(self, people: PersonConnections, access_points: AccessPoints) -> None:
        self._people: Final = people
        self._access_points: Final = access_points
        self._repeats: Final = Repeats(reused=409)

    async def submit(self, asked: Asked) -> Answer:
        """Submit jobs, unless it is known that no route will take them."""
        parameters: SubmitToEntrypoint = asked.parameters
        if (first := self._repeats.first_answer(asked)) is not None:
            return first
        body = with_universe(await whole_submission(asked))
        async with self._people.of(asked.person) as client:
            there = await self._access_points.at(client, parameters.schedd, _SCHEDD)
            ad = ad_to_try(asked.person, body)
            tried = await Entrypoint(there.requests, PATIENCE_S).try_route(ad)
            if not tried.route and not any(each.why.passes for each in tried.refusals):
                raise no_route(tried.refusals)
            done = await recorded(there, command_id(asked), body, spool=parameters.spool)
            reply = await _submitted(there, done, tried)
        return self._repeats.answered(asked, Answer(reply, status=201))

    async def remove(self, asked: Asked) -> Answer:
        """Remove a job by any of its names."""
        parameters: RemoveRouted = asked.parameters
        if (first := self._repeats.first_answer(asked)) is not None:
            return first
        async with self._people.of(asked.person) as client:
            there = await self._access_points.at(client, parameters.schedd, _SCHEDD)
            job = JobId.parse(chain_of(await found_job(there, parameters.job)).id)
            select = Select(jobs=[job])
            reply = await acted_on(there, command_id(asked), "remove", select, parameters.reason)
        if [each.outcome for each in reply.outcomes] == ["denied"]:
            raise RequestRefused(
                403, ProblemCode.NOT_PERMITTED, f"job {parameters.job} is not {asked.person.name}'s"
            )
        return self._repeats.answered(asked, Answer(reply))


async def _submitted(there: Client, done: SubmittedJobs, tried: RouteTried) -> SubmittedToEntrypoint:
    assert done.cluster is not None  # it was no dry run
    first = JobId(done.cluster, 0)
    found = await there.jobs(Select(jobs=[first]), projection=list(CHAIN))
    warnings = list(done.warnings)
    if found and found[0].get("AwaitsRoute") is not True:
        warnings.append(
            f"the access point {done.schedd} gives such jobs no route: route_jobs in [schedd] says which; these wait for machines of "
            "its pool"
        )
    return SubmittedToEntrypoint(
        id=str(first),
        schedd=done.schedd,
        cluster=done.cluster,
        count=done.count,
        route=tried.route,
        refusals=not_taken(tried.refusals),
        position=done.position,
        warnings=warnings,
    )


def with_universe(body: Submission) -> Submission:
    """
    A submission that says of which universe its jobs are: its access point marks by that which are to be routed.
    """
    if _UNIVERSE in map(str.lower, (*body.ad, *body.columns)):
        return body
    return msgspec.structs.replace(body, ad={**body.ad, "JobUniverse": int(Universe.VANILLA)})


def ad_to_try(person: Person, body: Submission) -> Ad:
    """The first job of a submission as routes will see it, as far as that is known before it is submitted."""
    own: Ad = {**body.ad, **dict(zip(body.columns, body.rows[0] if body.rows else [], strict=True))}
    said: Ad = {
        "Owner": person.name,
        "User": f"{person.name}@{person.mapped.domain}",
        "JobStatus": int(JobStatus.IDLE),
    }
    names = {name.lower() for name in said}
    return {name: value for name, value in own.items() if name.lower() not in names} | said


def no_route(refusals: Sequence[RouteRefusal]) -> RequestRefused:
    """That nothing was submitted, with the reason of each route."""
    said = "; ".join(f"{each.route}: {each.sentence}" if each.route else each.sentence for each in refusals)
    return RequestRefused(
        422,
        ProblemCode.NO_ROUTE,
        f"no route takes this job, so nothing was submitted: {said or 'there are no routes'}",
        errors=[FieldProblem(f"/routes/{each.route}", each.sentence) for each in refusals],
    )
