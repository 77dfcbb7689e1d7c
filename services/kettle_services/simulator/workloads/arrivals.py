"""When jobs come: regularly, at random, or at random with more of them by day than by night."""

import math
from typing import Annotated, Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from kettle_services.simulator.platforms.quantities import microseconds
from kettle_services.simulator.workloads.distributions import Exponential, Randomness

Moments = NDArray[np.int64]

_DAY_US: Final = 86_400_000_000
_POINTS: Final = 86_400


class Daily(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A rate that rises and falls once a day, as a cosine does."""

    peak: Annotated[float, msgspec.Meta(ge=0, lt=86_400)] = 50_400.0
    """When most jobs come, in seconds since the beginning of each day."""
    swing: Annotated[float, msgspec.Meta(ge=0, lt=1)] = 0.8
    """How much more than on average come then, and how much less half a day later, as a part of the average."""

    def moved(self, even: NDArray[np.float64]) -> NDArray[np.float64]:
        """Moments that were even over the day, where the rate has them; microseconds."""
        times = np.linspace(0.0, _DAY_US, _POINTS + 1)
        turn, peak = 2.0 * math.pi / _DAY_US, self.peak * 1e6
        come = times + self.swing / turn * (np.sin(turn * (times - peak)) + math.sin(turn * peak))
        days, rest = np.divmod(even, _DAY_US)
        return np.asarray(days * _DAY_US + np.interp(rest, come, times), dtype=np.float64)


def arrivals(
    count: int,
    *,
    every: float | str = 0.0,
    poisson: bool = False,
    daily: Daily | None = None,
    seed: int = 0,
) -> Moments:
    """
    When so many come, in microseconds: one every so many seconds, exactly, or on average at random (`poisson`, `daily`).

    Raises QuantityError.
    """
    gap = microseconds(every)
    if daily is None and not poisson:
        return np.arange(count, dtype=np.int64) * gap
    even = np.cumsum(Exponential(gap).draw(Randomness(seed, "gaps"), count))
    return np.rint(even if daily is None else daily.moved(even)).astype(np.int64)
