"""By when something has to be done."""

import time
from collections.abc import Callable
from typing import Final


class Deadline:
    """A moment `seconds` from now; on the monotonic clock, because nobody may set that one."""

    def __init__(self, seconds: float, *, now: Callable[[], float] = time.monotonic) -> None:
        self.seconds: Final = seconds
        self._now = now
        self._at = now() + seconds

    def left(self) -> float:
        """Seconds until then; 0 when it has passed."""
        return max(0.0, self._at - self._now())

    @property
    def passed(self) -> bool:
        """Whether it has passed."""
        return self._now() >= self._at
