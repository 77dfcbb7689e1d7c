import asyncio
import gzip
import http.server
import json
import threading
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest

from kettle.runtime import Settings, Telemetry, telemetry
from kettle.runtime.exporting import telemetry_of
from kettle.testing.patience import PATIENCE_S
from kettle_wire.telemetry import process_metrics, queue_metrics


def spans(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


async def test_one_job_is_one_trace_over_two_services(tmp_path: Path) -> None:
    """The context that one service puts into headers makes the other's span part of the same trace."""
    path = tmp_path / "trace.jsonl"
    schedd = telemetry_of("schedd", Settings(trace_file=str(path)))
    shadow = telemetry_of("shadow", Settings(trace_file=str(path)))
    headers: dict[str, str] = {"other": "kept"}

    with schedd.span("submit", kind="server", cluster=7) as span:
        span.set("procs", 2)
        schedd.inject(headers)
    metadata = shadow.extract(headers)
    with shadow.span("run", parent=metadata):
        pass
    await asyncio.gather(schedd.shutdown(), shadow.shutdown())

    submit, run = spans(path)
    assert {"traceparent"} == set(metadata)
    assert submit["trace"] == run["trace"]
    assert submit["span"] == run["parent"]
    assert {"cluster": 7, "procs": 2} == submit["attributes"]
    assert (submit["role"], run["role"], submit["parent"]) == ("schedd", "shadow", "")


async def test_failure_is_recorded_and_goes_on(tmp_path: Path) -> None:
    """An exception leaves the span and marks it."""
    path = tmp_path / "trace.jsonl"
    schedd = telemetry_of("schedd", Settings(trace_file=str(path)))
    with pytest.raises(ValueError, match="boom"), schedd.span("submit"):
        raise ValueError("boom")
    await schedd.shutdown()
    assert [span["status"] for span in spans(path)] == ["error"]


async def test_off_it_does_nothing_but_passes_contexts_on() -> None:
    """Without an exporter spans and instruments take everything, and a trace passes through unharmed."""
    off = telemetry_of("schedd", Settings())
    assert type(off) is Telemetry
    headers: dict[str, str] = {}
    with off.span("submit", cluster=7) as span:
        span.set("a", 1)
        off.inject(headers)
        off.counter(process_metrics.COMMAND_REFUSALS).add(2, "hold", "denied")
        off.histogram(queue_metrics.JOB_WAIT).record(0.1)
        off.observe(queue_metrics.CLAIMS, lambda: 1.0)
    await off.shutdown()
    assert headers == {}
    assert {"traceparent": "00-x"} == off.extract({"traceparent": "00-x", "a": "b"})


async def test_traces_and_metrics_reach_a_collector(monkeypatch: pytest.MonkeyPatch) -> None:
    """With an endpoint, spans and metrics are posted over OTLP at the latest when the service ends."""
    monkeypatch.setattr(telemetry, "SHUTDOWN_S", PATIENCE_S)
    posted: dict[str, bytes] = {}

    class Collector(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            data = self.rfile.read(int(self.headers["Content-Length"]))
            posted[self.path] = gzip.decompress(data) if self.headers["Content-Encoding"] == "gzip" else data
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Collector) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            on = telemetry_of("schedd", Settings(otlp_endpoint=f"http://127.0.0.1:{server.server_port}"))
            on.counter(process_metrics.COMMAND_REFUSALS).add(2, "hold", "denied")
            on.histogram(process_metrics.COMMAND_DURATION).record(0.1, "hold", "done")
            on.observe(queue_metrics.CLAIMS, lambda: 3.0)
            with on.span("submit"):
                pass
            await on.shutdown()
        finally:
            server.shutdown()
            thread.join()
    assert ["/v1/metrics", "/v1/traces"] == sorted(posted)
    request = ExportMetricsServiceRequest.FromString(posted["/v1/metrics"])
    measured = {each.name: each for each in request.resource_metrics[0].scope_metrics[0].metrics}
    assert {"kettle.command.refusals", "kettle.command.duration", "kettle.schedd.claims"} == set(measured)
    [refusals] = measured["kettle.command.refusals"].sum.data_points
    assert 2.0 == refusals.as_double
    assert {"endpoint": "hold", "code": "denied"} == {
        each.key: each.value.string_value for each in refusals.attributes
    }
    assert measured["kettle.command.refusals"].sum.is_monotonic
    [durations] = measured["kettle.command.duration"].histogram.data_points
    assert (1, 0.1, "s") == (durations.count, durations.sum, measured["kettle.command.duration"].unit)
    assert not durations.HasField("max")
    assert [3.0] == [point.as_double for point in measured["kettle.schedd.claims"].gauge.data_points]


async def test_dead_collector_does_not_hold_the_end_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last export is given up after a few seconds."""
    monkeypatch.setattr(telemetry, "SHUTDOWN_S", 0.02)
    never = threading.Event()
    async with asyncio.timeout(PATIENCE_S):
        await telemetry.shutdown_in_time(never.wait)
    never.set()
