"""
How soon after one job the next one of the same owner is started: as its NextJobStartDelay says, for what many at once would
overrun.

The next job has its machine already; only its start waits.  It is not recorded: after a restart the first one starts at once.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable
from typing import Final

import msgspec

from kettle_services.schedd.domain import evaluation
from kettle_wire.ads import Ad
from kettle_wire.jobs import JobId

ATTRIBUTE: Final = "NextJobStartDelay"


class _Owner(msgspec.Struct):
    """Whose jobs are started one after the other."""

    next: float = 0.0
    """When the next one may be started, on the monotonic clock."""
    waiting: deque[JobId] = msgspec.field(default_factory=deque)
    timer: asyncio.TimerHandle | None = None


class StartDelay:
    """
    Of one schedd.  `longest`: seconds that a job may have others wait; `start` is called when the turn of a job has come that
    had to wait.
    """

    def __init__(self, *, longest: float, start: Callable[[JobId], object]) -> None:
        self._longest = longest
        self._start = start
        self._owners: dict[str, _Owner] = {}
        self._turn: JobId | None = None
        """Whose turn has come, while it is started: it does not wait behind the others once more."""

    def record_start(self, owner: str, job: Ad) -> None:
        """A job with this ad is being started."""
        delay = min(evaluation.seconds(job, ATTRIBUTE, time.time()), self._longest)
        if delay:
            self._owners.setdefault(owner, _Owner()).next = time.monotonic() + delay

    def must_wait(self, owner: str, job: JobId) -> bool:
        """Whether a job has to wait for its turn, from now on or since some time."""
        if job == self._turn or (theirs := self._owners.get(owner)) is None:
            return False
        left = theirs.next - time.monotonic()
        if left <= 0 and not theirs.waiting:
            del self._owners[owner]
            return False
        if job not in theirs.waiting:
            theirs.waiting.append(job)
            self._wait(theirs, left)
        return True

    def close(self) -> None:
        """Start nothing more."""
        for theirs in self._owners.values():
            if theirs.timer is not None:
                theirs.timer.cancel()
        self._owners.clear()

    def _wait(self, theirs: _Owner, seconds: float) -> None:
        if theirs.timer is None:
            loop = asyncio.get_running_loop()
            theirs.timer = loop.call_later(max(0.0, seconds), self._go_on, theirs)

    def _go_on(self, theirs: _Owner) -> None:
        theirs.timer = None
        while theirs.waiting and theirs.next <= time.monotonic():
            self._turn = theirs.waiting.popleft()
            self._start(self._turn)
            self._turn = None
        if theirs.waiting:
            self._wait(theirs, theirs.next - time.monotonic())
