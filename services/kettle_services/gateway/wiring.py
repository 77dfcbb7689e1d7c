"""How the parts of a gateway hang together."""

from typing import TYPE_CHECKING

from kettle.runtime import Runtime
from kettle.runtime.pool_connections import join_bus
from kettle_services.gateway.event_stream import FanOut
from kettle_services.gateway.metrics import Metrics
from kettle_services.gateway.settings import GatewaySettings
from kettle_services.gateway.web import pages
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
    if settings.http_port:
        encryption = _encryption(rt, settings) if settings.http_certificate else None
        await rt.enter(pages(settings.http_host, settings.http_port, tally, encryption, settings.nats_ca))
    await fan_out.began.wait()
    rt.ready()
    await rt.stopping.wait()


def _encryption(rt: Runtime, settings: GatewaySettings) -> "ssl.SSLContext":
    from kettle.runtime.tls_listener import tls_context  # few gateways have a certificate

    return tls_context(
        rt,
        certificate=settings.http_certificate,
        key=settings.http_key,
        client_ca=settings.http_client_ca,
    )
