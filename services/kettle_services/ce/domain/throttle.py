"""When a route on which jobs fail takes none for a while: FailureRateThreshold, in failures a second."""

from collections.abc import Sequence
from typing import Final

WINDOW_S: Final = 60.0
"""Failures are counted over so long."""
LONGEST_S: Final = 600.0
"""A route is not closed for longer by what has happened so far."""


def recent(failures: Sequence[float], now: float) -> list[float]:
    """Those that still count, by their times."""
    return [at for at in failures if now - at < WINDOW_S]


def closed_until(failures: Sequence[float], threshold: float, now: float) -> float:
    """
    When a route takes jobs again after these failures; not later than `now`: it takes them.

    It is closed for as long as it takes until so many failures are no more than the threshold admits.
    """
    counted = recent(failures, now)
    if threshold <= 0 or len(counted) <= threshold * WINDOW_S:
        return 0.0
    return min(now + LONGEST_S, min(counted) + len(counted) / threshold)
