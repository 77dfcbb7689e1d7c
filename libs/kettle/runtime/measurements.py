"""
What a process measures: instruments that cost a look-up each, and are read when somebody asks.

Everything belongs to the event loop of the service: it is changed and read there.
"""

import asyncio
import inspect
import time
from bisect import bisect_left
from collections.abc import Awaitable, Callable, Mapping
from itertools import product
from typing import Final, TypeAlias

import msgspec

from kettle_wire.telemetry.declaration import Metric

Labels: TypeAlias = tuple[str, ...]
"""Values of a metric's attributes, in their order."""
Measured: TypeAlias = float | Mapping[Labels, float]
"""A value, or one for each series."""
Read: TypeAlias = Callable[[], Measured | Awaitable[Measured]]

OTHER: Final = "other"
"""The value of every attribute in the series that takes what would be one series too many."""
DEADLINE_S: Final = 2.0


class Buckets(msgspec.Struct):
    """One series of a histogram."""

    counts: list[int]
    """For each bound how many were at most that and more than the one before; the last: more than all."""
    sum: float = 0.0

    @property
    def count(self) -> int:
        """How many there were."""
        return sum(self.counts)


class Family(msgspec.Struct, frozen=True):
    """A metric with all that was measured of it."""

    metric: Metric
    values: Mapping[Labels, float]
    """Of a counter or a gauge."""
    buckets: Mapping[Labels, Buckets]
    """Of a histogram."""


class Sum:
    """A counter that is added to; see `kettle.runtime.telemetry.Counter`."""

    def __init__(self, metric: Metric) -> None:
        self._metric = metric
        # What is known in advance is 0 from the start: a rate needs a value before the first event.
        known = product(*(attribute.values for attribute in metric.attributes))
        self._values: dict[Labels, float] = dict.fromkeys(known, 0.0)

    def add(self, amount: float = 1, *labels: str) -> None:
        """See `Counter.add`."""
        try:
            self._values[labels] += amount
        except KeyError:
            labels = _admitted(self._metric, labels, self._values)
            self._values[labels] = self._values.get(labels, 0.0) + amount

    def family(self) -> Family:
        """What was counted."""
        return Family(self._metric, dict(self._values), {})


class Distribution:
    """A histogram; see `kettle.runtime.telemetry.Histogram`."""

    def __init__(self, metric: Metric) -> None:
        self._metric = metric
        self._bounds = metric.buckets
        self._series: dict[Labels, Buckets] = {} if metric.attributes else {(): self._empty()}

    def _empty(self) -> Buckets:
        return Buckets([0] * (len(self._bounds) + 1))

    def record(self, value: float, *labels: str) -> None:
        """See `Histogram.record`."""
        series = self._series.get(labels)
        if series is None:
            labels = _admitted(self._metric, labels, self._series)
            series = self._series.setdefault(labels, self._empty())
        series.counts[bisect_left(self._bounds, value)] += 1
        series.sum += value

    def family(self) -> Family:
        """What was measured."""
        copies = {labels: Buckets(list(each.counts), each.sum) for labels, each in self._series.items()}
        return Family(self._metric, {}, copies)


class _Observed:
    def __init__(self, metric: Metric, read: Read, deadline_s: float) -> None:
        self._metric = metric
        self._read = read
        self._deadline_s = deadline_s

    async def family(self) -> Family:
        read = self._read()
        if inspect.isawaitable(read):
            try:
                async with asyncio.timeout(self._deadline_s):
                    read = await read
            except (TimeoutError, OSError):
                read = {}
        values: dict[Labels, float] = {}
        for labels, value in (read if isinstance(read, Mapping) else {(): read}).items():
            admitted = labels if labels in values else _admitted(self._metric, labels, values)
            values[admitted] = values.get(admitted, 0.0) + value
        return Family(self._metric, values, {})


class Measurements:
    """All instruments of a process, each made once."""

    def __init__(self, *, deadline_s: float = DEADLINE_S) -> None:
        """`deadline_s`: for a value that has to be asked for; without it the metric has no series this time."""
        self.began: Final = time.time()
        self._deadline_s = deadline_s
        self._instruments: dict[str, Sum | Distribution | _Observed] = {}

    def counter(self, metric: Metric) -> Sum:
        """The instrument of a counter."""
        found = self._instruments.setdefault(metric.name, Sum(metric))
        assert isinstance(found, Sum), metric.name
        return found

    def histogram(self, metric: Metric) -> Distribution:
        """The instrument of a histogram."""
        found = self._instruments.setdefault(metric.name, Distribution(metric))
        assert isinstance(found, Distribution), metric.name
        return found

    def observe(self, metric: Metric, read: Read) -> None:
        """Read a metric, from now on, whenever somebody asks; who says it last is asked."""
        self._instruments[metric.name] = _Observed(metric, read, self._deadline_s)

    async def families(self) -> list[Family]:
        """Everything that was measured, by name."""
        instruments = [each for _, each in sorted(self._instruments.items())]
        observed = [each.family() for each in instruments if isinstance(each, _Observed)]
        read = iter(await asyncio.gather(*observed))
        return [next(read) if isinstance(each, _Observed) else each.family() for each in instruments]


def _admitted(metric: Metric, labels: Labels, known: Mapping[Labels, object]) -> Labels:
    """The series that a new combination of values belongs to."""
    assert len(labels) == len(metric.attributes), f"{metric.name} has {len(metric.attributes)} attributes"
    for value, attribute in zip(labels, metric.attributes, strict=True):
        assert not attribute.values or value in attribute.values, f"{metric.name}: {attribute.name}={value}"
    return labels if len(known) < metric.most else (OTHER,) * len(labels)
