"""What is asked about the past of a job, and why it is where it is."""

import time
from collections.abc import Mapping
from datetime import datetime

import msgspec

from kettle.bus.ports import Bus, RefusedError
from kettle.classad import ClassAdError, parse
from kettle.client.explanations import job_state, moved_files
from kettle.client.why_report import WhyReport
from kettle.jobs.sealed_attributes import AttributeSeal
from kettle.projections.stored_projection import microseconds
from kettle_services.gateway.rest.application import Answer, Asked
from kettle_services.gateway.rest.connections import PersonConnections
from kettle_services.gateway.rest.job_past import JobPast, past_job, phase_at
from kettle_services.gateway.rest.job_rows import SCHEDD, Viewer
from kettle_services.gateway.rest.job_tables import QUERIES, JobTables
from kettle_services.gateway.rest.jobs import job_name, no_such_job
from kettle_services.gateway.rest.refusals import RequestRefused, refused_field
from kettle_wire.ads.types import Expr, Scalar
from kettle_wire.codes import RefusalCode
from kettle_wire.commands.negotiator import Analysis
from kettle_wire.commands.schedd import QUERY_EVENTS, QueryEvents
from kettle_wire.jobs import JobId
from kettle_wire.rest.jobs import Job, JobChange
from kettle_wire.rest.past import (
    AskWhatIf,
    GetHistoryOfJob,
    GetTimeline,
    GetTransfers,
    GetWhy,
    JobRecords,
    Phase,
    Timeline,
    Transfers,
    TransfersOfAttempt,
    WhatIf,
    Why,
)
from kettle_wire.rest.problem import ProblemCode


class PastQuestions:
    """
    Answers them: what is recorded from the log, by way of its owner, and reasons in the name of who asks.
    """

    def __init__(self, bus: Bus, people: PersonConnections, tables: JobTables, seal: AttributeSeal) -> None:
        """`seal` opens environments for their owners."""
        self._seal = seal
        self._bus = bus
        self._people = people
        self._tables = tables

    async def history(self, asked: Asked) -> Answer:
        """Everything recorded of a job."""
        parameters: GetHistoryOfJob = asked.parameters
        name, past = await self._past(parameters.id)
        viewer = Viewer.of(asked.reader, (), self._seal)
        until = microseconds(parameters.until) if parameters.until else None
        return Answer(JobRecords(id=name, events=past.records(viewer, until)))

    async def timeline(self, asked: Asked) -> Answer:
        """The states of a job."""
        parameters: GetTimeline = asked.parameters
        name, past = await self._past(parameters.id)
        return Answer(Timeline(id=name, phases=past.phases()))

    async def transfers(self, asked: Asked) -> Answer:
        """The files that a job moved by URL."""
        parameters: GetTransfers = asked.parameters
        name, past = await self._past(parameters.id)
        found = [
            TransfersOfAttempt(
                attempt=each.attempt, moved=each.moved, said=list(moved_files.sentences(each.moved))
            )
            for each in past.files()
        ]
        return Answer(Transfers(id=name, attempts=found))

    async def as_of(self, text: str, moment: datetime, viewer: Viewer) -> Job:
        """A job as it was; raises RequestRefused if it was not there."""
        name, past = await self._past(text)
        ad = past.ad_at(microseconds(moment))
        if ad is None:
            raise RequestRefused(
                404, ProblemCode.NOT_FOUND, f"there was no job {text} at that time: it was submitted later"
            )
        phase = phase_at(past.phases(), moment)
        assert phase is not None  # there was an ad
        shown = past_job(name, ad, viewer)
        return msgspec.structs.replace(shown, entered=phase.since)

    async def why(self, asked: Asked) -> Answer:
        """Why a job is where it is, or was where it was."""
        parameters: GetWhy = asked.parameters
        if parameters.at is not None:
            name, past = await self._past(parameters.id)
            phase = phase_at(past.phases(), parameters.at)
            if phase is None:
                raise RequestRefused(
                    404,
                    ProblemCode.NOT_FOUND,
                    f"job {name} was not there at that time: it was submitted later",
                )
            return Answer(Why(id=name, sentence=_said_of(phase), phase=phase))
        job, schedd = await self.named(parameters.id)
        async with self._people.of(asked.person) as client:
            report = await client.at(schedd).why(job)
        told = job_state.answer(report, now=time.time(), files=False)
        answer = Why(
            id=f"{job}@{schedd}",
            sentence=told.sentences[0],
            more=told.sentences[1:],
            explanation=report.explanation,
            verdict=report.verdict,
            trouble=report.trouble,
        )
        return Answer(answer)

    async def what_if(self, asked: Asked) -> Answer:
        """Where a job could run if it had other attributes."""
        parameters: AskWhatIf = asked.parameters
        body: JobChange = asked.body
        require_expressions(body.attributes)
        job, schedd = await self.named(parameters.id)
        async with self._people.of(asked.person) as client:
            queue = client.at(schedd)
            now, then = await queue.what_if(job, {}), await queue.what_if(job, body.attributes)
        return Answer(_compared(f"{job}@{schedd}", now, then))

    async def _past(self, text: str) -> tuple[str, JobPast]:
        job, schedd = await self.named(text)
        try:
            found = await self._bus.call(QUERY_EVENTS, schedd, QueryEvents(job=job))
        except RefusedError as error:
            if error.code != RefusalCode.NOT_FOUND:
                raise
            raise no_such_job(text) from error
        return f"{job}@{schedd}", JobPast(job, schedd, found.events)

    async def owner(self, cluster: int, schedd: str) -> str:
        """Whose the jobs of a cluster are."""
        async with self._tables.read() as reading:
            [row] = await reading.fetch(QUERIES["owner_of_cluster"], cluster, SCHEDD + schedd)
        return str(row["owner"])

    async def named_cluster(self, text: str) -> tuple[int, str]:
        """A cluster and its access point, which must be one; raises RequestRefused."""
        number, _, schedd = text.partition("@")
        async with self._tables.read() as reading:
            rows = await reading.fetch(
                QUERIES["shards_of_cluster"], _small(text, number), SCHEDD + schedd if schedd else None
            )
        schedds = [str(row["shard"]).removeprefix(SCHEDD) for row in rows]
        if len(schedds) == 1:
            return int(number), schedds[0]
        if not schedds:
            raise _no_such_cluster(text)
        names = ", ".join(f"{number}@{each}" for each in schedds)
        raise RequestRefused(
            409, ProblemCode.AMBIGUOUS, f"several access points have a cluster {number}: name one of {names}"
        )

    async def named(self, text: str) -> tuple[JobId, str]:
        """The job and its access point, which must be one."""
        job, schedd = job_name(text)
        async with self._tables.read() as reading:
            schedds = await reading.schedds_of(job, schedd)
        if not schedds:
            raise no_such_job(text)
        if len(schedds) > 1:
            names = ", ".join(f"{job}@{each}" for each in schedds)
            raise RequestRefused(
                409, ProblemCode.AMBIGUOUS, f"several access points have a job {job}: name one of {names}"
            )
        return job, schedds[0]


def _small(text: str, number: str) -> int:
    if int(number) >= 2**31:
        raise _no_such_cluster(text)
    return int(number)


def _no_such_cluster(name: str) -> RequestRefused:
    return RequestRefused(
        404, ProblemCode.NOT_FOUND, f"there is no cluster {name}, neither in a queue nor in the history"
    )


def require_expressions(attributes: Mapping[str, Scalar]) -> None:
    """Raises RequestRefused: something in the body is no ClassAd expression."""
    for name, value in attributes.items():
        try:
            parse(value.expr if isinstance(value, Expr) else "true")
        except ClassAdError as error:
            raise refused_field(
                f"/body/attributes/{name}",
                f"{name} is no ClassAd expression: {error}",
                code=ProblemCode.BODY_INVALID,
                status=422,
            ) from error


def _compared(name: str, now: WhyReport, then: WhyReport) -> WhatIf:
    """Raises RequestRefused: it does not wait for a machine, or the negotiator does not know it."""
    for report in (now, then):
        if report.trouble:
            raise RequestRefused(503, ProblemCode.UNAVAILABLE, report.trouble, retry_after=5)
    analyses = [report.verdict and report.verdict.analysis for report in (now, then)]
    match analyses:
        case [Analysis() as before, Analysis() as after]:
            sentence = f"{after.able} of {after.slots} slots could run it, {after.free} of them at this moment; as it is, {before.able} could"
            return WhatIf(id=name, sentence=after.fault or sentence, now=before, then=after)
        case _:
            raise RequestRefused(
                409,
                ProblemCode.NOT_WAITING,
                f"job {name} does not wait for a machine, or no negotiation has looked at it yet: ask for its state, and again later",
            )


def _said_of(phase: Phase) -> str:
    where = f" on {phase.slot}" if phase.slot else ""
    because = f": {phase.reason}" if phase.reason else ""
    return f"it was {phase.state}{where}{because}"
