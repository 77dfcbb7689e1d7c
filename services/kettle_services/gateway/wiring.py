"""How the parts of a gateway hang together."""

from typing import TYPE_CHECKING

from kettle.bus.nats import NatsBus
from kettle.runtime import Runtime
from kettle.runtime.pool_connections import join_bus
from kettle_services.gateway.event_stream import FanOut
from kettle_services.gateway.metrics import Metrics
from kettle_services.gateway.public_documents import LONGEST_LINE, add_documents
from kettle_services.gateway.settings import GatewaySettings
from kettle_wire.subjects import Subjects

if TYPE_CHECKING:
    import ssl


async def serve(rt: Runtime, settings: GatewaySettings) -> None:
    """Follow all shards, publish their events, until the process is asked to stop."""
    bus = await join_bus(rt, settings)
    tally = Metrics()
    fan_out = FanOut(bus, Subjects(settings.pool), settings, tally)
    rt.loop(fan_out.run(), name="fan-out")
    rt.readiness("fan-out", lambda: fan_out.running)
    if settings.http_port or settings.rest:
        await _serve_http(rt, settings, bus, tally)
    await fan_out.began.wait()
    rt.ready()
    await rt.stopping.wait()


async def _serve_http(rt: Runtime, settings: GatewaySettings, bus: NatsBus, tally: Metrics) -> None:
    from aiohttp import web  # 0.1 s to import, and most gateways have no port

    from kettle.runtime.http_server import serving

    port = settings.http_port
    if settings.rest:
        from kettle.auth.private_files import private_directory
        from kettle.embedded.ports import kept_port
        from kettle_services.gateway.pages.wiring import people_and_programs
        from kettle_services.gateway.rest.wiring import directory, rest_parts

        application = people_and_programs(rt, settings, await rest_parts(rt, settings, bus))
        port = port or kept_port(private_directory(directory(settings)) / "port")
    else:
        application = web.Application()
    add_documents(application, tally, settings.nats_ca)
    rt.add_health(application)
    encryption = _encryption(rt, settings) if settings.http_certificate else None
    await rt.enter(
        serving(
            application,
            settings.http_host,
            port,
            encryption,
            max_line_size=LONGEST_LINE,
            max_field_size=LONGEST_LINE,
        )
    )


def _encryption(rt: Runtime, settings: GatewaySettings) -> "ssl.SSLContext":
    from kettle.runtime.tls_listener import tls_context  # few gateways have a certificate

    return tls_context(
        rt,
        certificate=settings.http_certificate,
        key=settings.http_key,
        client_ca=settings.http_client_ca,
    )
