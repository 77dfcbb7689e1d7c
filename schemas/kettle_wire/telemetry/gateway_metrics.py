"""What the gateway measures."""

from typing import Final

from kettle_wire.telemetry.declaration import Attribute, Metric

PUBLISHED: Final = Metric(
    name="kettle.gateway.events",
    kind="counter",
    unit="{event}",
    meaning="Events that were published for monitoring.",
    services=("gateway",),
    attributes=(Attribute(name="kind", meaning="`noun.verb`."),),
    when="a recorded event",
)
PUBLISHED_FRAME: Final = Metric(
    name="kettle.gateway.frame",
    kind="gauge",
    unit="{frame}",
    meaning="The last frame of a shard of which events were published.",
    services=("gateway",),
    attributes=(Attribute(name="shard", meaning="The shard of the log."),),
    most=1000,
    when="a recorded event",
)
PUBLISHED_DELAY: Final = Metric(
    name="kettle.gateway.delay",
    kind="histogram",
    unit="s",
    meaning="From the record of a frame to the publication of its events.",
    services=("gateway",),
)
STREAM_DELAY: Final = Metric(
    name="kettle.gateway.stream_delay",
    kind="histogram",
    unit="s",
    meaning="From the record of an event until it was sent to somebody who follows events over HTTP; of what is sent together, the oldest one.",
    services=("gateway",),
    when="an event for somebody who follows",
)
SESSIONS: Final = Metric(
    name="kettle.gateway.sessions",
    kind="counter",
    unit="{session}",
    meaning="How many sessions of publishing the gateway has started.",
    services=("gateway",),
)
HTTP_DURATION: Final = Metric(
    name="http.server.request.duration",
    kind="histogram",
    unit="s",
    meaning="Requests over HTTP, streams of events to their end.",
    services=("gateway",),
    attributes=(
        Attribute(name="http.request.method", meaning="The method."),
        Attribute(name="http.route", meaning="The route, with names in braces for its variables."),
        Attribute(name="http.response.status_code", meaning="The status."),
    ),
    most=600,
    when="a request to `http_port`, or to the REST interface",
)
TUNNELS: Final = Metric(
    name="kettle.gateway.tunnels",
    kind="gauge",
    unit="{tunnel}",
    meaning="Jobs that publish services through this gateway now.",
    services=("gateway",),
    when="`rest` of the gateway is switched on",
)
SERVICE_CONNECTIONS: Final = Metric(
    name="kettle.gateway.service_connections",
    kind="gauge",
    unit="{connection}",
    meaning="Connections of people to services of jobs that are open now.",
    services=("gateway",),
    attributes=(Attribute(name="via", meaning="`http`, `websocket`, `stream` or `tls`."),),
    when="`rest` of the gateway is switched on",
)
SERVICE_BYTES: Final = Metric(
    name="kettle.gateway.service_bytes",
    kind="counter",
    unit="By",
    meaning="Bytes that people and services of jobs have sent each other, over connections that have ended.",
    services=("gateway",),
    attributes=(Attribute(name="direction", meaning="`to_job` or `from_job`."),),
    when="a connection to a service of a job",
)
SERVICE_REFUSALS: Final = Metric(
    name="kettle.gateway.service_refusals",
    kind="counter",
    unit="{refusal}",
    meaning="How often somebody was not let in to the services of a job.",
    services=("gateway",),
    when="such a refusal",
)

METRICS: Final = tuple(value for value in list(globals().values()) if isinstance(value, Metric))
"""All of them, in the order of this module."""
