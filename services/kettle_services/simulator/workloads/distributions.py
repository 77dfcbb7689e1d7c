"""
Random durations and gaps, the same for a seed on every machine: numbers come from the raw bits of a PCG64, by formulas written here.
"""

from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]

_UNIT: Final = 2.0**-53


class Randomness:
    """A stream of numbers of one seed; `name` keeps the streams of different uses apart."""

    def __init__(self, seed: int, name: str = "") -> None:
        self._bits = np.random.PCG64([seed, *name.encode()])

    def uniform(self, count: int) -> Numbers:
        """In (0, 1]."""
        raw = np.asarray(self._bits.random_raw(count), dtype=np.uint64) >> np.uint64(11)
        return (raw.astype(np.float64) + 1.0) * _UNIT

    def one(self) -> float:
        """In (0, 1]."""
        return float(self.uniform(1)[0])

    def normal(self, count: int) -> Numbers:
        """Standard normal, by the method of Box and Muller."""
        radius = np.sqrt(-2.0 * np.log(self.uniform(count)))
        return np.asarray(radius * np.cos(2.0 * np.pi * self.uniform(count)), dtype=np.float64)


class Constant(msgspec.Struct, frozen=True, tag_field="kind", tag="constant", forbid_unknown_fields=True):
    """Always one value."""

    value: float

    def draw(self, randomness: Randomness, count: int) -> Numbers:
        """So many of them."""
        return np.full(count, self.value)


class Uniform(msgspec.Struct, frozen=True, tag_field="kind", tag="uniform", forbid_unknown_fields=True):
    """Between two values."""

    low: float
    high: float

    def draw(self, randomness: Randomness, count: int) -> Numbers:
        """So many of them."""
        return self.low + (self.high - self.low) * randomness.uniform(count)


class Exponential(
    msgspec.Struct, frozen=True, tag_field="kind", tag="exponential", forbid_unknown_fields=True
):
    """With a mean, and without memory."""

    mean: float

    def draw(self, randomness: Randomness, count: int) -> Numbers:
        """So many of them."""
        return -self.mean * np.log(randomness.uniform(count))


class LogNormal(msgspec.Struct, frozen=True, tag_field="kind", tag="lognormal", forbid_unknown_fields=True):
    """With a median, and `sigma`, the standard deviation of the logarithm."""

    median: float
    sigma: float = 1.0

    def draw(self, randomness: Randomness, count: int) -> Numbers:
        """So many of them."""
        return self.median * np.exp(self.sigma * randomness.normal(count))


class Pareto(msgspec.Struct, frozen=True, tag_field="kind", tag="pareto", forbid_unknown_fields=True):
    """
    With a heavy tail: `least` is the smallest value, and the tail is the heavier the smaller `shape` is.
    """

    least: float
    shape: float = 2.0

    def draw(self, randomness: Randomness, count: int) -> Numbers:
        """So many of them."""
        return self.least * randomness.uniform(count) ** (-1.0 / self.shape)


Distribution = Constant | Uniform | Exponential | LogNormal | Pareto
