"""Student's t distribution, for intervals of confidence."""

import math
from typing import Final

_HALVINGS: Final = 80


def t_within(confidence: float, freedom: int) -> float:
    """
    The t of which a share of `confidence` of the distribution with so many degrees of freedom lies between -t and t.
    """
    low, high = 0.0, 1.0
    while _share_within(high, freedom) < confidence:
        high *= 2.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2.0
        low, high = (middle, high) if _share_within(middle, freedom) < confidence else (low, middle)
    return high


def _share_within(t: float, freedom: int) -> float:
    """Between -t and t: the finite sums of Abramowitz and Stegun, "Handbook of Mathematical Functions", 26.7.3 and 26.7.4."""
    angle = math.atan2(t, math.sqrt(freedom))
    cosine = math.cos(angle)
    odd = freedom % 2
    term = cosine if odd else 1.0
    total = term if freedom > 1 else 0.0
    for number in range(2 + odd, freedom - 1, 2):
        term *= cosine * cosine * (number - 1) / number
        total += term
    if odd:
        return 2.0 / math.pi * (angle + math.sin(angle) * total)
    return math.sin(angle) * total
