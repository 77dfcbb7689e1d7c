"""
Jobs of supercomputers after Lublin and Feitelson, "The workload on parallel supercomputers: modeling the characteristics of rigid jobs",
Journal of Parallel and Distributed Computing 63 (2003): how many processors they take, and how long, which depends on that.

The parameters are those of the whole sample of the paper. When jobs come is another matter (`arrivals`).
"""

import math
from collections.abc import Callable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kettle_services.simulator.workloads.distributions import Numbers, Randomness

Counts = NDArray[np.int64]

_SERIAL, _POWERS_OF_TWO = 0.244, 0.576
_LEAST_LOG2: Final = 0.8
_MIDDLE_BELOW_MOST: Final = 2.5
_BELOW_MIDDLE: Final = 0.86
_SHORT, _LONG = (4.2, 0.94), (312.0, 0.03)
"""Shape and scale of the logarithms of run times."""
_SHORT_OF_ONE, _SHORT_BY_SIZE = 0.78, -0.0054
_MOST_LOG: Final = 12.0
"""The logarithm of the longest run time: 45 hours."""


def processors(count: int, most: int, randomness: Randomness) -> Counts:
    """Of so many jobs, from 1 to `most`."""
    kind, half, place = (randomness.uniform(count) for _ in range(3))
    largest = math.log2(max(most, 2))
    least = min(_LEAST_LOG2, largest)
    middle = max(largest - _MIDDLE_BELOW_MOST, least)
    size = np.where(
        half <= _BELOW_MIDDLE, least + place * (middle - least), middle + place * (largest - middle)
    )
    size = np.where(kind <= _SERIAL + _POWERS_OF_TWO, np.rint(size), size)
    found = np.where(kind <= _SERIAL, 1.0, np.rint(2.0**size))
    return np.clip(found, 1, most).astype(np.int64)


def run_times(sizes: Counts, randomness: Randomness) -> Numbers:
    """
    Of jobs with so many processors each, in seconds: most are short or long, and the larger a job the rather it is long.
    """
    share = np.clip(_SHORT_OF_ONE + _SHORT_BY_SIZE * sizes, 0.0, 1.0)

    def draw(places: Counts) -> Numbers:
        short = randomness.uniform(len(places)) <= share[places]
        return np.where(
            short, gamma(*_SHORT, len(places), randomness), gamma(*_LONG, len(places), randomness)
        )

    return np.exp(_until(draw, len(sizes), lambda drawn: drawn <= _MOST_LOG))


def gamma(shape: float, scale: float, count: int, randomness: Randomness) -> Numbers:
    """Of a shape of 1 at least, by the method of Marsaglia and Tsang (2000)."""
    d = shape - 1.0 / 3.0
    c = 1.0 / math.sqrt(9.0 * d)

    def draw(places: Counts) -> Numbers:
        normal, uniform = randomness.normal(len(places)), randomness.uniform(len(places))
        cube = (1.0 + c * normal) ** 3
        safe = np.maximum(cube, 1e-300)
        taken = (cube > 0) & (np.log(uniform) < 0.5 * normal**2 + d - d * cube + d * np.log(safe))
        return np.where(taken, d * cube, np.nan)

    return scale * _until(draw, count, lambda drawn: ~np.isnan(drawn))


def _until(
    draw: Callable[[Counts], Numbers], count: int, good: Callable[[Numbers], NDArray[np.bool_]]
) -> Numbers:
    """Draw for each place again until the number is good."""
    found = np.empty(count)
    left: Counts = np.arange(count, dtype=np.int64)
    while len(left):
        drawn = draw(left)
        found[left] = drawn
        left = left[~good(drawn)]
    return found
