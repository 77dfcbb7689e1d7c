"""What is done to jobs, over a connection of the person who asks for it."""

from collections.abc import AsyncGenerator, Iterable, Mapping
from typing import Final

import msgspec

from kettle.client import Client
from kettle_services.gateway.rest.access_points import AccessPoints
from kettle_services.gateway.rest.application import Answer, Asked
from kettle_services.gateway.rest.connections import PersonConnections
from kettle_services.gateway.rest.filters import Filters
from kettle_services.gateway.rest.idempotency import Repeats, command_id
from kettle_services.gateway.rest.job_rows import SCHEDD
from kettle_services.gateway.rest.job_tables import JobTables
from kettle_services.gateway.rest.jobs import job_name, no_such_job
from kettle_services.gateway.rest.refusals import RequestRefused, refused_field
from kettle_services.gateway.rest.submit_texts import submission_of
from kettle_wire.ads.types import Ad, Scalar
from kettle_wire.commands.queue import (
    ACT,
    ASK_ROOM,
    EDIT_JOBS,
    QUERY_JOBS,
    SUBMIT,
    Act,
    Acted,
    Action,
    AskRoom,
    EditJobs,
    JobOutcome,
    QueryJobs,
    Select,
    Submit,
)
from kettle_wire.endpoint import Position
from kettle_wire.jobs import JobId
from kettle_wire.rest.jobs import (
    ActOnJobs,
    EditJob,
    JobChange,
    JobOutcomeOf,
    JobSelection,
    Outcomes,
    Submission,
    SubmitJobs,
    SubmittedJobs,
)
from kettle_wire.rest.problem import ProblemCode

_PAGE: Final = 2 << 20
_GUARDS: Final = (
    "JobStatus",
    "EnteredCurrentStatus",
    "NumEdits",
    "NumShadowStarts",
    "NumHolds",
    "NumChirpUpdates",
)
"""Attributes one of which changes with everything that matters to somebody who edits a job."""


class JobCommands:
    """Sends them."""

    def __init__(
        self, people: PersonConnections, access_points: AccessPoints, tables: JobTables, filters: Filters
    ) -> None:
        self._people = people
        self._access_points = access_points
        self._tables = tables
        self._filters = filters
        self._repeats = Repeats()

    async def submit(self, asked: Asked) -> Answer:
        """Submit jobs."""
        parameters: SubmitJobs = asked.parameters
        if (first := self._repeats.first_answer(asked)) is not None:
            return first
        async with self._people.of(asked.person) as client:
            there = await self._access_points.at(client, parameters.schedd, "/query/schedd")
            return await self._submitted(asked, there)

    async def _submitted(self, asked: Asked, client: Client) -> Answer:
        parameters: SubmitJobs = asked.parameters
        body = await whole_submission(asked)
        if parameters.dry_run:
            await client.requests.ask(ASK_ROOM, AskRoom(jobs=len(body.rows)))
            return Answer(SubmittedJobs(schedd=client.pool.schedd, count=len(body.rows)))
        answer = await recorded(client, command_id(asked), body, spool=parameters.spool)
        return self._repeats.answered(asked, Answer(answer))

    async def act(self, asked: Asked) -> Answer:
        """Hold, release, remove, vacate, suspend or continue jobs."""
        parameters: ActOnJobs = asked.parameters
        body: JobSelection = asked.body
        if (first := self._repeats.first_answer(asked)) is not None:
            return first
        if body.filter and not body.ids and body.expect is None and not parameters.dry_run:
            raise refused_field(
                "/body/expect",
                "a filter needs expect, the number of jobs that you mean: ?dry_run=1 tells how many there are",
                code=ProblemCode.BODY_INVALID,
                status=422,
            )
        async with self._people.of(asked.person) as client:
            return await self._acted(asked, client)

    async def _acted(self, asked: Asked, client: Client) -> Answer:
        parameters: ActOnJobs = asked.parameters
        body: JobSelection = asked.body
        chosen = await self._chosen(client, asked.person.name, body)
        pointer = "/body/ids" if body.ids else "/body/schedd"
        places = {schedd: await self._access_points.at(client, schedd, pointer) for schedd in chosen}
        count = sum(map(len, chosen.values()))
        if body.expect is not None and count != body.expect:
            raise RequestRefused(
                409,
                ProblemCode.COUNT,
                f"these are {count} jobs, and not {body.expect}: look at them again, nothing was done",
            )
        if parameters.dry_run:
            return Answer(Outcomes(outcomes=[], count=count))
        outcomes: list[JobOutcomeOf] = []
        position = ""
        for schedd, jobs in chosen.items():
            if not jobs:
                continue
            select = Select(jobs=jobs, constraint=body.filter)
            command = command_id(asked, schedd)
            acted = await acted_on(places[schedd], command, parameters.action, select, body.reason)
            outcomes += acted.outcomes
            position = acted.position
        return self._repeats.answered(asked, Answer(Outcomes(outcomes=outcomes, position=position)))

    async def _chosen(self, client: Client, person: str, body: JobSelection) -> Mapping[str, list[JobId]]:
        """The jobs by access point; raises RequestRefused if the selection can mean too much."""
        own = body.schedd or client.pool.schedd
        if body.ids:
            if body.filter:
                raise refused_field(
                    "/body/filter",
                    "give ids or a filter, and not both",
                    code=ProblemCode.BODY_INVALID,
                    status=422,
                )
            chosen: dict[str, list[JobId]] = {}
            for job, schedd in map(job_name, dict.fromkeys(body.ids)):
                chosen.setdefault(schedd or own, []).append(job)
            return chosen
        if not body.filter:
            raise refused_field(
                "/body/ids", "say which jobs: ids, or a filter", code=ProblemCode.BODY_INVALID, status=422
            )
        self._filters.read(body.filter, "/body/filter")
        select = Select(owners=body.owner or [person], constraint=body.filter)
        there = await self._access_points.at(client, own, "/body/schedd")
        return {own: [job async for job in _jobs_of(there, select)]}

    async def edit(self, asked: Asked) -> Answer:
        """Change attributes of a job, if it is still as somebody has read it."""
        if (first := self._repeats.first_answer(asked)) is not None:
            return first
        async with self._people.of(asked.person) as client:
            return await self._edited(asked, client)

    async def _edited(self, asked: Asked, client: Client) -> Answer:
        parameters: EditJob = asked.parameters
        body: JobChange = asked.body
        job, schedd = job_name(parameters.id)
        there = await self._access_points.at(client, schedd, "/path/id")
        select = Select(jobs=[job], constraint=await self._as_read(asked, job, there.pool.schedd))
        if parameters.dry_run:
            if not [each async for each in _jobs_of(there, select)]:
                raise no_such_job(parameters.id)
            return Answer(Outcomes(outcomes=[], count=1))
        request = EditJobs(id=command_id(asked), select=select, attributes=body.attributes)
        acted: Acted = await there.requests.ask(EDIT_JOBS, request)
        [outcome] = acted.outcomes
        match outcome.outcome:
            case "not_found" if select.constraint:
                raise _changed(parameters.id)
            case "not_found":
                raise no_such_job(parameters.id)
            case "denied":
                raise RequestRefused(
                    403, ProblemCode.NOT_PERMITTED, f"job {parameters.id} is not {asked.person.name}'s"
                )
            case _:
                done = _outcomes(there.pool.schedd, [outcome])
                reply = Outcomes(outcomes=done, position=_text(acted.position))
                return self._repeats.answered(asked, Answer(reply))

    async def _as_read(self, asked: Asked, job: JobId, schedd: str) -> str:
        """
        What is true of a job as long as it is as somebody has read it; empty: nobody says so, and the tables need not have the job
        yet.  Raises RequestRefused: it is another by now.
        """
        named = asked.header("If-Match")
        if not named or named == "*":
            return ""
        async with self._tables.read() as reading:
            known = await reading.queued(job.cluster, job.proc, SCHEDD + schedd)
        if known is None:
            raise no_such_job(f"{job}@{schedd}")
        tag, ad = known
        if named != tag:
            raise _changed(f"{job}@{schedd}")
        return _as_it_is(ad)


async def whole_submission(asked: Asked) -> Submission:
    """The jobs of a body, each with its row; raises RequestRefused."""
    body = await submission_of(asked.person, asked.body)
    rows = body.rows or [[]]
    for number, row in enumerate(rows):
        if len(row) != len(body.columns):
            raise refused_field(
                f"/body/rows/{number}",
                f"row {number} has {len(row)} values, and there are {len(body.columns)} columns",
                code=ProblemCode.BODY_INVALID,
                status=422,
            )
    return msgspec.structs.replace(body, rows=rows)


async def recorded(client: Client, command: str, body: Submission, *, spool: bool) -> SubmittedJobs:
    """
    Submit jobs to the access point of a client; `command`: an id by which a repeat is known. Raises CommandRefusedError.
    """
    request = Submit(id=command, ad=body.ad, columns=body.columns, rows=body.rows, spool=spool)
    reply = await client.requests.ask(SUBMIT, request)
    return SubmittedJobs(
        schedd=client.pool.schedd,
        cluster=reply.cluster,
        count=reply.count,
        position=_text(reply.position),
        warnings=reply.warnings,
    )


async def acted_on(client: Client, command: str, action: Action, jobs: Select, reason: str) -> Outcomes:
    """
    Do something to jobs of the access point of a client; `command`: an id by which a repeat is known. Raises CommandRefusedError.
    """
    acted = await client.requests.ask(ACT, Act(id=command, action=action, select=jobs, reason=reason))
    return Outcomes(outcomes=_outcomes(client.pool.schedd, acted.outcomes), position=_text(acted.position))


async def _jobs_of(client: Client, select: Select) -> AsyncGenerator[JobId]:
    request = QueryJobs(select=select, projection=["ClusterId", "ProcId"], page=_PAGE)
    while True:
        page = await client.requests.ask(QUERY_JOBS, request)
        for ad in page.jobs:
            yield JobId(int(str(ad["ClusterId"])), int(str(ad["ProcId"])))
        if page.more is None:
            return
        request = msgspec.structs.replace(request, after=page.more)


def _as_it_is(ad: Ad) -> str:
    """
    True of the job as long as nothing that matters has happened to it: its queue decides by it, as part of the command.
    """
    return " && ".join(f"{name} =?= {_literal(ad.get(name))}" for name in _GUARDS)


def _literal(value: Scalar | None) -> str:
    return "undefined" if value is None else str(value)


def _changed(name: str) -> RequestRefused:
    return RequestRefused(
        412,
        ProblemCode.CHANGED,
        f"job {name} is not as it was when its ETag was given: read it again; nothing was changed",
    )


def _outcomes(schedd: str, outcomes: Iterable[JobOutcome]) -> list[JobOutcomeOf]:
    return [
        JobOutcomeOf(id=f"{each.job}@{schedd}", outcome=each.outcome, state=each.status) for each in outcomes
    ]


def _text(position: Position) -> str:
    return f"{position.shard}:{position.frame}"
