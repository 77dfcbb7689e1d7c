"""
How what a gateway answers over HTTP hangs together: the REST interface, pages, and the sessions of browsers.
"""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aiohttp import web

from kettle.bus.ports import Bus, Served
from kettle.runtime import Runtime, SettingsError
from kettle.runtime.people import People
from kettle_services.gateway.pages.live import LiveParts, Watch
from kettle_services.gateway.pages.page import Page
from kettle_services.gateway.pages.periodic_watch import PeriodicWatch
from kettle_services.gateway.pages.questions import Questions
from kettle_services.gateway.pages.serving import Pages
from kettle_services.gateway.pages.table_watch import TableWatch
from kettle_services.gateway.pages.task_queues.list_page import TASK_QUEUES
from kettle_services.gateway.pages.task_queues.queue_page import TASK_QUEUE
from kettle_services.gateway.pages.wiring import PAGES, page_handlers
from kettle_services.gateway.pages.work_sessions.list_page import SESSIONS
from kettle_services.gateway.pages.work_sessions.session_page import SESSION
from kettle_services.gateway.pages.workflows.watching import WorkflowWatch
from kettle_services.gateway.pages.workflows.workflow_page import WORKFLOW, ShowWorkflow
from kettle_services.gateway.published.tickets import TicketOffice
from kettle_services.gateway.published.wiring import PublishedServices
from kettle_services.gateway.rest.application import Asked, Front
from kettle_services.gateway.rest.mcp.serving import ModelContext
from kettle_services.gateway.rest.streams import Streams
from kettle_services.gateway.rest.wiring import RestParts, directory, rest_parts
from kettle_services.gateway.sessions.browser_sessions import BrowserSessions
from kettle_services.gateway.sessions.links import Links
from kettle_services.gateway.sessions.links_by_bus import LinksByBus
from kettle_services.gateway.sessions.login import Login
from kettle_services.gateway.sessions.oidc.provider import Provider
from kettle_services.gateway.sessions.oidc.routes import IssuerLogin
from kettle_services.gateway.sessions.origins import Origins
from kettle_services.gateway.sessions.own_sessions import OwnSessions
from kettle_services.gateway.sessions.session_table import Lives, SessionTable
from kettle_services.gateway.settings import GatewaySettings, LoginIssuer
from kettle_services.gateway.terminals.serving import Terminals
from kettle_wire.rest.problem import Problem

if TYPE_CHECKING:
    from kettle_services.gateway.published.by_name import ServicesByName


async def http_application(
    rt: Runtime, settings: GatewaySettings, bus: Bus, people: People, url: str, services_url: str
) -> tuple[web.Application, web.Application, list[Served[Any, Any]]]:
    """
    The application, that of the origin of jobs, and what is answered over the bus; what they need is closed with the service. `url`:
    where browsers find the first one, `services_url` the second one.

    Raises SettingsError: what the settings say of people cannot be used.
    """
    parts = await rest_parts(rt, settings, bus, people)
    table, links = SessionTable(Lives(settings.session_life, settings.session_idle)), Links()
    origins = Origins(settings.public_url, frozenset(settings.proxies))
    sessions = BrowserSessions(table, origins, parts.persons)
    handlers = {**parts.handlers, **OwnSessions(table, links).handlers()}
    pages = Pages(PAGES, pool=settings.pool, prefix=settings.prefix, proxies=settings.proxies)
    issuers = _issuers(settings, parts, sessions, url)
    login = Login(sessions, links, parts.persons, parts.limits, issuers)

    def twin(request: web.Request, problem: Problem) -> web.Response | None:
        if problem.status == 401:
            return login.instead(request, problem, pages.login)
        return pages.problem(request, problem)

    front = Front(parts.persons, parts.limits, sessions, twin, pages.prefix_of)
    tickets = TicketOffice(bus, directory(settings), pool=settings.pool, url=url, ca=_authority(settings))
    published = PublishedServices(
        settings,
        bus,
        parts,
        front,
        pages,
        origins,
        tickets,
        table,
        url,
        services_url,
        _by_name(rt, settings),
    )
    handlers |= published.handlers()
    application = front.application(handlers)
    await published.add_to(application, rt)
    ModelContext(front, handlers).add_to(application)
    login.add_to(application, pages.login)
    watch = TableWatch(parts.tables, parts.hub)
    rt.loop(watch.run(), name="watched tables")
    shown = page_handlers(Questions(handlers, front.require), settings.documentation_url)
    watched = Streams(settings.rest_streams, settings.rest_streams_of_one)
    for streams in (parts.streams, watched):
        streams.end_with(application)
    Terminals(front, parts.people, parts.past, origins, watched).add_to(application)

    def watch_of(asked: Asked) -> WorkflowWatch:
        wanted: ShowWorkflow = asked.parameters
        return WorkflowWatch(parts.workflows, asked, wanted.id, watch)

    def look_again(_asked: Asked) -> PeriodicWatch:
        return PeriodicWatch()

    watches: dict[Page, Callable[[Asked], Watch]] = {
        WORKFLOW: watch_of,
        SESSIONS: look_again,
        SESSION: look_again,
        TASK_QUEUES: look_again,
        TASK_QUEUE: look_again,
    }
    pages.add_to(application, front, shown, LiveParts(watch, watched), watches)
    if settings.prominence:
        from kettle_services.gateway.prominence.wiring import add_prominence  # few gateways have it

        await add_prominence(rt, application, settings, bus, parts, url)
    return (
        application,
        published.pages.application(),
        [*LinksByBus(links, parts.persons, url).served(), *published.served()],
    )


def _by_name(rt: Runtime, settings: GatewaySettings) -> "ServicesByName | None":
    """What programs reach by TLS; raises SettingsError: what it needs cannot be used."""
    if not settings.services_domain:
        return None
    from kettle_services.gateway.published.by_name import ServicesByName  # few gateways have it

    return ServicesByName(rt, settings, directory(settings), _authority(settings))


def _authority(settings: GatewaySettings) -> str:
    """
    The certificate of the pool's own authority, from which that of the gateway may come; raises SettingsError.
    """
    if not (settings.http_certificate and settings.nats_ca):
        return ""
    try:
        return Path(settings.nats_ca).read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError) as error:
        said = getattr(error, "strerror", "") or str(error)
        raise SettingsError(f"nats_ca {settings.nats_ca} cannot be read: {said}") from error


def _issuers(
    settings: GatewaySettings, parts: RestParts, sessions: BrowserSessions, url: str
) -> IssuerLogin | None:
    """Where people can sign in; raises SettingsError: the secret of a client cannot be read."""
    trust = parts.trust
    if not settings.login or trust is None:
        return None
    back = f"{url}/login/return"
    providers = {
        each.issuer: Provider(each, _secret(each), trust.fetcher, trust.keys, trust.verifier, back)
        for each in settings.login
    }
    return IssuerLogin(providers, trust.keys, sessions, parts.persons, parts.limits, url)


def _secret(login: LoginIssuer) -> str:
    if not login.secret_file:
        return ""
    try:
        return Path(login.secret_file).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        said = getattr(error, "strerror", "") or str(error)
        raise SettingsError(f"login: secret_file {login.secret_file} cannot be read: {said}") from error
