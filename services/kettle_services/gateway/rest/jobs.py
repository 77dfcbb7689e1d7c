"""What is asked about jobs."""

from collections.abc import Awaitable, Callable
from datetime import datetime

from kettle.jobs.sealed_attributes import AttributeSeal
from kettle_services.gateway.rest.application import Answer, Asked
from kettle_services.gateway.rest.filters import Filters
from kettle_services.gateway.rest.freshness import Freshness
from kettle_services.gateway.rest.job_rows import Viewer
from kettle_services.gateway.rest.job_tables import JobTables, frames_tag
from kettle_services.gateway.rest.page_tokens import page_token, row_place
from kettle_services.gateway.rest.past_depths import counted, require_counted
from kettle_services.gateway.rest.past_queues import PastQueues, require_listed
from kettle_services.gateway.rest.refusals import RequestRefused
from kettle_wire.jobs import JobId
from kettle_wire.rest.jobs import GetJob, Job, Jobs, ListHistory, ListJobs
from kettle_wire.rest.problem import ProblemCode

AsOf = Callable[[str, datetime, Viewer], Awaitable[Job]]


class JobQuestions:
    """Answers them from the tables."""

    def __init__(
        self, tables: JobTables, filters: Filters, freshness: Freshness, as_of: AsOf, seal: AttributeSeal
    ) -> None:
        """`as_of`: a job as it was at a time; `seal` opens environments for their owners."""
        self._seal = seal
        self._as_of = as_of
        self._tables = tables
        self._filters = filters
        self._freshness = freshness

    async def list(self, asked: Asked) -> Answer:
        """Jobs in the queues, or in the history."""
        parameters: ListJobs | ListHistory = asked.parameters
        if isinstance(parameters, ListJobs) and parameters.as_of is not None:
            return await self._as_it_was(asked)
        wanted = self._filters.read(parameters.filter)
        after = row_place(parameters, parameters.page) if parameters.page else None
        await self._freshness.wait(parameters.at_least)
        async with self._tables.read() as reading:
            # What a filter says of the time, and how far a search gets in its time, is no state of the tables.
            frames = await reading.frames()
            etag = frames_tag(frames) if wanted is None else ""
            if etag:
                asked.require_changed(etag)
            if parameters.explain:
                plan = await reading.plan(parameters, wanted, after)
                return Answer(Jobs(plan=plan, frames=frames))
            viewer = Viewer.of(asked.reader, parameters.fields, self._seal)
            if parameters.group_by:
                groups = await reading.counts(parameters, wanted, viewer)
                return Answer(Jobs(groups=groups, frames=frames), etag)
            found = await reading.jobs(parameters, wanted, after, viewer)
            following = page_token(parameters, found.more) if found.more else None
            return Answer(Jobs(jobs=found.jobs, next=following, frames=frames), etag)

    async def _as_it_was(self, asked: Asked) -> Answer:
        """The queues at a time, as counts or as jobs."""
        parameters: ListJobs = asked.parameters
        if parameters.group_by:
            require_counted(parameters)
        else:
            require_listed(parameters)
        wanted = self._filters.read(parameters.filter)
        after = row_place(parameters, parameters.page) if parameters.page else None
        await self._freshness.wait(parameters.at_least)
        async with self._tables.read() as reading:
            frames = await reading.frames()
            if parameters.group_by:
                return Answer(Jobs(groups=await counted(reading, parameters), frames=frames))
            viewer = Viewer.of(asked.reader, parameters.fields, self._seal)
            found = await PastQueues(reading, parameters, viewer).page(wanted, after)
            following = page_token(parameters, found.more) if found.more else None
            return Answer(Jobs(jobs=found.jobs, next=following, frames=frames))

    async def get(self, asked: Asked) -> Answer:
        """One job."""
        parameters: GetJob = asked.parameters
        job, schedd = job_name(parameters.id)
        await self._freshness.wait(parameters.at_least)
        if parameters.as_of is not None:
            viewer = Viewer.of(asked.reader, parameters.fields, self._seal)
            return Answer(await self._as_of(parameters.id, parameters.as_of, viewer))
        async with self._tables.read() as reading:
            viewer = Viewer.of(asked.reader, parameters.fields, self._seal)
            found = await reading.job(job.cluster, job.proc, schedd, viewer)
        if not found:
            raise no_such_job(parameters.id)
        if len(found) > 1:
            names = ", ".join(each.id for each, _ in found)
            raise RequestRefused(
                409, ProblemCode.AMBIGUOUS, f"several access points have a job {job}: name one of {names}"
            )
        [(shown, etag)] = found
        asked.require_changed(etag)
        return Answer(shown, etag)


def job_name(text: str) -> tuple[JobId, str]:
    """The job, and its access point if one is named."""
    number, _, schedd = text.partition("@")
    try:
        job = JobId.parse(number)
    except ValueError:
        raise no_such_job(text) from None
    if max(job.cluster, job.proc) >= 2**31:
        raise no_such_job(text)
    return job, schedd


def no_such_job(name: str) -> RequestRefused:
    """Nobody has such a job."""
    return RequestRefused(
        404, ProblemCode.NOT_FOUND, f"there is no job {name}, neither in a queue nor in the history"
    )
