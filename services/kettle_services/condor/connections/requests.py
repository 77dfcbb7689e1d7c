"""
A query or a command, repeated until there is an answer, because programs treat a failed query as a job that has left.

The first attempt is without an event loop, see `kettle.bus.single_request`.  In unusual cases the ordinary client asks
again, which waits, repeats and explains.  That is correct for commands that change something, too: every command has an
id, and a service that gets it twice carries it out once.
"""

from typing import TYPE_CHECKING, Final, TypeVar

import msgspec

from kettle.bus.single_request import UnusualError, ask_once
from kettle.client.connections.condor_config import PATIENCE_S, CondorConfig, pool_of
from kettle.client.connections.pool_file import PoolFile
from kettle_wire.ads.types import Ad
from kettle_wire.commands.queue import QUERY_JOBS, JobAds, QueryJobs
from kettle_wire.endpoint import Endpoint
from kettle_wire.identity import user
from kettle_wire.subjects import Subjects

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from kettle.client.spooling.transfers import SpoolTransfers

T = TypeVar("T")
Req = TypeVar("Req", bound=msgspec.Struct)
Rep = TypeVar("Rep", bound=msgspec.Struct)

_SHORT_S: Final = 5.0
"""How long an answer is waited for in the short way."""


class Asker:
    """One command's way to its pool."""

    def __init__(self, pool: PoolFile, patience: float) -> None:
        self.pool = pool
        self.patience = patience

    @classmethod
    def of(cls, knobs: CondorConfig, *, pool: str = "", name: str = "") -> "Asker":
        """To the pool and the schedd that are meant."""
        return cls(pool_of(knobs, pool=pool, name=name), knobs.number("TOOL_PATIENCE", PATIENCE_S))

    def schedd(self, endpoint: Endpoint[Req, Rep], request: Req) -> Rep:
        """What the schedd answers."""
        return self.ask(endpoint, self.pool.schedd, request)

    def ask(self, endpoint: Endpoint[Req, Rep], name: str, request: Req) -> Rep:
        """
        The answer of a service.

        Raises:
            PoolUnreachableError: it did not answer in time.
            CommandRefusedError: it refused.
        """
        answer = self._short(endpoint, name, request)
        return self._patiently(endpoint, name, request) if answer is None else answer

    def jobs(self, request: QueryJobs) -> JobAds:
        """Jobs in the queue, be they more than the bus carries at once."""
        answer = self._short(QUERY_JOBS, self.pool.schedd, request)
        if answer is not None:
            return answer
        import asyncio

        from kettle.client.jobs.listing import list_ads
        from kettle_services.condor.connections.retry import connected

        async def asked() -> JobAds:
            async with connected(self.pool, self.patience) as ask:
                return await list_ads(lambda part: ask(QUERY_JOBS, self.pool.schedd, part), request)

        return asyncio.run(asked())

    def ads(self, kind: str, *, constraint: str = "", projection: list[str]) -> list[Ad]:
        """Ads at the collector, of one type or of all."""
        from kettle_wire.commands.collector import QUERY_ADS, QueryAds

        request = QueryAds(type=kind, constraint=constraint, projection=projection)
        found: list[Ad] = []
        while True:
            page = self.ask(QUERY_ADS, self.pool.collector, request)
            found += page.ads
            if page.rest is None:
                return found
            request = msgspec.structs.replace(request, after=page.rest)

    def spools(self, work: "Callable[[SpoolTransfers], Awaitable[T]]") -> T:
        """Do something with the files of jobs at the access point, over one connection."""
        import asyncio

        from kettle.client.client import Client

        async def done() -> T:
            async with Client.connect(pool=self.pool, patience=self.patience) as client:
                return await work(client.spools)

        return asyncio.run(done())

    def _short(self, endpoint: Endpoint[Req, Rep], name: str, request: Req) -> Rep | None:
        try:
            return ask_once(
                self.pool.nats_url,
                endpoint,
                name,
                request,
                subjects=Subjects(self.pool.pool),
                identity=user(self.pool.user),
                credentials=self.pool.credentials,
                within=min(_SHORT_S, self.patience),
            )
        except UnusualError:
            return None

    def _patiently(self, endpoint: Endpoint[Req, Rep], name: str, request: Req) -> Rep:
        import asyncio

        from kettle_services.condor.connections.retry import connected

        async def asked() -> Rep:
            async with connected(self.pool, self.patience) as ask:
                return await ask(endpoint, name, request)

        return asyncio.run(asked())
