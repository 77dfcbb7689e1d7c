"""
Traces and metrics: a narrow front over OpenTelemetry that costs nothing where nobody looks.

With no exporter configured the OpenTelemetry libraries are not even imported, and every call here is a few
attribute look-ups.  The context of a trace travels as the W3C `traceparent` header, in messages and in the metadata
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

    def add(self, amount: float = 1, **attributes: Value) -> None:
        """Count."""
        ...


class Histogram(Protocol):
    """A distribution of measured values."""

    def record(self, value: float, **attributes: Value) -> None:
        """Note one measurement."""
        ...


class Telemetry:
    """Telemetry that goes nowhere; see `kettle.runtime.exporting` for one that goes somewhere."""

    enabled: bool = False

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

    def counter(self, name: str, *, unit: str = "1", description: str = "") -> Counter:
        """A new sum."""
        return _NOTHING

    def histogram(self, name: str, *, unit: str = "s", description: str = "") -> Histogram:
        """A new distribution."""
        return _NOTHING

    def gauge(self, name: str, read: Callable[[], float], *, unit: str = "1", description: str = "") -> None:
        """A value that is read, from another thread, whenever metrics are exported."""

    async def shutdown(self) -> None:
        """Export what is left, and wait for that no longer than a few seconds."""


class _Nothing:
    """Takes every measurement and keeps none."""

    def set(self, name: str, value: Value) -> None:
        pass

    def add(self, amount: float = 1, **attributes: Value) -> None:
        pass

    def record(self, value: float, **attributes: Value) -> None:
        pass


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
