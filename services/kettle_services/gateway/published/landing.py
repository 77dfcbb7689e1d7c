"""Where the tunnels of jobs come in: `GET /v2/tunnels`."""

import asyncio
import logging
import time
from typing import Final, Protocol

from aiohttp import web

from kettle.bus.ports import BusError
from kettle.http.problems import bearer_challenge
from kettle.http.requests import bearer_token
from kettle.published.frames import PATH, PROTOCOL
from kettle.published.ticket import Ticket, TicketRefusedError
from kettle.published.tunnel import Tunnel
from kettle_services.gateway.published.switching import Switched, forget, require_upgrade, taken
from kettle_services.gateway.published.tunnels import JobTunnel, Tunnels
from kettle_services.gateway.rest.application import RequestLimits
from kettle_services.gateway.rest.refusals import RequestRefused
from kettle_wire.rest.problem import ProblemCode

NOT_RUNNING: Final = "job.not_running"
"""With this a ticket is refused whose run is over."""

_log: Final = logging.getLogger(__name__)


class Tickets(Protocol):
    """Tells which job a ticket is of."""

    async def check(self, text: str) -> Ticket:
        """Raises TicketRefusedError: none, or not any more; BusError: nobody can tell now."""
        ...


class Landing:
    """Takes them."""

    def __init__(self, tunnels: Tunnels, tickets: Tickets, limits: RequestLimits) -> None:
        self._tunnels: Final = tunnels
        self._tickets: Final = tickets
        self._limits: Final = limits

    def add_to(self, application: web.Application) -> None:
        """Have an application take them."""
        application.router.add_get(PATH, self.take)

    async def take(self, request: web.Request) -> web.StreamResponse:
        """
        A tunnel, until it ends; raises RequestRefused: it is not taken, with a status that tells whether it may come again.
        """
        require_upgrade(request, PROTOCOL)
        ticket = await self._checked(request)
        self._tunnels.require_room(ticket)
        renewals: set[asyncio.Task[None]] = set()

        def brought(text: str) -> None:
            if not renewals:
                task = asyncio.create_task(self._renew(made, text), name="ticket of a tunnel")
                renewals.add(task)
                task.add_done_callback(renewals.discard)

        tunnel = Tunnel(opens=True, on_ticket=brought, on_announcement=lambda _said: made.announced.set())
        made = JobTunnel(ticket, tunnel, time.time())
        transport, early = taken(request, {"Upgrade": PROTOCOL})
        transport.set_protocol(tunnel)
        tunnel.connection_made(transport)
        if early:
            tunnel.data_received(early)
        try:
            reason = await self._tunnels.hold(made)
        finally:
            transport.abort()
            forget(request)
        _log.info("the tunnel of job %s has ended: %s", ticket.job, reason)
        return Switched()

    async def _checked(self, request: web.Request) -> Ticket:
        text = bearer_token(request)
        if not text:
            raise RequestRefused(
                401,
                ProblemCode.TOKEN_ABSENT,
                "a tunnel shows the ticket of its job in the header Authorization",
                challenge=bearer_challenge(""),
            )
        try:
            return await self._tickets.check(text)
        except TicketRefusedError as refusal:
            if refusal.code == NOT_RUNNING:
                raise RequestRefused(410, refusal.code, str(refusal)) from refusal
            self._limits.failed(self._limits.address(request))
            raise RequestRefused(
                401, refusal.code, str(refusal), challenge=bearer_challenge(str(refusal))
            ) from refusal

    async def _renew(self, made: JobTunnel, text: str) -> None:
        """Take the ticket that a tunnel has brought, or end the tunnel."""
        try:
            ticket = await self._tickets.check(text)
        except TicketRefusedError as refusal:
            made.tunnel.close(f"the new ticket is refused: {refusal}")
            return
        except BusError as error:
            _log.warning("a new ticket of job %s cannot be looked at: %s", made.ticket.job, error)
            return  # the old one holds for its time, and another one comes
        if (ticket.schedd, ticket.job, ticket.attempt) != (*made.key, made.ticket.attempt):
            made.tunnel.close("the new ticket is of another job or another run")
            return
        made.ticket = ticket
