"""How published services hang together."""

from typing import Final

import msgspec
from aiohttp import web

from kettle.bus.ports import Bus
from kettle.runtime import Runtime
from kettle_services.gateway.pages.serving import Pages
from kettle_services.gateway.published.http_proxy import HttpProxy
from kettle_services.gateway.published.job_lookup import JobLookup
from kettle_services.gateway.published.landing import Landing, Tickets
from kettle_services.gateway.published.service_access import ServiceAccess
from kettle_services.gateway.published.service_requests import ServiceRequests
from kettle_services.gateway.published.tunnels import Tunnels
from kettle_services.gateway.published.uses import Uses
from kettle_services.gateway.rest.application import Front
from kettle_services.gateway.rest.wiring import RestParts
from kettle_services.gateway.sessions.origins import Origins
from kettle_services.gateway.settings import GatewaySettings

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
    access = ServiceAccess(front, JobLookup(bus, parts.tables), tunnels)
    proxy = HttpProxy(settings.service_patience)
    requests = ServiceRequests(access, proxy, uses, parts.limits, origins, pages.prefix_of)
    Landing(tunnels, tickets, parts.limits).add_to(application)
    requests.add_to(application, _by_browser)
    rt.loop(uses.watch(), name="uses of services")
    rt.loop(tunnels.watch_tickets(), name="tickets of tunnels")

    async def end(_application: web.Application) -> None:
        uses.end_all()
        tunnels.close_all(_ENDS)

    application.on_shutdown.append(end)
    return PublishedParts(tunnels, uses, access, requests)
