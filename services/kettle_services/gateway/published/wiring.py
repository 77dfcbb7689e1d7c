"""How published services hang together."""

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from aiohttp import web

from kettle.bus.ports import Bus, RefusedError, Served
from kettle.published.freed_memory import keep_freed_memory
from kettle.runtime import Runtime
from kettle_services.gateway.domain.service_origins import ServiceOrigins
from kettle_services.gateway.pages.serving import Pages
from kettle_services.gateway.published.http_proxy import HttpProxy
from kettle_services.gateway.published.job_lookup import JobLookup
from kettle_services.gateway.published.landing import Landing
from kettle_services.gateway.published.member_access import MemberAccess
from kettle_services.gateway.published.service_access import ServiceAccess
from kettle_services.gateway.published.service_metrics import measure_services
from kettle_services.gateway.published.service_pages import ServicePages
from kettle_services.gateway.published.service_questions import ServiceQuestions
from kettle_services.gateway.published.service_reporter import ServiceReporter
from kettle_services.gateway.published.service_requests import ServiceRequests
from kettle_services.gateway.published.service_sessions import ServiceSessions
from kettle_services.gateway.published.switching import Passage
from kettle_services.gateway.published.tickets import TicketOffice
from kettle_services.gateway.published.tunnels import Tunnels
from kettle_services.gateway.published.uses import Uses
from kettle_services.gateway.rest.application import Front, Handler
from kettle_services.gateway.rest.persons import Persons
from kettle_services.gateway.rest.refusals import RequestRefused
from kettle_services.gateway.rest.wiring import RestParts
from kettle_services.gateway.sessions.origins import Origins
from kettle_services.gateway.sessions.session_table import SessionTable
from kettle_services.gateway.settings import GatewaySettings
from kettle_wire.codes import RefusalCode
from kettle_wire.commands.gateway import MAKE_ACCESS, AccessMade, MakeAccess
from kettle_wire.identity import Identity
from kettle_wire.rest.route import Route

if TYPE_CHECKING:
    from kettle_services.gateway.published.by_name import ServicesByName

_ENDS: Final = "the gateway is stopped"


class PublishedServices:
    """All of it, of one gateway."""

    def __init__(
        self,
        settings: GatewaySettings,
        bus: Bus,
        parts: RestParts,
        front: Front,
        pages: Pages,
        origins: Origins,
        tickets: TicketOffice,
        table: SessionTable,
        url: str,
        services_url: str,
        by_name: "ServicesByName | None",
    ) -> None:
        """
        `table`: the sessions of browsers; `url`: where browsers find the gateway's pages, `services_url`: those of jobs; `by_name`: None:
        no program comes by TLS and a name.
        """
        self._by_name: Final = by_name
        self._limits: Final = parts.limits
        self._tickets: Final = tickets
        self._persons: Final[Persons] = parts.persons
        self.tunnels: Final = Tunnels(settings.tunnels)
        self.uses: Final = Uses(settings.service_connections, settings.service_connections_of_one)
        lookup = JobLookup(bus, settings.collector, parts.tables)
        self._members: Final = MemberAccess(lookup, tickets.url, tickets.ca)
        self.access: Final = ServiceAccess(front, lookup, self.tunnels, parts.persons, self._members)
        self.reports: Final = ServiceReporter(bus)
        self._passage: Final = Passage()
        proxy = HttpProxy(settings.service_patience, self._passage)
        self.requests: Final = ServiceRequests(
            self.access, proxy, self._passage, self.uses, parts.limits, origins, pages.prefix_of
        )
        sessions = ServiceSessions(table, parts.persons)
        self.pages: Final = ServicePages(
            self.access, self.requests, sessions, ServiceOrigins(services_url), parts.limits, url
        )
        self._landing: Final = Landing(self.tunnels, tickets, parts.limits)

    def handlers(self) -> Mapping[Route, Handler]:
        """Of the REST interface, by the routes that they answer."""
        return ServiceQuestions(self.access, self.tunnels, self.uses, self._by_name).handlers()

    def served(self) -> list[Served[Any, Any]]:
        """What is answered over the bus."""
        return [Served(MAKE_ACCESS, self.make_access), self._members.served(), *self._tickets.served()]

    async def add_to(self, application: web.Application, rt: Runtime) -> None:
        """Have the gateway take tunnels, and show services of jobs; raises SettingsError: a port is taken."""
        keep_freed_memory()
        self._landing.add_to(application)
        self.requests.add_to(application, self.pages.lead_on)
        self.pages.add_to(application)
        self.reports.listen(self.tunnels, self.uses, self.access)
        measure_services(rt.telemetry, self.tunnels, self.uses, self.access)
        rt.loop(self.reports.run(), name="reports of services")
        rt.loop(self.uses.watch(), name="uses of services")
        rt.loop(self.tunnels.watch_tickets(), name="tickets of tunnels")
        application.on_shutdown.append(self._end)
        if self._by_name is not None:
            await self._by_name.listen(rt, self.access, self._persons, self._passage, self.uses, self._limits)

    async def make_access(self, _request: MakeAccess, caller: Identity) -> AccessMade:
        """
        See `MakeAccess`; refused for who could not come with it, or has shown a token, which is less than an account.
        """
        if caller.bearer:
            raise RefusedError(RefusalCode.DENIED, "show your token to the gateway itself")
        try:
            self._persons.of_account(caller.name, "")
        except RequestRefused as refusal:
            raise RefusedError(RefusalCode.DENIED, str(refusal)) from refusal
        token, expires = self._persons.access_tokens.make(caller.name, time.time())
        return AccessMade(url=self._tickets.url, ca=self._tickets.ca, token=token, expires=expires)

    async def _end(self, _application: web.Application) -> None:
        self.uses.end_all()
        self.tunnels.close_all(_ENDS)
        await self.reports.finish()
