"""
Telemetry through the OpenTelemetry SDK.  Imported only where an exporter is configured: the SDK costs 0.1 s.
"""

import os
from collections.abc import Generator, Mapping, MutableMapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

import msgspec
from opentelemetry import trace
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import (
    BatchSpanProcessor,
    SimpleSpanProcessor,
    SpanExporter,
    SpanExportResult,
)
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from kettle.runtime.measurements import Measurements
from kettle.runtime.settings import Settings
from kettle.runtime.telemetry import Kind, Span, Telemetry, Value, shutdown_in_time

if TYPE_CHECKING:
    from kettle.runtime.otlp_metrics import MetricsExport

_KINDS: Final[Mapping[Kind, trace.SpanKind]] = {
    "internal": trace.SpanKind.INTERNAL,
    "server": trace.SpanKind.SERVER,
    "client": trace.SpanKind.CLIENT,
    "producer": trace.SpanKind.PRODUCER,
    "consumer": trace.SpanKind.CONSUMER,
}


class Exported(Telemetry):
    """Traces and metrics that leave the process: to a collector over OTLP, or as lines of a file."""

    enabled = True

    def __init__(self, role: str, settings: Settings) -> None:
        resource = Resource.create(
            {
                "service.name": f"kettle-{role}",
                "service.namespace": f"kettle.{settings.pool}",
                "service.instance.id": f"{os.uname().nodename}:{os.getpid()}",
            }
        )
        self._traces = TracerProvider(resource=resource, shutdown_on_exit=False)
        self.measurements = Measurements()
        self._metrics: MetricsExport | None = None
        if settings.trace_file:
            self._traces.add_span_processor(SimpleSpanProcessor(SpanFile(Path(settings.trace_file), role)))
        if settings.otlp_endpoint:
            from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

            from kettle.runtime import otlp_metrics

            endpoint = settings.otlp_endpoint.rstrip("/")
            exporter = OTLPSpanExporter(endpoint=f"{endpoint}/v1/traces")
            self._traces.add_span_processor(BatchSpanProcessor(exporter))
            self._metrics = otlp_metrics.MetricsExport(
                self.measurements, resource, endpoint=f"{endpoint}/v1/metrics"
            )
        self._tracer = self._traces.get_tracer("kettle")
        self._propagator = TraceContextTextMapPropagator()

    def span(
        self,
        name: str,
        *,
        parent: Mapping[str, str] | None = None,
        kind: Kind = "internal",
        **attributes: Value,
    ) -> AbstractContextManager[Span]:
        """See `Telemetry.span`."""
        return self._span(name, parent, kind, attributes)

    @contextmanager
    def _span(
        self, name: str, parent: Mapping[str, str] | None, kind: Kind, attributes: Mapping[str, Value]
    ) -> Generator[Span]:
        around = self._propagator.extract(parent) if parent else None
        with self._tracer.start_as_current_span(
            name, context=around, kind=_KINDS[kind], attributes=attributes
        ) as span:
            yield _Span(span)

    def finished(
        self, name: str, *, began: float, ended: float, parent: Mapping[str, str], **attributes: Value
    ) -> None:
        """See `Telemetry.finished`."""
        span = self._tracer.start_span(
            name,
            context=self._propagator.extract(parent),
            attributes=attributes,
            start_time=int(began * 1e9),
        )
        span.end(int(ended * 1e9))

    def inject(self, headers: MutableMapping[str, str]) -> None:
        """See `Telemetry.inject`."""
        self._propagator.inject(headers)

    async def shutdown(self) -> None:
        """See `Telemetry.shutdown`."""
        await shutdown_in_time(self._traces.shutdown)
        if self._metrics is not None:
            await self._metrics.close()


class _Span:
    def __init__(self, span: trace.Span) -> None:
        self._span = span

    def set(self, name: str, value: Value) -> None:
        self._span.set_attribute(name, value)


class SpanFile(SpanExporter):
    """
    Finished spans as JSON lines: `trace span parent role name start end status attributes`.

    Every line is one write to a file opened for appending, so that several services may share the file, and none is
    buffered, so that the spans of a service that is killed a moment later are not lost.
    """

    def __init__(self, path: Path, role: str) -> None:
        self._fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._role = role

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Append the spans."""
        try:
            for span in spans:
                os.write(self._fd, msgspec.json.encode(self._line(span), enc_hook=repr) + b"\n")
        except OSError:
            return SpanExportResult.FAILURE
        return SpanExportResult.SUCCESS

    def _line(self, span: ReadableSpan) -> dict[str, object]:
        context = cast("trace.SpanContext", span.get_span_context())
        return {
            "trace": f"{context.trace_id:032x}",
            "span": f"{context.span_id:016x}",
            "parent": f"{span.parent.span_id:016x}" if span.parent else "",
            "role": self._role,
            "name": span.name,
            "start": (span.start_time or 0) / 1e9,
            "end": (span.end_time or 0) / 1e9,
            "status": span.status.status_code.name.lower(),
            "attributes": dict(span.attributes or {}),
        }

    def shutdown(self) -> None:
        """Close the file."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
