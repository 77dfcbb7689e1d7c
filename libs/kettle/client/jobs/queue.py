"""A person's jobs at one access point: those in its queue, and those that have left it."""

from collections.abc import AsyncGenerator, Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from kettle.client.connections.transport import SIDE_QUESTION_S, Requests, new_id
from kettle.client.errors import ClientError, CommandRefusedError
from kettle.jobs.needed_tokens import SERVICES
from kettle_wire.ads.types import Ad
from kettle_wire.codes import RefusalCode
from kettle_wire.commands.queue import (
    ACT,
    ASK_ROOM,
    EDIT,
    EDIT_JOBS,
    QUERY_JOBS,
    SUBMIT,
    SUBMIT_FROM_JOB,
    Act,
    Acted,
    Action,
    AskRoom,
    Edit,
    Edited,
    EditJobs,
    JobAds,
    QueryJobs,
    Select,
    Submit,
    Submitted,
    Unmade,
)
from kettle_wire.endpoint import Position
from kettle_wire.jobs import JobId

if TYPE_CHECKING:
    from kettle.client.jobs.records import JobEvent
    from kettle.submit import Submission
    from kettle.submit.expected_jobs import ExpectedJobs
    from kettle_wire.commands.schedd import JobEvents, RunningNow

PAGE: Final = 2 * 1024 * 1024
"""Bytes of job ads that are asked for at once: what a client needs memory for, several times."""


class JobQueue:
    """
    What a person asks about jobs, and has done to them.  Its own effects are visible to it: what it asks after a command
    waits until that is where it looks.

    Each method raises `ClientError` where it says nothing else.
    """

    def __init__(self, requests: Requests) -> None:
        self.requests: Final = requests
        self._seen: Position | None = None

    async def submit(
        self,
        description: "str | Path | Submission",
        *,
        given: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        source: str | None = None,
        spool: bool = False,
        command: str = "",
    ) -> Submitted:
        """
        Submit the jobs of a description that makes one cluster: its text, the path of a file, or what `prepare` made of it.

        Of one that may make several, submit what `prepare_clusters` makes, one after the other.

        `given` are assignments before its first line; relative names start at `cwd`.  When this returns, the jobs are
        recorded and cannot be lost.  With `spool` they are held then, until `spools.send` has sent their files.
        `command` is the id of a submission that may be repeated; without it each one is new.

        Raises:
            SubmitError: the description is refused, or makes several clusters; nothing was recorded.
            ClientError: it wants tokens of a service of which nothing is stored.
        """
        if isinstance(description, str | Path):
            import asyncio

            from kettle.client.jobs.submission import prepare

            submission = await asyncio.to_thread(prepare, description, given=given, cwd=cwd, source=source)
        else:
            submission = description
        if SERVICES in submission.ad:
            from kettle.client.jobs.stored_credentials import require_stored

            await require_stored(self.requests, submission.ad)
        request = Submit(
            id=command or new_id(),
            ad=submission.ad,
            columns=submission.columns,
            rows=submission.rows,
            spool=spool,
        )
        endpoint = SUBMIT_FROM_JOB if self.requests.pool.by_job else SUBMIT
        try:
            reply = await self.requests.ask(endpoint, request)
        except UnicodeEncodeError as error:
            text = repr(error.object)
            raise ClientError(
                f"the jobs contain a text that cannot be sent, because it is not UTF-8: {text}"
            ) from error
        except CommandRefusedError as error:
            if error.code != RefusalCode.TOO_LARGE:
                raise
            raise CommandRefusedError(
                error.code,
                f"the submission of {submission.count} jobs is too large ({error}); submit it in parts",
            ) from error
        self.saw(reply.position)
        return reply

    async def submit_many(
        self, submissions: "Mapping[str, Submission]", *, spool: "Collection[str]" = ()
    ) -> dict[str, Submitted | ClientError]:
        """
        Submit each of them as a cluster of its own, with few commands: what became of it, by its id.

        The id is that of `command` in `submit`: repeated, it submits nothing. What is refused is refused by itself.
        `spool`: the ids of those that are held until `spools.send` has sent their files.
        """
        from kettle.client.jobs.many_submissions import submit_many

        found = await submit_many(self.requests, submissions, spool=spool)
        for each in found.values():
            if isinstance(each, Submitted):
                self.saw(each.position)
        return found

    async def require_room(self, expected: "Iterable[ExpectedJobs]") -> None:
        """
        Before very many jobs are made from a description: `refused`, if as many as one of the clusters may not be submitted.

        Where nobody knows, the submission itself will tell.
        """
        from kettle.submit.expected_jobs import MANY

        for each in expected:
            if each.jobs < MANY:
                continue
            try:
                request = AskRoom(jobs=each.jobs, late=each.late)
                await self.requests.ask(ASK_ROOM, request, patience=SIDE_QUESTION_S)
            except CommandRefusedError:
                raise
            except ClientError:
                return

    async def hold(self, select: Select, reason: str = "") -> Acted:
        """Stop jobs, and keep them from running until they are released."""
        return await self.act("hold", select, reason)

    async def release(self, select: Select, reason: str = "") -> Acted:
        """Let held jobs run again."""
        return await self.act("release", select, reason)

    async def remove(self, select: Select, reason: str = "") -> Acted:
        """Take jobs out of the queue."""
        return await self.act("remove", select, reason)

    async def act(self, action: Action, select: Select, reason: str = "", *, subcode: int = 0) -> Acted:
        """
        Do one of the above, or what is done to running jobs only; one outcome for each job that was named or found.

        `subcode` goes on record with a hold.
        """
        request = Act(id=new_id(), action=action, select=select, reason=reason, subcode=subcode)
        reply = await self.requests.ask(ACT, request)
        self.saw(reply.position)
        return reply

    async def edit(self, cluster: int, attributes: Ad) -> Edited:
        """
        Change how fast a cluster's jobs come into the queue: JobMaterializeLimit, JobMaterializeMaxIdle.
        """
        return await self.requests.ask(EDIT, Edit(id=new_id(), cluster=cluster, attributes=attributes))

    async def edit_jobs(self, select: Select, attributes: Ad, *, add_to_priority: int = 0) -> Acted:
        """
        Set attributes of jobs in the queue, or add to their priority; `refused`: nobody may set one of them.
        """
        request = EditJobs(id=new_id(), select=select, attributes=attributes, add_to_priority=add_to_priority)
        reply = await self.requests.ask(EDIT_JOBS, request)
        self.saw(reply.position)
        return reply

    async def run_now(self, job: JobId, instead_of: Sequence[JobId]) -> "RunningNow":
        """
        Run an idle job in the place of running jobs of yours, which go back into the queue.

        Raises:
            CommandRefusedError: that cannot be, and nothing has changed; or `unknown`: the machine did not answer.
        """
        from kettle_wire.commands.schedd import RUN_NOW, RunNow

        return await self.requests.ask(RUN_NOW, RunNow(id=new_id(), job=job, instead_of=list(instead_of)))

    async def jobs(
        self, select: Select | None = None, *, projection: Sequence[str] = (), limit: int = 0
    ) -> list[Ad]:
        """The ads of jobs in the queue, in its order; what this client wrote before is visible in them."""
        return (await self.queue(select, projection=projection, limit=limit)).jobs

    async def queue(
        self, select: Select | None = None, *, projection: Sequence[str] = (), limit: int = 0
    ) -> JobAds:
        """
        Ads of jobs as `jobs` returns them, with how far those clusters of the selection are whose jobs come into the queue little by little.
        """
        found = [page async for page in self.pages(select, projection=projection, limit=limit)]
        if len(found) == 1:
            return found[0]
        ads = [ad for page in found for ad in page.jobs]
        return msgspec.structs.replace(found[0], jobs=ads, total=len(ads), more=None)

    async def pages(
        self,
        select: Select | None = None,
        *,
        projection: Sequence[str] = (),
        limit: int = 0,
        after: JobId | None = None,
        page_bytes: int = PAGE,
    ) -> AsyncGenerator[JobAds, None]:
        """
        What `queue` returns, little by little, for selections of which nobody wants to keep all ads: a queue may be long.

        There is at least one page, which may be empty.  Each is of one moment, but the queue may change between two.
        `after`: only the jobs that come after this one, as `more` of a page says it.
        """
        request = self._question(select, projection=projection, limit=limit, page=page_bytes)
        request = msgspec.structs.replace(request, after=after)
        while True:
            page = await self.requests.ask(QUERY_JOBS, request)
            yield page
            if page.more is None:
                return
            left = request.limit - len(page.jobs) if limit else 0
            request = msgspec.structs.replace(request, after=page.more, limit=left)

    async def totals(self, select: Select | None = None) -> JobAds:
        """No ads, but how many jobs there are of each status."""
        return await self.requests.ask(QUERY_JOBS, self._question(select, totals=True))

    async def unmade(self, select: Select) -> list[Unmade]:
        """How far those clusters of a selection are whose jobs come into the queue little by little."""
        return (await self.totals(select)).unmade

    async def history(
        self,
        select: Select | None = None,
        *,
        limit: int = 100,
        since: float | None = None,
        until: float | None = None,
        searched: Callable[[int, int], None] | None = None,
        behind: Callable[[int], None] | None = None,
        at_least: Position | None = None,
        patience: float | None = None,
    ) -> list[Ad]:
        """
        The ads of jobs that have left the queue, newest first; `limit` 0: all of them.

        `since` and `until`: seconds since the epoch between which they left it. `searched` is told again and again how
        many jobs were looked at and how many of them were found; `behind`, if the history lags, how many frames are recorded
        that it has not yet.  `at_least`: up to where accounting must have read first,
        where that is not what this client wrote or saw; `patience`: another one than for other questions, seconds.
        """
        from kettle.client.jobs.sealed_values import opened
        from kettle_wire.commands.accounting import QUERY_HISTORY, QueryHistory

        select = select or Select()
        request = QueryHistory(
            jobs=select.jobs,
            clusters=select.clusters,
            owners=select.owners,
            constraint=select.constraint,
            since=since,
            until=until,
            limit=limit,
            at_least=at_least or self._seen,
        )
        found: list[Ad] = []
        examined = 0
        while True:
            answer = await self.requests.ask(QUERY_HISTORY, request, patience=patience)
            found += await opened(self.requests, answer.jobs)
            examined += answer.examined
            if behind is not None and answer.behind:
                behind(answer.behind)
            if searched is not None:
                searched(examined, len(found))
            if answer.more is None or (limit and len(found) >= limit):
                return found
            left = limit - len(found) if limit else 0
            request = msgspec.structs.replace(request, after=answer.more, limit=left)

    async def events(self, job: JobId) -> "list[JobEvent]":
        """Everything recorded of a job, its cluster's submission included, in order."""
        from kettle.client.jobs.records import decoded

        return [decoded(event) for event in (await self.recorded(job)).events]

    async def recorded(self, job: JobId, *, patience: float | None = None) -> "JobEvents":
        """
        Ads of jobs as they travel; `patience`: another one than for other questions, seconds.

        Raises CommandRefusedError: there never was such a job.
        """
        from kettle.client.jobs.records import check_member
        from kettle_wire.commands.schedd import QUERY_EVENTS, QueryEvents

        try:
            found = await self.requests.ask(QUERY_EVENTS, QueryEvents(job=job), patience=patience)
        except CommandRefusedError as error:
            if error.code != RefusalCode.NOT_FOUND:
                raise
            raise CommandRefusedError(
                error.code, f"there is no job {job}: this pool has never had a cluster {job.cluster}"
            ) from error
        check_member(job, found)
        if found.events:
            self.saw(Position(found.shard, found.events[-1].frame))
        return found

    def _question(
        self,
        select: Select | None,
        *,
        projection: Sequence[str] = (),
        limit: int = 0,
        page: int = 0,
        totals: bool = False,
    ) -> QueryJobs:
        seen = self._seen.frame if self._seen else 0
        return QueryJobs(
            select=select or Select(),
            projection=list(projection),
            limit=limit,
            at_least=seen,
            totals=totals,
            page=page,
        )

    def saw(self, position: Position) -> None:
        """
        Have later questions answered from at least this position: what was seen once is not unseen afterwards.
        """
        if self._seen is None or position.frame > self._seen.frame:
            self._seen = position
