"""Plans that people ask for, which nobody carries out."""

import time
from collections.abc import Callable
from typing import Final

from kettle_wire.events.plan import PlanMade

_IDLE_PART: Final = 9
"""However many ask, everything else has so much more time than these plans take."""


class AskedPlans:
    """One plan after the other, each shared by all who ask before the next one may be made."""

    def __init__(
        self,
        make: Callable[[], PlanMade],
        *,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        """`make` takes the time of everything else in this process."""
        self._make = make
        self._clock = clock
        self._wall = wall
        self._last: tuple[PlanMade, float] | None = None
        self._until = 0.0

    def now(self) -> tuple[PlanMade, float]:
        """The plan, and when it was made, in seconds since the epoch."""
        began = self._clock()
        if self._last is None or began >= self._until:
            self._last = self._make(), self._wall()
            ended = self._clock()
            self._until = ended + _IDLE_PART * (ended - began)
        return self._last
