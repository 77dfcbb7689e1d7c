"""
Traces and metrics: a narrow front that costs nothing where nobody looks.

Metrics are those of `kettle_wire.telemetry`. Without settings that ask for them every call here is a few attribute look-ups;
the OpenTelemetry libraries are imported only where traces or metrics go to a collector.  The context of a trace travels as the W3C `traceparent` header, in messages and in the metadata
of events, so that the life of one job is one trace however many processes it passes.
"""

from __future__ import annotations

import asyncio
import threading
from contextlib import nullcontext, suppress
from typing import TYPE_CHECKING, Final, Literal, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, MutableMapping
    from contextlib import AbstractContextManager

    from kettle.runtime.measurements import Measurements, Read
    from kettle_wire.telemetry.declaration import Metric

Value = str | bool | int | float
Kind = Literal["internal", "server", "client", "producer", "consumer"]

SHUTDOWN_S: Final = 5.0


class Span(Protocol):
    """A piece of work under measurement."""

    def set(self, name: str, value: Value) -> None:
        """Note a fact about the work."""
        ...


class Counter(Protocol):
    """A sum that only grows."""

    def add(self, amount: float = 1, *labels: str) -> None:
        """Count; `labels` are the values of the metric's attributes, in their order."""
        ...


class Histogram(Protocol):
    """A distribution of measured values."""

    def record(self, value: float, *labels: str) -> None:
        """Note one measurement; `labels` as in `Counter.add`."""
        ...


class Telemetry:
    """Telemetry that goes nowhere; see `kettle.runtime.exporting` for one that goes somewhere."""

    enabled: bool = False
    """Whether traces go somewhere."""
    measurements: Measurements | None = None
    """What is measured; None: nobody wants to know."""

    def span(
        self,
        name: str,
        *,
        parent: Mapping[str, str] | None = None,
        kind: Kind = "internal",
        **attributes: Value,
    ) -> AbstractContextManager[Span]:
        """
        Measure the body of a `with` block; an exception that leaves it is recorded.

        `parent` are the headers of the message or the metadata of the event that caused the work; without it the
        span belongs to the one around it, and without one around it, it begins a trace.
        """
        return _NOTHING_AROUND

    def finished(
        self, name: str, *, began: float, ended: float, parent: Mapping[str, str], **attributes: Value
    ) -> None:
        """
        Report something that was not done inside of one `with` block; times are seconds since the epoch.
        """

    def inject(self, headers: MutableMapping[str, str]) -> None:
        """Add the `traceparent` of the current span, if there is one."""

    def extract(self, headers: Mapping[str, str]) -> dict[str, str]:
        """The part of a message's headers that carries a trace on, to be kept in an event's metadata."""
        return {name: headers[name] for name in ("traceparent", "tracestate") if name in headers}

    def counter(self, metric: Metric) -> Counter:
        """The instrument of a sum."""
        return self.measurements.counter(metric) if self.measurements else _NOTHING

    def histogram(self, metric: Metric) -> Histogram:
        """The instrument of a distribution."""
        return self.measurements.histogram(metric) if self.measurements else _NOTHING

    def observe(self, metric: Metric, read: Read) -> None:
        """
        A gauge or a counter that is read, on the event loop, whenever somebody asks for metrics.

        `read` gives the value, or one for each series by the values of its attributes, or what has to be awaited for that.
        """
        if self.measurements:
            self.measurements.observe(metric, read)

    async def shutdown(self) -> None:
        """Export what is left, and wait for that no longer than a few seconds."""


class _Nothing:
    """Takes every measurement and keeps none."""

    def set(self, name: str, value: Value) -> None:
        pass

    def add(self, amount: float = 1, *labels: str) -> None:
        pass

    def record(self, value: float, *labels: str) -> None:
        pass


class MeasuringTelemetry(Telemetry):
    """Metrics for whoever asks this process, and no traces."""

    def __init__(self, measurements: Measurements) -> None:
        self.measurements = measurements


_NOTHING: Final = _Nothing()
_NOTHING_AROUND: Final[AbstractContextManager[Span]] = nullcontext(_NOTHING)


async def shutdown_in_time(shutdown: Callable[[], object]) -> None:
    """
    Run a blocking export for at most `SHUTDOWN_S` seconds: a dead collector must not keep us alive.

    The thread is one that the end of the process does not wait for; those of the default executor are.
    """
    loop = asyncio.get_running_loop()
    finished = asyncio.Event()

    def export() -> None:
        shutdown()
        with suppress(RuntimeError):  # the loop has closed meanwhile
            loop.call_soon_threadsafe(finished.set)

    threading.Thread(target=export, name="last export", daemon=True).start()
    with suppress(TimeoutError):
        async with asyncio.timeout(SHUTDOWN_S):
            await finished.wait()
