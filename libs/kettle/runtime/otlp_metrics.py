"""Measurements as OTLP: sent to a collector once in a minute, and at the end."""

import asyncio
import contextlib
import time
from collections.abc import Sequence
from typing import Final, cast

from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.sdk.metrics.export import (
    AggregationTemporality,
    Gauge,
    Histogram,
    HistogramDataPoint,
    Metric,
    MetricsData,
    NumberDataPoint,
    ResourceMetrics,
    ScopeMetrics,
    Sum,
)
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.util.instrumentation import InstrumentationScope

from kettle.runtime.measurements import Family, Labels, Measurements
from kettle.runtime.telemetry import shutdown_in_time

INTERVAL_S: Final = 60.0
_UNKNOWN: Final = cast("float", None)
"""Of a smallest or largest value: it is left out of what is sent."""


class MetricsExport:
    """Sends what is measured. A collector that cannot be reached delays nothing."""

    def __init__(self, measurements: Measurements, resource: Resource, *, endpoint: str) -> None:
        self._measurements = measurements
        self._resource = resource
        self._exporter = OTLPMetricExporter(endpoint=endpoint)
        self._sending = asyncio.create_task(self._send_forever(), name="metrics")

    async def close(self) -> None:
        """Send what is left, and wait for that no longer than a few seconds."""
        self._sending.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._sending
        last = await self._data()

        def export() -> None:
            self._exporter.export(last)
            self._exporter.shutdown()

        await shutdown_in_time(export)

    async def _send_forever(self) -> None:
        while True:
            await asyncio.sleep(INTERVAL_S)
            await asyncio.to_thread(self._exporter.export, await self._data())

    async def _data(self) -> MetricsData:
        families = await self._measurements.families()
        began, now = int(self._measurements.began * 1e9), time.time_ns()
        scope = ScopeMetrics(
            InstrumentationScope("kettle"), [_metric(each, began, now) for each in families], schema_url=""
        )
        return MetricsData([ResourceMetrics(self._resource, [scope], schema_url="")])


def _metric(family: Family, began: int, now: int) -> Metric:
    metric = family.metric
    names = tuple(attribute.name for attribute in metric.attributes)
    data: Sum | Gauge | Histogram
    match metric.kind:
        case "counter":
            data = Sum(
                _numbers(family, names, began, now), AggregationTemporality.CUMULATIVE, is_monotonic=True
            )
        case "gauge":
            data = Gauge(_numbers(family, names, began, now))
        case "histogram":
            data = Histogram(_distributions(family, names, began, now), AggregationTemporality.CUMULATIVE)
    return Metric(name=metric.name, description=metric.meaning, unit=metric.unit, data=data)


def _numbers(family: Family, names: Labels, began: int, now: int) -> Sequence[NumberDataPoint]:
    return [
        NumberDataPoint(dict(zip(names, labels, strict=True)), began, now, value)
        for labels, value in family.values.items()
    ]


def _distributions(family: Family, names: Labels, began: int, now: int) -> Sequence[HistogramDataPoint]:
    return [
        HistogramDataPoint(
            attributes=dict(zip(names, labels, strict=True)),
            start_time_unix_nano=began,
            time_unix_nano=now,
            count=each.count,
            sum=each.sum,
            bucket_counts=each.counts,
            explicit_bounds=family.metric.buckets,
            min=_UNKNOWN,
            max=_UNKNOWN,
        )
        for labels, each in family.buckets.items()
    ]
