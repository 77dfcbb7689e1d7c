"""
Measurements as text for Prometheus: its own format 0.0.4, and OpenMetrics 1.0 for those who ask for it.

https://prometheus.io/docs/instrumenting/exposition_formats, https://prometheus.io/docs/specs/om/open_metrics_spec
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Final

from kettle.runtime.measurements import Family, Labels
from kettle_wire.telemetry.declaration import Metric

PLAIN: Final = "text/plain; version=0.0.4; charset=utf-8"
OPEN_METRICS: Final = "application/openmetrics-text; version=1.0.0; charset=utf-8"
_UNITS: Final = ("seconds", "bytes")


def content_type(accept: str) -> str:
    """The format for a request with this `Accept`: OpenMetrics where it is wanted at least as much."""
    wanted = {"openmetrics": 0.0, "plain": 0.0}
    for each in accept.lower().split(","):
        kind, *parameters = [part.strip() for part in each.split(";")]
        versions = [part for part in parameters if part.startswith("version=")]
        weight = next((_weight(part[2:]) for part in parameters if part.startswith("q=")), 1.0)
        if kind == "application/openmetrics-text" and versions in ([], ["version=1.0.0"]):
            wanted["openmetrics"] = max(wanted["openmetrics"], weight)
        elif kind in {"text/plain", "text/*", "*/*"}:
            wanted["plain"] = max(wanted["plain"], weight)
    return OPEN_METRICS if 0.0 < wanted["openmetrics"] >= wanted["plain"] else PLAIN


def _weight(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0


def exposition(
    families: Iterable[Family], kind: str = PLAIN, *, target: Mapping[str, str] | None = None
) -> str:
    """The text; `target` is what is said of the process itself, in `target_info`."""
    openly = kind == OPEN_METRICS
    lines: list[str] = []
    if target:
        lines += _target(target, openly=openly)
    for family in families:
        lines += _head(family.metric, openly=openly)
        lines += _samples(family)
    if openly:
        lines.append("# EOF")
    return "".join(f"{line}\n" for line in lines)


def _target(target: Mapping[str, str], *, openly: bool) -> list[str]:
    name, kind = ("target", "info") if openly else ("target_info", "gauge")
    labels = _labels(tuple(target), tuple(target.values()))
    return [f"# HELP {name} What is measured.", f"# TYPE {name} {kind}", f"target_info{labels} 1"]


def _head(metric: Metric, *, openly: bool) -> Iterator[str]:
    name = metric.prometheus
    if openly and metric.kind == "counter":
        name = name.removesuffix("_total")
    help_ = metric.meaning.replace("\\", "\\\\").replace("\n", "\\n")
    yield f"# HELP {name} {help_.replace(chr(34), chr(92) + chr(34)) if openly else help_}"
    yield f"# TYPE {name} {metric.kind}"
    if openly and (unit := name.rpartition("_")[2]) in _UNITS:
        yield f"# UNIT {name} {unit}"


def _samples(family: Family) -> Iterator[str]:
    metric, name = family.metric, family.metric.prometheus
    names = tuple(attribute.label for attribute in metric.attributes)
    for labels, value in sorted(family.values.items()):
        yield f"{name}{_labels(names, labels)} {value!r}"
    for labels, series in sorted(family.buckets.items()):
        bounds = [*(repr(float(bound)) for bound in metric.buckets), "+Inf"]
        for bound, count in zip(bounds, accumulate(series.counts), strict=True):
            yield f"{name}_bucket{_labels((*names, 'le'), (*labels, bound))} {count}"
        yield f"{name}_sum{_labels(names, labels)} {series.sum!r}"
        yield f"{name}_count{_labels(names, labels)} {series.count}"


def _labels(names: Sequence[str], values: Labels) -> str:
    if not names:
        return ""
    pairs = (f'{name}="{_escaped(value)}"' for name, value in zip(names, values, strict=True))
    return f"{{{','.join(pairs)}}}"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
