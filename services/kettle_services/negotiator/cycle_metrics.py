"""What a negotiator measures."""

from kettle.runtime import Telemetry
from kettle_services.negotiator.domain.cycle import Outcome
from kettle_services.negotiator.domain.pool import Pool
from kettle_wire.telemetry import pool_metrics as metrics


class CycleMetrics:
    """Of its cycles, and of the demand that it knows."""

    def __init__(self, telemetry: Telemetry, pool: Pool) -> None:
        self._durations = telemetry.histogram(metrics.CYCLE_DURATION)
        self._matches = telemetry.counter(metrics.MATCHES)
        self._rejections = telemetry.counter(metrics.REJECTIONS)
        self._slots = self._idle = 0
        telemetry.observe(metrics.SUBMITTERS, lambda: len(pool.submitters))
        telemetry.observe(metrics.CANDIDATE_SLOTS, lambda: self._slots)
        telemetry.observe(metrics.IDLE_DEMAND, lambda: self._idle)

    def add(self, outcome: Outcome, duration: float) -> None:
        """Count a cycle that took so many seconds."""
        self._durations.record(duration)
        self._matches.add(len(outcome.matches))
        self._rejections.add(len(outcome.rejections))
        self._slots, self._idle = outcome.slots, outcome.idle
