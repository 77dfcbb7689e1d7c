"""What a machine of an offer costs, with everything that makes it better or worse than its price."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from kettle_services.scaler.domain.planning.fitting import Fit
    from kettle_services.scaler.domain.planning.inputs import OfferInput

    Reals: TypeAlias = npt.NDArray[np.float64]

_HOUR_S: Final = 3600.0
_WISH: Final = 0.2
"""What is liked best may cost so much more."""
_THERE: Final = 1e-6
"""What is there already, and only sleeps, is woken before anything is bought."""
_SIZE: Final = 0.01
"""Of offers that cost the same the smaller one is better."""


def machine_costs(offers: Sequence[OfferInput], fits: Sequence[Fit], capacity: Reals) -> Reals:
    """
    What a machine of each offer costs for each group (groups, offers); without groups one row, for nobody in particular.

    Its price; more if it takes long to boot or may not come up; less if it is what the jobs, or who runs the pool, like better.
    """
    prices = np.array([one.offer.price for one in offers])
    largest = capacity.max(axis=0, initial=0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        sizes = np.where(largest > 0, capacity / largest, 0.0).max(axis=1, initial=0.0)
    known = prices[prices > 0]
    there = np.array([1.0 if one.asleep is None else _THERE for one in offers])
    base = prices + _SIZE * known.mean() * sizes if len(known) else sizes
    boots = np.array([one.boot for one in offers]) / _HOUR_S
    success = np.array([one.success for one in offers])
    preferred = np.array([one.offer.preference for one in offers]) / 100
    general: Reals = base * there * (1 + boots) / success * (1 - _WISH * preferred)
    liked = (
        np.array([fit.liked for fit in fits]).reshape(len(fits), len(offers))
        if fits
        else np.zeros((1, len(offers)))
    )
    costs: Reals = general[np.newaxis] * (1 - _WISH * liked)
    return costs
