"""How many workers a load asks for, without following each of its breaths."""

from collections import deque
from typing import Final


class TargetSmoothing:
    """
    More workers are asked for at once, fewer only after the load has asked for no more for a while.

    Work that thins out for a moment between two computations costs no worker, and no data have to move for it.
    """

    def __init__(self, grace_s: float) -> None:
        self._grace_s: Final = grace_s
        self._falling: Final[deque[tuple[float, int]]] = deque()
        """Moments and targets of the last `grace_s` seconds, each target below the one before it."""

    def smoothed(self, target: int, now: float) -> int:
        """What to ask for; `now`: seconds, monotonic."""
        while self._falling and self._falling[-1][1] <= target:
            self._falling.pop()
        self._falling.append((now, target))
        while self._falling[0][0] < now - self._grace_s:
            self._falling.popleft()
        return self._falling[0][1]
