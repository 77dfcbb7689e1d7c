"""Whether traces and metrics leave the process: as the settings say."""

from kettle.runtime.settings import Settings
from kettle.runtime.telemetry import Telemetry


def telemetry_of(role: str, settings: Settings) -> Telemetry:
    """
    The telemetry that the settings ask for; only one that goes somewhere loads the OpenTelemetry libraries.
    """
    if not settings.otlp_endpoint and not settings.trace_file:
        return Telemetry()
    from kettle.runtime.otel import Exported

    return Exported(role, settings)
