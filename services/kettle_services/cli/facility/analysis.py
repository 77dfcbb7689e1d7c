"""
What the demonstration of a facility analyses: synthetic columns of pairs of muons, and the histogram of their invariant mass.
"""

from typing import Final

import numpy as np
import numpy.typing as npt

ROWS: Final = 200_000
"""Of the columns of one part: pairs of particles."""
BINS: Final = 60
HIGHEST: Final = 120.0
"""GeV, the end of the last bin."""

Columns = dict[str, npt.NDArray[np.float64]]
Counts = npt.NDArray[np.int64]


def columns(part: int) -> Columns:
    """Synthetic columns of a part, which follow from its number."""
    draw = np.random.default_rng(part)
    found: Columns = {}
    for which in ("first", "second"):
        found[f"{which}_pt"] = 5.0 + draw.exponential(25.0, ROWS)
        found[f"{which}_eta"] = draw.normal(0.0, 1.2, ROWS)
        found[f"{which}_phi"] = draw.uniform(-np.pi, np.pi, ROWS)
    return found


def histogram(part: int) -> Counts:
    """How many pairs of a part have which invariant mass."""
    of = columns(part)
    angle = np.cosh(of["first_eta"] - of["second_eta"]) - np.cos(of["first_phi"] - of["second_phi"])
    mass = np.sqrt(2.0 * of["first_pt"] * of["second_pt"] * angle)
    counts: Counts = np.histogram(mass, BINS, (0.0, HIGHEST))[0].astype(np.int64)
    return counts


def total(counts: list[Counts]) -> Counts:
    """Of all parts."""
    summed: Counts = np.array(counts, np.int64).sum(axis=0, dtype=np.int64)
    return summed
