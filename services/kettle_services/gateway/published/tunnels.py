"""The tunnels that are open, by job: which one a service is reached through."""

import asyncio
import logging
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Final

from kettle.published.services import Service
from kettle.published.ticket import Ticket
from kettle.published.tunnel import Tunnel
from kettle_services.gateway.published.job_connections import JobConnections
from kettle_services.gateway.rest.refusals import RequestRefused
from kettle_wire.jobs import JobId
from kettle_wire.rest.problem import ProblemCode

JobKey = tuple[str, JobId]
"""An access point and a job of it."""
_LOOK_S: Final = 2.0
"""Between looks for tickets that are over."""
_FIRST_WORD_S: Final = 20.0
_OFTEN_S: Final = 60.0
_MOST_OFTEN: Final = 20
"""Connections of one job within that time: its machine waits longer and longer after each, and each is recorded."""

_log: Final = logging.getLogger(__name__)


class JobTunnel:
    """A tunnel of a job."""

    def __init__(self, ticket: Ticket, tunnel: Tunnel, since: float) -> None:
        self.ticket = ticket
        """The one that holds now."""
        self.tunnel: Final = tunnel
        self.since: Final = since
        self.connections: Final = JobConnections(tunnel)
        self.announced: Final = asyncio.Event()
        """Set when the job's side has said what it publishes."""

    @property
    def key(self) -> JobKey:
        """Whose it is."""
        return self.ticket.schedd, self.ticket.job

    def service(self, name: str) -> Service | None:
        """What the job publishes under a name; None: nothing."""
        return next((each for each in self.tunnel.announcement.services if each.name == name), None)


class Tunnels:
    """All of them; a newer run of a job replaces an older one."""

    def __init__(self, most: int) -> None:
        self._most: Final = most
        self._open: dict[JobKey, JobTunnel] = {}
        self._came: dict[JobKey, list[float]] = {}
        """When jobs have connected in the last minute."""
        self.opened: Callable[[JobTunnel], None] = lambda _tunnel: None
        self.closed: Callable[[JobTunnel, str], None] = lambda _tunnel, _reason: None

    def __len__(self) -> int:
        return len(self._open)

    def __iter__(self) -> Iterator[JobTunnel]:
        return iter(list(self._open.values()))

    def find(self, job: JobId, schedd: str) -> list[JobTunnel]:
        """The tunnels of a job; several only if no access point is named."""
        if schedd:
            found = self._open.get((schedd, job))
            return [found] if found is not None else []
        return [each for (_, other), each in self._open.items() if other == job]

    def require_room(self, ticket: Ticket) -> None:
        """Raises RequestRefused: a tunnel with this ticket is not taken."""
        known = self._open.get((ticket.schedd, ticket.job))
        if known is not None and known.ticket.attempt > ticket.attempt:
            raise RequestRefused(
                409,
                ProblemCode.CHANGED,
                f"a later run of job {ticket.job} has connected: this one publishes nothing any more",
            )
        if known is None and len(self._open) >= self._most:
            raise RequestRefused(
                503,
                ProblemCode.TOO_MANY,
                f"{self._most} jobs publish services here, which is the most (tunnels of [gateway])",
                retry_after=30,
            )
        now = time.monotonic()
        came = self._came.setdefault((ticket.schedd, ticket.job), [])
        if len(came) >= _MOST_OFTEN and now - came[-_MOST_OFTEN] < _OFTEN_S:
            raise RequestRefused(
                429,
                ProblemCode.TOO_MANY,
                f"job {ticket.job} has connected {_MOST_OFTEN} times within {_OFTEN_S:g} s: it may come again later",
                retry_after=30,
            )
        self._came[ticket.schedd, ticket.job] = [*came[1 - _MOST_OFTEN :], now]

    async def hold(self, made: JobTunnel) -> str:
        """Have a tunnel used until it ends, from its first word on; why it did."""
        try:
            if await _has_spoken(made):
                return await self._used(made)
            made.tunnel.close("the job's side has not said what it publishes")
            return await made.tunnel.ended()
        finally:
            await made.connections.close()

    async def _used(self, made: JobTunnel) -> str:
        before = self._open.get(made.key)
        if before is not None and before.ticket.attempt > made.ticket.attempt:
            # it came before that one, and has spoken after it
            made.tunnel.close(f"a later run of job {made.ticket.job} has connected")
            return await made.tunnel.ended()
        self._open[made.key] = made
        if before is not None:
            before.tunnel.close("another connection of the same job has replaced this one")
        self.opened(made)
        reason = "the gateway ended it"
        try:
            reason = await made.tunnel.ended()
        finally:
            if self._open.get(made.key) is made:
                del self._open[made.key]
            self.closed(made, reason)
        return reason

    async def watch_tickets(self) -> None:
        """End tunnels whose ticket is over and that have brought no other; never returns."""
        while True:
            await asyncio.sleep(_LOOK_S)
            now = time.time()
            lately = time.monotonic() - _OFTEN_S
            self._came = {key: came for key, came in self._came.items() if came and came[-1] > lately}
            for each in self:
                if each.ticket.expires <= now:
                    _log.info("the ticket of the tunnel of job %s is over", each.ticket.job)
                    each.tunnel.close("the ticket is over, and no other one came")

    def close_all(self, reason: str) -> None:
        """End all of them."""
        for each in self:
            with suppress(ConnectionError):
                each.tunnel.close(reason)


async def _has_spoken(made: JobTunnel) -> bool:
    """Whether its first word comes in time, and before its end."""
    waits = [asyncio.create_task(each) for each in (made.announced.wait(), made.tunnel.ended())]
    try:
        await asyncio.wait(waits, timeout=_FIRST_WORD_S, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for each in waits:
            each.cancel()
    return made.announced.is_set()
