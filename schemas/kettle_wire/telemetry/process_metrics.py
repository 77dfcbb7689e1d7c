"""What each process measures, and what those do that are on the bus and own a log."""

from typing import Final

from kettle_wire.telemetry.declaration import Attribute, Metric

ALL: Final = (
    "accounting", "ce", "collector", "dagman", "gateway", "iam", "master", "negotiator", "provisioner", "scaler", "schedd", "sessions", "shadow",
    "startd",
)  # fmt: skip
_ON_THE_BUS: Final = tuple(role for role in ALL if role != "master")
_OWNERS: Final = ("ce", "collector", "dagman", "iam", "negotiator", "scaler", "schedd", "sessions")
_READERS_OF_EXPRESSIONS: Final = ("accounting", "ce", "collector", "negotiator", "scaler", "schedd", "startd")

# -- of each process -----------------------------------------------------------------------------------------------------

CPU_TIME: Final = Metric(
    name="process.cpu.time",
    kind="counter",
    unit="s",
    meaning="Seconds of a core that the process has used, in user and in system mode.",
    services=ALL,
)
MEMORY: Final = Metric(
    name="process.memory.usage",
    kind="gauge",
    unit="By",
    meaning="Resident memory of the process.",
    services=ALL,
)
OPEN_FILES: Final = Metric(
    name="process.open_file_descriptor.count",
    kind="gauge",
    unit="{file_descriptor}",
    meaning="Open file descriptors of the process.",
    services=ALL,
)
UPTIME: Final = Metric(
    name="process.uptime", kind="gauge", unit="s", meaning="Seconds since the service began.", services=ALL
)
LOOP_LAG: Final = Metric(
    name="kettle.event_loop.lag",
    kind="histogram",
    unit="s",
    meaning="How much later than asked for the event loop woke up, measured once in a second.",
    services=ALL,
)
READY: Final = Metric(
    name="kettle.service.ready",
    kind="gauge",
    unit="{service}",
    meaning="1 while the service does its work; 0 while it starts, stops or waits as a standby.",
    services=ALL,
)

# -- of the bus and the log ----------------------------------------------------------------------------------------------

_ENDPOINT: Final = Attribute(name="endpoint", meaning="The command's verb.")

BUS_CONNECTED: Final = Metric(
    name="kettle.bus.connected",
    kind="gauge",
    unit="{connection}",
    meaning="1 while there is a connection to NATS.",
    services=_ON_THE_BUS,
)
BUS_RECONNECTIONS: Final = Metric(
    name="kettle.bus.reconnections",
    kind="counter",
    unit="{connection}",
    meaning="How often a lost connection to NATS came back.",
    services=_ON_THE_BUS,
)
COMMAND_DURATION: Final = Metric(
    name="kettle.command.duration",
    kind="histogram",
    unit="s",
    meaning="From the arrival of a command to its answer, the commit of what it records included.",
    services=_ON_THE_BUS,
    attributes=(
        _ENDPOINT,
        Attribute(name="outcome", meaning="Whether it was carried out.", values=("done", "refused")),
    ),
    when="a command",
)
COMMAND_REFUSALS: Final = Metric(
    name="kettle.command.refusals",
    kind="counter",
    unit="{command}",
    meaning="Commands that were refused.",
    services=_ON_THE_BUS,
    attributes=(_ENDPOINT, Attribute(name="code", meaning="The refusal's code.")),
    when="a refusal",
)
APPEND_DURATION: Final = Metric(
    name="kettle.event_log.append.duration",
    kind="histogram",
    unit="s",
    meaning="One commit to the event log.",
    services=_OWNERS,
    when="a recorded event",
)
APPENDED_EVENTS: Final = Metric(
    name="kettle.event_log.events",
    kind="counter",
    unit="{event}",
    meaning="Events that were committed to the event log.",
    services=_OWNERS,
    when="a recorded event",
)
GIVEN_UP: Final = Metric(
    name="kettle.expression.given_up",
    kind="counter",
    unit="{evaluation}",
    meaning="Evaluations of expressions that would have taken too long.",
    services=_READERS_OF_EXPRESSIONS,
)

METRICS: Final = tuple(value for value in list(globals().values()) if isinstance(value, Metric))
"""All of them, in the order of this module."""
