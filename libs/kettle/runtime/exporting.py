"""Whether traces and metrics leave the process: as the settings say."""

from kettle.runtime.settings import Settings
from kettle.runtime.telemetry import MeasuringTelemetry, Telemetry


def telemetry_of(role: str, settings: Settings) -> Telemetry:
    """
    The telemetry that the settings ask for; only one that goes to a collector loads the OpenTelemetry libraries.
    """
    if settings.otlp_endpoint or settings.trace_file:
        from kettle.runtime.otel import Exported

        return Exported(role, settings)
    if settings.measured():
        from kettle.runtime.measurements import Measurements

        return MeasuringTelemetry(Measurements())
    return Telemetry()
