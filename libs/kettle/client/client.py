"""
The client: a person's jobs in one pool.  Everybody who asks a pool for a person does it through this one: programs over a
connection that lasts (`Client.connect`, `kettle.client.sync`), commands that ask once and end over a short one
(`kettle.client.short_lived`).

It loads neither an event loop nor the driver of the bus before they are needed.
"""

import os
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from kettle.client.connections.locating import locate
from kettle.client.connections.pool_file import PoolFile
from kettle.client.connections.transport import PATIENCE_S, Requests, Transport, Waiting
from kettle.client.jobs.queue import JobQueue
from kettle_wire.ads.types import Ad
from kettle_wire.commands.queue import Select
from kettle_wire.jobs import JobId
from kettle_wire.subjects import Subjects

if TYPE_CHECKING:
    from kettle.client.accountant import Accountant
    from kettle.client.entrypoint import Entrypoint
    from kettle.client.events.following import JobSource
    from kettle.client.events.progress import Progress
    from kettle.client.events.published import Published, Wanted
    from kettle.client.gateway import GatewayClient
    from kettle.client.hosts import Hosts
    from kettle.client.iam import IdentityClient
    from kettle.client.jobs.access import AttemptAccess
    from kettle.client.jobs.records import JobEvent
    from kettle.client.rights import RightsClient
    from kettle.client.sessions import SessionClient
    from kettle.client.spooling.transfers import SpoolTransfers
    from kettle.client.task_queues import TaskQueueClient
    from kettle.client.token_requests import TokenRequestClient
    from kettle.client.why_report import WhyReport, WhyReports
    from kettle.client.worker_pools import WorkerPools
    from kettle.client.workflows import Workflows
    from kettle_wire.commands.accounting import OwnerUsage


class Client(JobQueue):
    """
    What a person asks a pool.  Every method waits out a restart of the service that it asks.

        async with Client.connect() as pool:
            submitted = await pool.submit(Path("sweep.sub"))
            progress = await pool.wait(select(submitted.cluster))
    """

    def __init__(self, transport: Transport, pool: PoolFile) -> None:
        super().__init__(Requests(transport, pool))
        self.pool = pool

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
        token: Callable[[], str] | None = None,
    ) -> AsyncGenerator["Client", None]:
        """
        Connect to the `pool` that somebody has found, the one that is named, or that `KETTLE_NATS_URL` or `$KETTLE_HOME/pool.json` names.

        `schedd` is the name of the access point whose queue is meant, if the pool has several.
        `patience` is how many seconds a command is repeated while the pool does not answer.
        `token` says what is shown to the pool at each connection, instead of a token that is kept somewhere.

        Raises:
            PoolNotFoundError: nothing says where the pool is.
            PoolUnreachableError: its bus cannot be reached.
        """
        from kettle.client.connections.pool_connection import connect_pool

        if pool is None:
            environ = os.environ if environ is None else environ
            pool = locate(environ, nats_url=nats_url, credentials=credentials, home=home)
        async with connect_pool(pool, patience, token) as transport:
            client = cls(transport, pool.at(schedd))
            await client.connection()
            yield client

    def at(self, schedd: str) -> "Client":
        """A client for the queue of another access point, over the same connection."""
        return type(self)(self.requests.transport, self.pool.at(schedd))

    @property
    def waiting(self) -> "Waiting | None":
        """Told when a command takes longer than one notices, and why: for a person at a terminal."""
        return self.requests.transport.waiting

    @waiting.setter
    def waiting(self, waiting: "Waiting | None") -> None:
        self.requests.transport.waiting = waiting

    @cached_property
    def accountant(self) -> "Accountant":
        """Priorities, factors and usage of submitters."""
        from kettle.client.accountant import Accountant

        return Accountant(self.requests)

    @cached_property
    def rights(self) -> "RightsClient":
        """What we may do at each service."""
        from kettle.client.rights import RightsClient

        return RightsClient(self.requests)

    @cached_property
    def token_requests(self) -> "TokenRequestClient":
        """Tokens of programs of HTCondor."""
        from kettle.client.token_requests import TokenRequestClient

        return TokenRequestClient(self.requests)

    @cached_property
    def iam(self) -> "IdentityClient":
        """Join tokens, bans, tokens and the audit."""
        from kettle.client.iam import IdentityClient

        return IdentityClient(self.requests)

    @cached_property
    def workflows(self) -> "Workflows":
        """Workflows of this access point."""
        from kettle.client.workflows import Workflows

        return Workflows(self.requests)

    @cached_property
    def sessions(self) -> "SessionClient":
        """Interactive sessions of this access point."""
        from kettle.client.sessions import SessionClient

        return SessionClient(self.requests)

    @cached_property
    def tasks(self) -> "TaskQueueClient":
        """Task queues of this access point."""
        from kettle.client.task_queues import TaskQueueClient

        return TaskQueueClient(self.requests)

    @cached_property
    def worker_pools(self) -> "WorkerPools":
        """Pools of workers and their leases."""
        from kettle.client.worker_pools import WorkerPools

        return WorkerPools(self.requests)

    @cached_property
    def entrypoint(self) -> "Entrypoint":
        """The compute entrypoint of this access point."""
        from kettle.client.entrypoint import Entrypoint

        return Entrypoint(self.requests)

    @cached_property
    def gateway(self) -> "GatewayClient":
        """Where the pages for browsers are."""
        from kettle.client.gateway import GatewayClient

        return GatewayClient(self.requests)

    @cached_property
    def hosts(self) -> "Hosts":
        """The hosts of the pool, for administrators."""
        from kettle.client.hosts import Hosts

        return Hosts(self.requests)

    @cached_property
    def spools(self) -> "SpoolTransfers":
        """The files of jobs that are sent to the access point and fetched from it."""
        from kettle.client.spooling.transfers import SpoolTransfers

        return SpoolTransfers(self)

    @cached_property
    def source(self) -> "JobSource":
        """What following jobs is made of: the live frames of the pool, and questions about jobs."""
        from kettle.client.events.following import JobSource

        return JobSource(self)

    async def connection(self) -> None:
        """Have a connection that lasts, and an event loop: for what goes on longer than a few questions."""
        _ = self.source  # it takes a while to load, and is not to do that when somebody counts the seconds
        await self.requests.transport.connection()

    async def follow(self, job: JobId) -> "AsyncGenerator[JobEvent, None]":
        """The events of a job, and then each as it is recorded, until the job has ended."""
        from kettle.client.events import following

        await self.connection()
        async with aclosing(following.follow(self.source, job)) as followed:
            async for event in followed:
                yield event

    async def published(self, wanted: "Wanted", *, follow: bool = True) -> "AsyncGenerator[Published, None]":
        """
        Events of the whole pool as the gateway publishes them; with `follow` also those to come, without end.
        """
        from kettle.client.events import published

        bus, subjects = await self.source.bus(), Subjects(self.pool.pool)
        async with aclosing(published.read(bus, subjects, wanted, follow=follow)) as events:
            async for event in events:
                yield event

    async def watch(self, select: Select) -> "AsyncGenerator[Progress, None]":
        """How far jobs are, after each change, until all have ended.  It is one object, which changes."""
        from kettle.client.events import following

        await self.connection()
        async with aclosing(following.watch(self.source, select)) as watched:
            async for progress in watched:
                yield progress

    async def wait(self, select: Select, *, through_hold: bool = True) -> "Progress":
        """Wait until jobs have ended; unless `through_hold`, also until all that are left are held."""
        from kettle.client.events.progress import Progress

        progress = Progress({})
        async with aclosing(self.watch(select)) as watched:
            async for progress in watched:
                if progress.stuck and not through_hold:
                    break
        return progress

    async def why(self, job: JobId) -> "WhyReport":
        """
        Why a job is where it is: what the schedd knows, and what the last negotiation said of jobs like it.
        """
        from kettle.client.why_report import report_why

        return await report_why(self, job)

    async def what_if(self, job: JobId, changes: Ad) -> "WhyReport":
        """
        Where a job that waits could run if it had these attributes.

        Raises CommandRefusedError: `not_found`, it is not in the queue.
        """
        from kettle.client.why_report import report_what_if

        return await report_what_if(self, job, changes)

    async def why_jobs(self, select: Select) -> "WhyReports":
        """Why the jobs of a selection are where they are, those together that have one reason."""
        from kettle.client.why_report import report_why_jobs

        return await report_why_jobs(self, select)

    async def visit(self, job: JobId) -> "AttemptAccess":
        """
        A way to look into a job that runs: at its files, and with programs of your own beside it.

        Raises:
            CommandRefusedError: `not_found`, `not_running`, or `denied` if it is somebody else's.
        """
        from kettle.client.jobs.access import AttemptAccess
        from kettle_wire.commands.schedd import ACCESS, AskAccess

        await self.requests.transport.connection()
        return AttemptAccess(self.requests, await self.requests.ask(ACCESS, AskAccess(job=job)))

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
        from kettle_wire.commands.collector import QUERY_ADS, QueryAds

        ads: list[Ad] = []
        request = QueryAds(
            type=ad_type, constraint=constraint, projection=list(projection), forwarded=forwarded
        )
        while True:
            page = await self.requests.ask(QUERY_ADS, request)
            ads += page.ads
            if page.rest is None:
                return ads
            request = msgspec.structs.replace(request, after=page.rest)

    async def usage(self, owners: Sequence[str] = ()) -> "list[OwnerUsage]":
        """What people have used so far."""
        from kettle_wire.commands.accounting import QUERY_USAGE, QueryUsage

        return (await self.requests.ask(QUERY_USAGE, QueryUsage(owners=list(owners)))).owners
