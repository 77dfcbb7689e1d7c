"""How published services hang together."""

from typing import Final

import msgspec
from aiohttp import web

from kettle.bus.ports import Bus
from kettle.runtime import Runtime
from kettle_services.gateway.domain.published_addresses import Address
from kettle_services.gateway.pages.serving import Pages
from kettle_services.gateway.published.http_proxy import HttpProxy
from kettle_services.gateway.published.job_lookup import JobLookup
from kettle_services.gateway.published.landing import Landing, Tickets
from kettle_services.gateway.published.service_access import LEVEL, ServiceAccess
from kettle_services.gateway.published.service_requests import ServiceRequests
from kettle_services.gateway.published.switching import Passage
from kettle_services.gateway.published.tunnels import Tunnels
from kettle_services.gateway.published.uses import Uses
from kettle_services.gateway.rest.application import Front
from kettle_services.gateway.rest.refusals import RequestRefused
from kettle_services.gateway.rest.wiring import RestParts
from kettle_services.gateway.sessions.origins import Origins
from kettle_services.gateway.settings import GatewaySettings
from kettle_wire.rest.problem import ProblemCode

_ENDS: Final = "the gateway is stopped"


class PublishedParts(msgspec.Struct, frozen=True):
    """What others use of it."""

    tunnels: Tunnels
    uses: Uses
    access: ServiceAccess
    requests: ServiceRequests


def add_published(
    rt: Runtime,
    application: web.Application,
    settings: GatewaySettings,
    bus: Bus,
    parts: RestParts,
    front: Front,
    pages: Pages,
    origins: Origins,
    tickets: Tickets,
) -> PublishedParts:
    """Have the gateway take tunnels, and show services of jobs."""
    tunnels, uses = (
        Tunnels(settings.tunnels),
        Uses(settings.service_connections, settings.service_connections_of_one),
    )
    access = ServiceAccess(front, JobLookup(bus, settings.collector, parts.tables), tunnels)
    passage = Passage()
    proxy = HttpProxy(settings.service_patience, passage)
    requests = ServiceRequests(access, proxy, passage, uses, parts.limits, origins, pages.prefix_of)

    async def by_browser(request: web.Request, _address: Address) -> web.StreamResponse:
        await front.admit_to_job(request, LEVEL)
        raise RequestRefused(
            403,
            ProblemCode.NOT_PERMITTED,
            "pages of jobs are shown in no browser that is signed in here: programs show a token in the header Authorization",
        )

    Landing(tunnels, tickets, parts.limits).add_to(application)
    requests.add_to(application, by_browser)
    rt.loop(uses.watch(), name="uses of services")
    rt.loop(tunnels.watch_tickets(), name="tickets of tunnels")

    async def end(_application: web.Application) -> None:
        uses.end_all()
        tunnels.close_all(_ENDS)

    application.on_shutdown.append(end)
    return PublishedParts(tunnels, uses, access, requests)
