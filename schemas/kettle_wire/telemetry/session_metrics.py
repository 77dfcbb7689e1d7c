"""What the service of interactive sessions measures; `metrics.METRICS` has it among all others."""

from typing import Final

from kettle_wire.telemetry.declaration import Attribute, Metric

INTERACTIVE_SESSIONS: Final = Metric(
    name="kettle.sessions.sessions",
    kind="gauge",
    unit="{session}",
    meaning="Interactive sessions that are not over.",
    services=("sessions",),
    attributes=(
        Attribute(name="kind", meaning="`dask`, `notebook` or `process`."),
        Attribute(name="state", meaning="`SessionState`."),
    ),
    when="an interactive session",
)
INTERACTIVE_WORKERS: Final = Metric(
    name="kettle.sessions.workers",
    kind="gauge",
    unit="{worker}",
    meaning="Workers of interactive sessions that are not over.",
    services=("sessions",),
    attributes=(Attribute(name="state", meaning="`wanted`, `running` or `waiting`."),),
)
METRICS: Final = tuple(value for value in list(globals().values()) if isinstance(value, Metric))
"""All of them, in the order of this module."""
