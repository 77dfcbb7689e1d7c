"""The reference page of telemetry, and its document, from `kettle_wire.telemetry`."""

from typing import Any

from kettle.schema_generation.markdown import table
from kettle_wire.telemetry.declaration import Attribute, Metric
from kettle_wire.telemetry.metrics import METRICS
from kettle_wire.telemetry.process_metrics import ALL
from kettle_wire.telemetry.traces import LOG_FIELDS, SPANS

_HEAD = """\
# Telemetry

Every metric, span and field of a log that services have; they are declared in `kettle_wire.telemetry`, and [telemetry.json](../../schemas/telemetry/telemetry.json) has the same for programs.
[Monitor a pool with Prometheus and Grafana](../how-to/monitor-with-prometheus.md) tells how to collect metrics, [Trace a job](../how-to/trace-a-job.md) how to collect spans.

## Metrics

A metric has a name of OpenTelemetry, under which it is sent over OTLP, and one of Prometheus: dots become underscores, the unit is appended, and `_total` to a counter.
A histogram is three series, with `_bucket`, `_sum` and `_count`; upper bounds of buckets are in its unit.
Attributes are labels in Prometheus, with underscores for dots.
One process has a bounded number of series of each metric; what comes after them is counted with the value `other`.
No attribute has the name of a person or the number of a job, except where the column "there is a series after" says so.
Every process also says what it is, in `target_info`.
"""


def telemetry_page() -> str:
    """Everything by service."""
    parts = [_HEAD]
    common = [metric for metric in METRICS if len(metric.services) > 1]
    parts.append("### Of several services\n")
    parts.append(_metrics(common, services=True))
    for role in ALL:
        own = [metric for metric in METRICS if metric.services == (role,)]
        if own:
            parts.append(f"### Of the {role}\n")
            parts.append(_metrics(own, services=False))
    parts.append("## Spans\n")
    parts.append(
        "A command that carries a trace is a span of the service that answers it, `<role>.<verb>`. Besides, there are:\n"
    )
    parts.append(
        table(
            ("span", "of", "meaning", "attributes"),
            [
                (
                    f"`{span.name}`",
                    ", ".join(span.services),
                    span.meaning,
                    ", ".join(f"`{a}`" for a in span.attributes),
                )
                for span in SPANS
            ],
        )
    )
    parts.append("## Lines of logs\n")
    parts.append(
        'With `log_format = "json"` each line is an object with these fields, and those that belong to its sentence.\n'
    )
    parts.append(table(("field", "meaning"), [(f"`{field.name}`", field.meaning) for field in LOG_FIELDS]))
    return "\n".join(parts)


def _metrics(metrics: list[Metric], *, services: bool) -> str:
    titles = (
        "metric",
        "in Prometheus",
        "kind",
        "unit",
        *(["of"] if services else []),
        "attributes",
        "meaning",
    )
    rows = [
        (
            f"`{metric.name}`",
            f"`{metric.prometheus}`",
            metric.kind,
            f"`{metric.unit}`" if metric.unit else "",
            *([_of(metric)] if services else []),
            "; ".join(map(_attribute, metric.attributes)),
            metric.meaning + (f" There is a series after {metric.when}." if metric.when else ""),
        )
        for metric in metrics
    ]
    return table(titles, rows)


def _of(metric: Metric) -> str:
    missing = [role for role in ALL if role not in metric.services]
    if not missing:
        return "all"
    return f"all but {missing[0]}" if len(missing) == 1 else ", ".join(metric.services)


def _attribute(attribute: Attribute) -> str:
    values = f" ({', '.join(attribute.values)})" if attribute.values else ""
    return f"`{attribute.name}`{values}: {attribute.meaning}"


def telemetry_document() -> dict[str, Any]:
    """Everything as a document for programs."""
    return {
        "metrics": [
            {
                "name": metric.name,
                "prometheus": metric.prometheus,
                "kind": metric.kind,
                "unit": metric.unit,
                "meaning": metric.meaning,
                "services": list(metric.services),
                "attributes": [
                    {
                        "name": each.name,
                        "label": each.label,
                        "meaning": each.meaning,
                        "values": list(each.values),
                    }
                    for each in metric.attributes
                ],
                "buckets": list(metric.buckets) if metric.kind == "histogram" else [],
                "series": metric.most,
                "when": metric.when,
            }
            for metric in METRICS
        ],
        "spans": [
            {
                "name": s.name,
                "meaning": s.meaning,
                "services": list(s.services),
                "attributes": list(s.attributes),
            }
            for s in SPANS
        ],
        "log_fields": [{"name": field.name, "meaning": field.meaning} for field in LOG_FIELDS],
    }
