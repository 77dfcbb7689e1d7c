"""How much of a processor the live parts of pages may take together."""

import time
from collections.abc import Callable
from typing import Final

SHARE: Final = 0.25
"""Of a core, the most that all live parts together are to take."""
AT_ONCE_S: Final = 0.5
"""Processor time that may be taken at once after a while of less."""


class Costs:
    """
    How much processor time each of several things takes that are made at once: an equal part of what the process has used, so that all
    together are not more than that, however long they wait for the database or for each other.
    """

    def __init__(self, clock: Callable[[], float] = time.process_time) -> None:
        """`clock`: processor seconds of this process."""
        self._clock = clock
        self._made_now = 0
        self._at = 0.0
        self._shared = 0.0
        """Seconds that something has had that was made all the time."""

    def begin(self) -> float:
        """Something more is made; what `end` is to be given."""
        self._go_on()
        self._made_now += 1
        return self._shared

    def end(self, begun: float) -> float:
        """It is made; seconds that it took."""
        self._go_on()
        self._made_now -= 1
        return self._shared - begun

    def _go_on(self) -> None:
        now = self._clock()
        if self._made_now:
            self._shared += (now - self._at) / self._made_now
        self._at = now


class Pace:
    """Has who makes something wait while all together have taken more than their share."""

    def __init__(
        self,
        share: float = SHARE,
        at_once_s: float = AT_ONCE_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._share = share
        self._before = at_once_s / share
        self._clock = clock
        self._paid_until = clock() - self._before
        """When what was taken up to now will have been their share."""

    def wait(self, expected_s: float) -> float:
        """Something will be made that takes about so much processor time: seconds to wait before."""
        now = self._clock()
        self._paid_until = max(self._paid_until, now - self._before)
        waits = max(0.0, self._paid_until - now)
        self._paid_until += expected_s / self._share
        return waits

    def took(self, expected_s: float, taken_s: float) -> None:
        """It took so much instead."""
        self._paid_until += (taken_s - expected_s) / self._share
