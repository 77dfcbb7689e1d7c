"""What a signal is: a metric, an attribute of it, a span, a field of a line in the log."""

import re
from typing import Final, Literal

import msgspec

MetricKind = Literal["counter", "gauge", "histogram"]

DURATIONS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Upper bounds, in seconds, of the buckets in which short durations are counted."""
LONG_DURATIONS: Final = (0.1, 0.5, 1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3600.0, 21600.0, 86400.0)
"""The same for what may take hours."""

_UNITS: Final = {"s": "seconds", "By": "bytes", "": ""}


class Attribute(msgspec.Struct, frozen=True, kw_only=True):
    """What divides a metric into series; in Prometheus a label."""

    name: str
    meaning: str
    values: tuple[str, ...] = ()
    """All that it can be; empty: `Metric.most` bounds how many there are."""

    @property
    def label(self) -> str:
        """Its name in Prometheus."""
        return _name(self.name)


class Metric(msgspec.Struct, frozen=True, kw_only=True):
    """Something that services measure; its name and its unit follow the conventions of OpenTelemetry."""

    name: str
    kind: MetricKind
    unit: str = ""
    """`s`, `By`, or what is counted, in braces: `{job}`."""
    meaning: str
    services: tuple[str, ...]
    """The roles that have it."""
    attributes: tuple[Attribute, ...] = ()
    buckets: tuple[float, ...] = DURATIONS
    """Upper bounds of a histogram's buckets."""
    most: int = 200
    """The most series of one process; what comes after them is counted with the value `other`."""
    when: str = ""
    """What must have happened before there is a series; empty: nothing."""

    @property
    def prometheus(self) -> str:
        """Its name in Prometheus: that of the family, without `_bucket`, `_sum` and `_count`."""
        unit = _UNITS[re.sub(r"\{[^}]*\}", "", self.unit)]
        name = _name(self.name)
        if unit and not name.endswith(f"_{unit}"):
            name = f"{name}_{unit}"
        return f"{name}_total" if self.kind == "counter" else name

    @property
    def series(self) -> tuple[str, ...]:
        """The names that a query can have."""
        name = self.prometheus
        if self.kind == "histogram":
            return (f"{name}_bucket", f"{name}_sum", f"{name}_count")
        return (name,)


class DeclaredSpan(msgspec.Struct, frozen=True, kw_only=True):
    """A piece of work in a trace."""

    name: str
    meaning: str
    services: tuple[str, ...]
    attributes: tuple[str, ...] = ()


class LogField(msgspec.Struct, frozen=True, kw_only=True):
    """A field that every line of a log may have."""

    name: str
    meaning: str


def _name(name: str) -> str:
    return re.sub(r"[^a-zA-Z0-9_]", "_", name)
