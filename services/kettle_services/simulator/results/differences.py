"""Two simulations held against each other over seeds: what differs, and whether that is more than chance."""

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, cast

import msgspec

from kettle_services.simulator.results.student import t_within
from kettle_wire.simulations import Figures

CONFIDENCE: Final = 0.95
MEASURES: Final = (
    "ended",
    "wait_mean",
    "wait_median",
    "wait_p95",
    "slowdown_mean",
    "makespan",
    "utilisation",
)


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """One figure, in its own unit; of each seed the second simulation is compared with the first."""

    measure: str
    first: float
    second: float
    """Means over the seeds."""
    difference: float
    margin: float | None
    """Of the difference, at 95 % of confidence; None: one seed tells none."""
    seeds: int

    @property
    def is_beyond_chance(self) -> bool:
        """Whether the interval of the difference has no 0 in it."""
        return self.margin is not None and abs(self.difference) > self.margin

    @property
    def relative(self) -> float | None:
        """The difference as a part of the first mean."""
        return self.difference / self.first if self.first else None


def differences(first: Sequence[Figures], second: Sequence[Figures]) -> list[Difference]:
    """
    Of the figures of the same seeds in the same order; a figure that a run does not have leaves its seed out.
    """
    found: list[Difference] = []
    for measure in MEASURES:
        pairs = [
            (float(one), float(other))
            for one, other in (
                (getattr(a, measure), getattr(b, measure)) for a, b in zip(first, second, strict=True)
            )
            if one is not None and other is not None
        ]
        if pairs:
            found.append(_difference(measure, pairs))
    return found


def _difference(measure: str, pairs: Sequence[tuple[float, float]]) -> Difference:
    changes = [other - one for one, other in pairs]
    margin = None
    if len(pairs) > 1:
        spread = statistics.stdev(changes) / math.sqrt(len(pairs))
        margin = t_within(CONFIDENCE, len(pairs) - 1) * spread
    return Difference(
        measure=measure,
        first=statistics.fmean(one for one, _ in pairs),
        second=statistics.fmean(other for _, other in pairs),
        difference=statistics.fmean(changes),
        margin=margin,
        seeds=len(pairs),
    )


def changed(first: Mapping[str, Any], second: Mapping[str, Any]) -> list[str]:
    """
    What two files say differently, as `platform.0.hosts: 25 -> 30`; what only one says has nothing on the other side.
    """
    one, other = dict(_leaves(first, ())), dict(_leaves(second, ()))
    return [
        f"{'.'.join(keys)}: {_said(one, keys)} -> {_said(other, keys)}"
        for keys in dict.fromkeys([*one, *other])
        if one.get(keys) != other.get(keys)
    ]


def _leaves(value: object, keys: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], object]]:
    if isinstance(value, dict):
        for key, inner in cast("dict[str, object]", value).items():
            yield from _leaves(inner, (*keys, key))
    elif isinstance(value, list) and any(isinstance(each, dict) for each in cast("list[object]", value)):
        for number, inner in enumerate(cast("list[object]", value)):
            yield from _leaves(inner, (*keys, str(number)))
    else:
        yield keys, value


def _said(leaves: Mapping[tuple[str, ...], object], keys: tuple[str, ...]) -> str:
    return str(leaves[keys]) if keys in leaves else "(nothing)"
