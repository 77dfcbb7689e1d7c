"""Instruments, and what Prometheus reads of them."""

import asyncio
import math

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openly
from prometheus_client.parser import text_string_to_metric_families as parse

from kettle.runtime.exposition import OPEN_METRICS, PLAIN, content_type, exposition
from kettle.runtime.measurements import Measurements
from kettle_wire.telemetry.declaration import Attribute, Metric
from kettle_wire.telemetry.metrics import METRICS, of_service

REQUESTS = Metric(
    name="shop.requests",
    kind="counter",
    unit="{request}",
    meaning='What "people" ask \\ for.',
    services=("shop",),
    attributes=(Attribute(name="shop.word", meaning="Which."),),
    most=2,
)
SIZE = Metric(name="shop.size", kind="gauge", unit="By", meaning="How large.", services=("shop",))
TIME = Metric(
    name="shop.time", kind="histogram", unit="s", meaning="How long.", services=("shop",), buckets=(1.0, 2.0)
)


async def filled() -> Measurements:
    measurements = Measurements()
    requests = measurements.counter(REQUESTS)
    requests.add(2, 'a "quoted"\nword\\')
    requests.add(1, "b")
    measurements.observe(SIZE, lambda: 12)
    times = measurements.histogram(TIME)
    for value in (0.5, 1.0, 1.5, 9.0):
        times.record(value)
    return measurements


@pytest.mark.parametrize("kind", [PLAIN, OPEN_METRICS])
async def test_a_parser_of_prometheus_reads_what_was_measured(kind: str) -> None:
    """Both formats say the same, and are what the client of Prometheus understands."""
    families = await (await filled()).families()
    text = exposition(families, kind, target={"service_name": "kettle-shop"})
    read = list(parse_openly(text) if kind == OPEN_METRICS else parse(text))
    found = {(s.name, tuple(sorted(s.labels.items()))): s.value for family in read for s in family.samples}
    assert found == {
        ("target_info", (("service_name", "kettle-shop"),)): 1,
        ("shop_requests_total", (("shop_word", 'a "quoted"\nword\\'),)): 2,
        ("shop_requests_total", (("shop_word", "b"),)): 1,
        ("shop_size_bytes", ()): 12,
        ("shop_time_seconds_bucket", (("le", "1.0"),)): 2,
        ("shop_time_seconds_bucket", (("le", "2.0"),)): 3,
        ("shop_time_seconds_bucket", (("le", "+Inf"),)): 4,
        ("shop_time_seconds_sum", ()): 12.0,
        ("shop_time_seconds_count", ()): 4,
    }
    said = {family.name.removesuffix("_total"): family.documentation for family in read}
    assert said["shop_requests"] == REQUESTS.meaning
    if kind == OPEN_METRICS:
        assert ["bytes"] == [family.unit for family in read if family.name == "shop_size_bytes"]


async def test_series_are_bounded() -> None:
    """What would be one series too many is counted as `other`: no sender can fill the memory."""
    measurements = await filled()
    requests = measurements.counter(REQUESTS)
    for number in range(100):
        requests.add(1, f"made up {number}")
    [family] = [each for each in await measurements.families() if each.metric is REQUESTS]
    assert 3 == len(family.values)
    assert 100 == family.values["other",]
    assert 103 == sum(family.values.values())


async def test_a_value_that_nobody_gives_in_time_is_left_out() -> None:
    """A server that does not answer costs one metric, and neither the others nor the time of who asks."""
    measurements = Measurements(deadline_s=0.01)
    measurements.histogram(TIME).record(1.0)

    async def never() -> float:
        await asyncio.Event().wait()
        return math.nan

    measurements.observe(SIZE, never)
    found = {each.metric.name: each for each in await measurements.families()}
    assert {} == found["shop.size"].values
    assert {(): 1} == {labels: each.count for labels, each in found["shop.time"].buckets.items()}


async def test_what_is_known_in_advance_is_there_before_it_happens() -> None:
    """A rate needs the 0 before the first event; values that only the pool knows come with it."""
    measurements = Measurements()
    for metric in of_service("schedd"):
        if metric.kind == "counter":
            measurements.counter(metric)
    found = {each.metric.name: set(each.values) for each in await measurements.families()}
    assert {("completed",), ("failed",), ("removed",), ("held",)} == found["kettle.schedd.jobs.ended"]
    assert set() == found["kettle.command.refusals"]


@pytest.mark.parametrize(
    ("accept", "kind"),
    [
        ("", PLAIN),
        ("*/*", PLAIN),
        ("text/plain", PLAIN),
        # as Prometheus 2.42 asks
        (
            "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
            OPEN_METRICS,
        ),
        ("text/plain;version=0.0.4;q=1,application/openmetrics-text;version=1.0.0;q=0.2", PLAIN),
        ("application/openmetrics-text;version=2.0.0", PLAIN),
        ("application/openmetrics-text;q=x", PLAIN),
    ],
)
def test_the_format_is_the_one_that_is_asked_for(accept: str, kind: str) -> None:
    """OpenMetrics for those who want it, the text format for all others."""
    assert kind == content_type(accept)


def test_names_are_unique_in_both_worlds() -> None:
    """No two metrics have the same name, nor the same series in Prometheus."""
    assert len({metric.name for metric in METRICS}) == len(METRICS)
    series = [name for metric in METRICS for name in metric.series]
    assert len(set(series)) == len(series)


def test_units_become_names() -> None:
    """As the specification of OpenTelemetry says: unit behind the name, `_total` behind a counter."""
    found = {metric.name: metric.prometheus for metric in METRICS}
    assert "process_cpu_time_seconds_total" == found["process.cpu.time"]
    assert "process_memory_usage_bytes" == found["process.memory.usage"]
    assert "kettle_schedd_jobs" == found["kettle.schedd.jobs"]
    assert "http_server_request_duration_seconds" == found["http.server.request.duration"]
