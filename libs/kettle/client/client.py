"""The asynchronous client: a person's jobs in one pool."""

import asyncio
import os
import uuid
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from kettle.bus.ports import Asks, Bus
from kettle.client.accountant import Accountant
from kettle.client.connections.pool_connection import connect_pool
from kettle.client.connections.pool_file import PoolFile, locate
from kettle.client.connections.retry import PATIENCE_S, Rep, Req, Waiting, ask_with_retry
from kettle.client.errors import ClientError, CommandRefusedError
from kettle.client.events import following, published
from kettle.client.events.following import JobEvent, decoded
from kettle.client.events.progress import Progress
from kettle.client.events.published import Published, Wanted
from kettle.client.events.shard_feed import Feed
from kettle.client.hosts import Hosts
from kettle.client.jobs.access import AttemptAccess
from kettle.client.jobs.listing import list_ads
from kettle.client.jobs.submission import prepare
from kettle.client.why_report import WhyReport
from kettle_wire.ads.types import Ad
from kettle_wire.codes import RefusalCode
from kettle_wire.commands import accounting, collector, negotiator, schedd
from kettle_wire.commands.accounting import OwnerUsage, QueryHistory, QueryUsage
from kettle_wire.commands.collector import QueryAds
from kettle_wire.commands.negotiator import Why
from kettle_wire.commands.schedd import (
    Act,
    Acted,
    Action,
    AskAccess,
    Edited,
    Explain,
    JobAds,
    JobEvents,
    QueryEvents,
    QueryJobs,
    RunningNow,
    Select,
    Submit,
    Submitted,
    Unmade,
)
from kettle_wire.endpoint import Endpoint, Position
from kettle_wire.jobs import JobId
from kettle_wire.subjects import Subjects

if TYPE_CHECKING:
    from kettle.client.spooling.transfers import SpoolTransfers
    from kettle.submit import Submission

_SIDE_QUESTION_S = 3.0
"""Patience for an answer that we can do without."""


class Client:
    """
    A connection to a pool.  Every method waits out a restart of the service that it asks.

        async with Client.connect() as pool:
            submitted = await pool.submit(Path("sweep.sub"))
            progress = await pool.wait(select(submitted.cluster))

    Each raises `ClientError` where it says nothing else.
    """

    def __init__(
        self, asks: Asks, pool: PoolFile, *, bus: Bus | None = None, patience: float = PATIENCE_S
    ) -> None:
        """`bus`: where there is one, beside who can be asked."""
        self.pool = pool
        self._asks = asks
        self._bus = bus
        self._patience = patience
        self._subjects = Subjects(pool.pool)
        self._feeds: dict[str, Feed] = {}
        self._written: Position | None = None
        self.waiting: Waiting | None = None
        """Told when a command takes longer than one notices, and why: for a person at a terminal."""
        self.hosts: Final = Hosts(asks, pool, patience=patience, waiting=lambda: self.waiting)
        self.accountant: Final = Accountant(asks, pool, patience=patience, waiting=lambda: self.waiting)

    @classmethod
    @asynccontextmanager
    async def connect(
        cls,
        nats_url: str | None = None,
        *,
        credentials: str | Path | None = None,
        home: Path | None = None,
        schedd: str = "",
        environ: Mapping[str, str] | None = None,
        patience: float = PATIENCE_S,
        pool: PoolFile | None = None,
    ) -> AsyncGenerator["Client", None]:
        """
        Connect to the `pool` that somebody has found, the one that is named, or that `KETTLE_NATS_URL` or `$KETTLE_HOME/pool.json` names.

        `schedd` is the name of the access point whose queue is meant, if the pool has several.
        `patience` is how many seconds a command is repeated while the pool does not answer.

        Raises:
            PoolNotFoundError: nothing says where the pool is.
            PoolUnreachableError: its bus cannot be reached.
        """
        if pool is None:
            environ = os.environ if environ is None else environ
            pool = locate(environ, nats_url=nats_url, credentials=credentials, home=home)
        pool = msgspec.structs.replace(pool, schedd=schedd) if schedd else pool
        async with connect_pool(pool, patience) as (asks, bus):
            yield cls(asks, pool, bus=bus, patience=patience)

    async def submit(
        self,
        description: "str | Path | Submission",
        *,
        given: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        source: str | None = None,
        spool: bool = False,
    ) -> Submitted:
        """
        Submit the jobs of a description that makes one cluster: its text, the path of a file, or what `prepare` made of it.

        Of one that may make several, submit what `prepare_clusters` makes, one after the other.

        `given` are assignments before its first line; relative names start at `cwd`.  When this returns, the jobs are
        recorded and cannot be lost.  With `spool` they are held then, until `spools.send` has sent their files.

        Raises:
            SubmitError: the description is refused, or makes several clusters; nothing was recorded.
        """
        if isinstance(description, str | Path):
            submission = await asyncio.to_thread(prepare, description, given=given, cwd=cwd, source=source)
        else:
            submission = description
        request = Submit(
            id=uuid.uuid4().hex,
            ad=submission.ad,
            columns=submission.columns,
            rows=submission.rows,
            spool=spool,
        )
        try:
            reply = await self._ask_schedd(schedd.SUBMIT, request)
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
        self._wrote(reply.position)
        return reply

    @cached_property
    def spools(self) -> "SpoolTransfers":
        """The files of jobs that are sent to the access point and fetched from it."""
        from kettle.client.spooling.transfers import SpoolTransfers

        return SpoolTransfers(self._asks, self.pool, patience=self._patience, waiting=lambda: self.waiting)

    async def hold(self, select: Select, reason: str = "") -> Acted:
        """Stop jobs, and keep them from running until they are released."""
        return await self.act("hold", select, reason)

    async def release(self, select: Select, reason: str = "") -> Acted:
        """Let held jobs run again."""
        return await self.act("release", select, reason)

    async def remove(self, select: Select, reason: str = "") -> Acted:
        """Take jobs out of the queue for ever."""
        return await self.act("remove", select, reason)

    async def edit(self, cluster: int, attributes: Ad) -> Edited:
        """
        Change how fast a cluster's jobs come into the queue: JobMaterializeLimit, JobMaterializeMaxIdle.
        """
        edit = schedd.Edit(id=uuid.uuid4().hex, cluster=cluster, attributes=attributes)
        return await self._ask_schedd(schedd.EDIT, edit)

    async def edit_jobs(self, select: Select, attributes: Ad, *, add_to_priority: int = 0) -> Acted:
        """
        Set attributes of jobs in the queue, or add to their priority; `refused`: nobody may set one of them.
        """
        edit = schedd.EditJobs(
            id=uuid.uuid4().hex, select=select, attributes=attributes, add_to_priority=add_to_priority
        )
        reply = await self._ask_schedd(schedd.EDIT_JOBS, edit)
        self._wrote(reply.position)
        return reply

    async def run_now(self, job: JobId, instead_of: Sequence[JobId]) -> RunningNow:
        """
        Run an idle job in the place of running jobs of yours, which go back into the queue.

        Raises:
            CommandRefusedError: that cannot be, and nothing has changed; or `unknown`: the machine did not answer.
        """
        request = schedd.RunNow(id=uuid.uuid4().hex, job=job, instead_of=list(instead_of))
        return await self._ask_schedd(schedd.RUN_NOW, request)

    async def act(self, action: Action, select: Select, reason: str = "") -> Acted:
        """
        Do one of the above, or what is done to running jobs only; one outcome for each job that was named or found.
        """
        request = Act(id=uuid.uuid4().hex, action=action, select=select, reason=reason)
        reply = await self._ask_schedd(schedd.ACT, request)
        self._wrote(reply.position)
        return reply

    async def jobs(
        self, select: Select | None = None, *, projection: Sequence[str] = (), limit: int = 0
    ) -> list[Ad]:
        """The ads of jobs in the queue, in its order; what this client wrote before is visible in them."""
        return (await self.queue(select, projection=projection, limit=limit)).jobs

    async def queue(
        self, select: Select | None = None, *, projection: Sequence[str] = (), limit: int = 0
    ) -> JobAds:
        """
        The same, with how far those clusters of the selection are whose jobs come into the queue little by little.
        """
        return await list_ads(self._query, self._question(select, list(projection), limit))

    async def totals(self, select: Select | None = None) -> JobAds:
        """The same without any ads, but with how many jobs there are of each status."""
        return await self._query(self._question(select, [], totals=True))

    async def unmade(self, select: Select) -> list[Unmade]:
        """How far those clusters of a selection are whose jobs come into the queue little by little."""
        return (await self.totals(select)).unmade

    def _question(
        self, select: Select | None, projection: list[str], limit: int = 0, *, totals: bool = False
    ) -> QueryJobs:
        seen = self._written.frame if self._written else 0
        return QueryJobs(
            select=select or Select(), projection=projection, limit=limit, at_least=seen, totals=totals
        )

    async def _query(self, request: QueryJobs) -> JobAds:
        return await self._ask_schedd(schedd.QUERY_JOBS, request)

    async def history(
        self,
        select: Select | None = None,
        *,
        limit: int = 100,
        since: float | None = None,
        until: float | None = None,
        searched: Callable[[int, int], None] | None = None,
    ) -> list[Ad]:
        """
        The ads of jobs that have left the queue, newest first; `limit` 0: all of them.

        `since` and `until`: seconds since the epoch between which they left it. `searched` is told again and again how
        many jobs were looked at and how many of them were found.
        """
        request = _history_of(select or Select(), limit, self._written, since=since, until=until)
        return await self._history(request, self._patience, searched)

    async def events(self, job: JobId) -> list[JobEvent]:
        """Everything recorded of a job, its cluster's submission included, in order."""
        return [decoded(event) for event in (await self.recorded(job)).events]

    async def follow(self, job: JobId) -> AsyncGenerator[JobEvent, None]:
        """The same, and then each event as it is recorded, until the job has ended."""
        async with aclosing(following.follow(self, job)) as followed:
            async for event in followed:
                yield event

    async def published(self, wanted: Wanted, *, follow: bool = True) -> AsyncGenerator[Published, None]:
        """
        Events of the whole pool as the gateway publishes them; with `follow` also those to come, for ever.
        """
        async with aclosing(published.read(self._follows, self._subjects, wanted, follow=follow)) as events:
            async for event in events:
                yield event

    async def watch(self, select: Select) -> AsyncGenerator[Progress, None]:
        """How far jobs are, after each change, until all have ended.  It is one object, which changes."""
        async with aclosing(following.watch(self, select)) as watched:
            async for progress in watched:
                yield progress

    async def wait(self, select: Select, *, through_hold: bool = True) -> Progress:
        """Wait until jobs have ended; unless `through_hold`, also until all that are left are held."""
        progress = Progress({})
        async with aclosing(following.watch(self, select)) as watched:
            async for progress in watched:
                if progress.stuck and not through_hold:
                    break
        return progress

    async def why(self, job: JobId) -> WhyReport:
        """
        Why a job is where it is: what the schedd knows, and what the last negotiation said of jobs like it.
        """
        try:
            explanation = await self._ask_schedd(schedd.EXPLAIN, Explain(job=job))
        except CommandRefusedError as error:
            if error.code != RefusalCode.NOT_FOUND:
                raise
            return WhyReport(job=job, events=await self.events(job))
        if explanation.status != "idle" or explanation.autocluster is None:
            return WhyReport(job=job, explanation=explanation)
        question = Why(
            submitter=explanation.submitter, schedd=self.pool.schedd, autocluster=explanation.autocluster
        )
        try:
            verdict = await ask_with_retry(
                self._asks, negotiator.WHY, self.pool.negotiator, question, patience=_SIDE_QUESTION_S
            )
        except ClientError as error:
            return WhyReport(job=job, explanation=explanation, trouble=str(error))
        return WhyReport(job=job, explanation=explanation, verdict=verdict)

    async def visit(self, job: JobId) -> AttemptAccess:
        """
        A way to look into a job that runs: at its files, and with programs of your own beside it.

        Raises:
            CommandRefusedError: `not_found`, `not_running`, or `denied` if it is somebody else's.
        """
        given = await self._ask_schedd(schedd.ACCESS, AskAccess(job=job))
        return AttemptAccess(self._asks, given, patience=self._patience)

    async def ads(
        self,
        ad_type: str = "",
        *,
        constraint: str = "",
        projection: Sequence[str] = (),
        forwarded: bool = False,
    ) -> list[Ad]:
        """
        What the parts of the pool say of themselves; the type is `Machine`, `Scheduler`, `Submitter`, ...

        forwarded: also what other pools forward here; it has `ForwardedFrom`.
        """
        ads: list[Ad] = []
        request = QueryAds(
            type=ad_type, constraint=constraint, projection=list(projection), forwarded=forwarded
        )
        while True:
            page = await ask_with_retry(
                self._asks, collector.QUERY_ADS, self.pool.collector, request, patience=self._patience
            )
            ads += page.ads
            if page.rest is None:
                return ads
            request = msgspec.structs.replace(request, after=page.rest)

    async def usage(self, owners: Sequence[str] = ()) -> list[OwnerUsage]:
        """What people have used so far."""
        request = QueryUsage(owners=list(owners))
        return (
            await ask_with_retry(
                self._asks, accounting.QUERY_USAGE, self.pool.accounting, request, patience=self._patience
            )
        ).owners

    async def recorded(self, job: JobId) -> JobEvents:
        """Everything recorded of a job, as it travels."""
        try:
            found = await self._ask_schedd(schedd.QUERY_EVENTS, QueryEvents(job=job))
        except CommandRefusedError as error:
            if error.code != RefusalCode.NOT_FOUND:
                raise
            raise CommandRefusedError(
                error.code, f"there is no job {job}: this pool has never had a cluster {job.cluster}"
            ) from error
        following.check_member(job, found)
        return found

    async def queued(self, select: Select, projection: Sequence[str]) -> list[Ad]:
        """For `watch`: the same as `jobs`."""
        return await self.jobs(select, projection=projection)

    async def ended(self, select: Select, limit: int) -> list[Ad]:
        """For `watch`: the history as far as it is known, nothing if accounting does not answer."""
        try:
            return await self._history(_history_of(select, limit, self._written), _SIDE_QUESTION_S)
        except ClientError:
            return []

    async def feed(self, shard: str) -> Feed:
        """For `watch`: the live frames of a shard; one subscription however many ask."""
        if shard not in self._feeds:
            feed = self._feeds[shard] = Feed()
            bus = self._follows
            bus.on_return(feed.interrupted)
            await bus.listen(self._subjects.events(shard), feed.deliver)
        return self._feeds[shard]

    @property
    def _follows(self) -> Bus:
        if self._bus is None:
            raise ClientError(
                "a job cannot follow what happens: it may ask, or read a job event log (condor_wait)"
            )
        return self._bus

    async def _history(
        self, request: QueryHistory, patience: float, searched: Callable[[int, int], None] | None = None
    ) -> list[Ad]:
        """Answer after answer, until there are enough or no more."""
        found: list[Ad] = []
        examined, limit = 0, request.limit
        while True:
            answer = await ask_with_retry(
                self._asks, accounting.QUERY_HISTORY, self.pool.accounting, request, patience=patience
            )
            found += answer.jobs
            examined += answer.examined
            if searched is not None:
                searched(examined, len(found))
            if answer.more is None or (limit and len(found) >= limit):
                return found
            left = limit - len(found) if limit else 0
            request = msgspec.structs.replace(request, after=answer.more, limit=left)

    async def _ask_schedd(self, endpoint: Endpoint[Req, Rep], request: Req) -> Rep:
        return await ask_with_retry(
            self._asks,
            endpoint,
            self.pool.schedd,
            request,
            patience=self._patience,
            waiting=self.waiting,
        )

    def _wrote(self, position: Position) -> None:
        if self._written is None or position.frame > self._written.frame:
            self._written = position


def _history_of(
    select: Select,
    limit: int,
    written: Position | None,
    *,
    since: float | None = None,
    until: float | None = None,
) -> QueryHistory:
    return QueryHistory(
        jobs=select.jobs,
        clusters=select.clusters,
        owners=select.owners,
        constraint=select.constraint,
        since=since,
        until=until,
        limit=limit,
        at_least=written,
    )
