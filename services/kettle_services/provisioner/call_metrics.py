"""What a provisioner measures of its providers."""

import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Literal

from kettle.runtime import Telemetry
from kettle_services.provisioner.hosted import Hosted
from kettle_services.provisioner.port import ProviderError
from kettle_wire.telemetry.worker_pool_metrics import PROVIDER_CALLS, PROVIDER_RATE, PROVIDERS_USABLE

Call = Literal["check", "console", "create", "delete", "find", "get", "room", "switch"]


class CallMetrics:
    """How long calls take, and how they end."""

    def __init__(self, telemetry: Telemetry, hosted: Mapping[str, Hosted]) -> None:
        self._durations = telemetry.histogram(PROVIDER_CALLS)
        telemetry.observe(PROVIDER_RATE, lambda: {(each.name,): each.pace.rate for each in hosted.values()})
        telemetry.observe(
            PROVIDERS_USABLE,
            lambda: {(each.name,): float(each.provider is not None) for each in hosted.values()},
        )

    @contextmanager
    def measured(self, provider: str, call: Call) -> Generator[None]:
        """Measure the call in the body; its errors pass through."""
        began, outcome = time.monotonic(), "unknown"
        try:
            yield
            outcome = "done"
        except ProviderError:
            outcome = "refused"
            raise
        finally:
            self._durations.record(time.monotonic() - began, provider, call, outcome)
