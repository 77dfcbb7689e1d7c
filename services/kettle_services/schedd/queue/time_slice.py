"""Long work in one event loop, in slices."""

import asyncio
import time
from typing import Final

SLICE_S: Final = 0.005
"""Seconds of work before other tasks run."""


class TimeSlice:
    """What is done between two waits; begins now."""

    def __init__(self) -> None:
        self._began = time.perf_counter()

    @property
    def used(self) -> float:
        """Seconds that it has taken so far."""
        return time.perf_counter() - self._began

    @property
    def over(self) -> bool:
        """Whether it has taken long enough."""
        return self.used >= SLICE_S

    async def yield_if_over(self) -> None:
        """Let others have a turn if this one has taken long enough, and begin the next."""
        if self.over:
            await asyncio.sleep(0)
            self._began = time.perf_counter()
