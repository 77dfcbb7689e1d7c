"""How the parts of a gateway hang together."""

import socket
from typing import TYPE_CHECKING, Any, Final

from kettle import VERSION
from kettle.bus.nats import NatsBus
from kettle.bus.ports import Served
from kettle.runtime import Runtime
from kettle.runtime.people import People
from kettle.runtime.pool_connections import join_bus
from kettle.runtime.telemetry_settings import LOOPBACK
from kettle_services.gateway.event_stream import FanOut
from kettle_services.gateway.metrics import Metrics
from kettle_services.gateway.no_pages import NO_PAGES
from kettle_services.gateway.public_documents import LONGEST_LINE, add_counts, add_documents
from kettle_services.gateway.settings import GatewaySettings
from kettle_wire.subjects import Subjects

if TYPE_CHECKING:
    import ssl


_EVERYWHERE: Final = frozenset({"", "0.0.0.0", "::"})  # noqa: S104 - somebody's setting, and no address that we bind
_LIMITS: Final[dict[str, Any]] = {"max_line_size": LONGEST_LINE, "max_field_size": LONGEST_LINE}


async def serve(rt: Runtime, settings: GatewaySettings) -> None:
    """Follow all shards, publish their events, until the process is asked to stop."""
    bus = await join_bus(rt, settings, people=(people := People()))
    tally = Metrics(rt.telemetry)
    fan_out = FanOut(bus, Subjects(settings.pool), settings, tally)
    rt.loop(fan_out.run(), name="fan-out")
    rt.readiness("fan-out", lambda: fan_out.running)
    served = NO_PAGES
    if settings.http_port or settings.rest:
        await people.heard.wait()  # before anybody is believed
        served = await _serve_http(rt, settings, bus, people)
    await bus.serve("gateway", "gateway", served, version=VERSION, shared=True)
    await fan_out.began.wait()
    rt.ready()
    await rt.stopping.wait()


async def _serve_http(
    rt: Runtime, settings: GatewaySettings, bus: NatsBus, people: People
) -> list[Served[Any, Any]]:
    """What is answered over the bus about it."""
    from aiohttp import web  # 0.1 s to import, and most gateways have no port

    from kettle.runtime.http_server import serving
    from kettle.runtime.metrics_port import key_of
    from kettle_services.gateway.request_metrics import measured
    from kettle_services.gateway.security_headers import add_security_headers

    served, port, private = NO_PAGES, settings.http_port, None
    of_jobs: web.Application | None = None
    services_port = 0
    if settings.rest:
        from kettle.auth.private_files import private_directory
        from kettle.embedded.ports import kept_port
        from kettle_services.gateway.http_application import http_application
        from kettle_services.gateway.rest.wiring import SOCKET, directory

        place = private_directory(directory(settings))
        port = port or kept_port(place / "port")
        private = place / SOCKET
        services_port = settings.services_port or kept_port(place / "services_port")
        application, of_jobs, served = await http_application(
            rt, settings, bus, people, address(settings, port), services_address(settings, services_port)
        )
    else:
        application = web.Application()
    assert rt.telemetry.measurements is not None, "a gateway with a port is measured"
    add_documents(application, settings.nats_ca)
    add_counts(application, rt.telemetry.measurements, key_of(settings.telemetry), settings.http_host)
    rt.add_health(application)
    add_security_headers(application)
    application.middlewares.insert(0, measured(rt.telemetry))
    encryption = _encryption(rt, settings) if settings.http_certificate else None
    if of_jobs is not None:
        await rt.enter(serving(of_jobs, settings.http_host, services_port, encryption, **_LIMITS))
    await rt.enter(
        serving(
            application,
            settings.http_host,
            port,
            encryption,
            private=private,
            **_LIMITS,
        )
    )
    return served


def address(settings: GatewaySettings, port: int) -> str:
    """Where browsers find it: on all addresses of a machine under the machine's name."""
    if settings.public_url:
        return settings.public_url.rstrip("/")
    scheme = "https" if settings.http_certificate else "http"
    host = socket.getfqdn() if settings.http_host in _EVERYWHERE else settings.http_host
    return f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}"


def services_address(settings: GatewaySettings, port: int) -> str:
    """Where browsers find pages of jobs, with a star for the job where each has a host of its own."""
    if settings.services_url:
        return settings.services_url.rstrip("/")
    if settings.http_host in LOOPBACK and not settings.public_url and not settings.http_certificate:
        return f"http://*.localhost:{port}"
    scheme = "https" if settings.http_certificate else "http"
    host = socket.getfqdn() if settings.http_host in _EVERYWHERE else settings.http_host
    return f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}"


def _encryption(rt: Runtime, settings: GatewaySettings) -> "ssl.SSLContext":
    from kettle.runtime.tls_listener import tls_context  # few gateways have a certificate

    return tls_context(
        rt,
        certificate=settings.http_certificate,
        key=settings.http_key,
        client_ca=settings.http_client_ca,
    )
