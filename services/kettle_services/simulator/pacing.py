"""A simulation that goes no faster than so many times as fast as a clock, for people to watch it."""

import time
from collections.abc import Callable
from typing import Final

from kettle_services.simulator.domain.claims import Record, forget
from kettle_wire.events import Event, JobAssigned, JobCompleted, JobHeld, JobRemoved, JobVacated

Watch = Callable[[int, int, int], None]
"""Receives the simulated time in microseconds, how many jobs run, and how many have ended."""
_US: Final = 1e6


class Paced:
    """
    Called with each event of the queue, as a simulation records it; waits until it is time for it, and tells who watches.
    """

    def __init__(
        self,
        factor: float,
        watch: Watch,
        *,
        record: Record = forget,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """`factor`: simulated seconds in a second; `record` receives each event when its time has come."""
        self._factor, self._watch, self._record = factor, watch, record
        self._clock, self._sleep = clock, sleep
        self._began: tuple[int, float] | None = None
        self._running: set[str] = set()
        self._ended = 0

    def __call__(self, at: int, shard: str, stream: str, event: Event) -> None:
        """One event."""
        if self._began is None:
            self._began = at, self._clock()
        first, began = self._began
        early = began + (at - first) / _US / self._factor - self._clock()
        if early > 0:
            self._sleep(early)
        match event:
            case JobAssigned():
                self._running.add(stream)
            case JobCompleted():
                self._running.discard(stream)
                self._ended += 1
            case JobVacated() | JobHeld() | JobRemoved():
                self._running.discard(stream)
            case _:
                pass
        self._record(at, shard, stream, event)
        self._watch(at, self.running, self._ended)

    @property
    def running(self) -> int:
        """Jobs that run now."""
        return len(self._running)
