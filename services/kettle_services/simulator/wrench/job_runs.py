"""
Jobs that run on hosts: their input comes over the network, they work, their output goes over the network.
"""

from array import array
from collections.abc import Callable
from heapq import heappush
from typing import Final

from kettle_services.simulator.wrench.transfers import Transfers

Due = list[tuple[int, int, int]]
"""What is due: when, of which kind, and of which job, if it is about one."""
Data = tuple[int, int]
"""Bytes that a job reads before its work, and writes after it."""
NO_DATA: Final[Data] = (0, 0)
_NEVER: Final = -1


class JobRuns:
    """
    Runs of jobs from start to end; who calls it knows the time, and hands it what it has put among what is due.

    `over` is told the job at its end. Runs can be lost only if `can_be_lost`, which takes some memory for each that goes on.
    """

    def __init__(
        self,
        due: Due,
        kinds: tuple[int, int],
        transfers: Transfers | None,
        over: Callable[[int], None],
        *,
        can_be_lost: bool,
    ) -> None:
        """`kinds` of what is due: the work of a job has ended; the network is to be asked."""
        self._due = due
        self._work_ends, self._asks = kinds
        self._transfers = transfers
        self._over = over
        self.works = array("q")
        """Microseconds on a core of speed 1."""
        self._data: dict[int, Data] = {}
        """Of each job that moves any."""
        self._reading: dict[int, float] = {}
        """Jobs whose input is on its way, and the speed of the host."""
        self._writing: set[int] = set()
        self._asks_at = _NEVER
        """When the network is asked next."""
        self._until: dict[int, int] | None = {} if can_be_lost else None
        """When the work of each job ends."""

    def add(self, job: int, work: int, data: Data) -> None:
        """There is one more job."""
        self.works.append(work)
        if self._transfers is not None and data != NO_DATA:
            self._data[job] = data

    def start(self, now: int, job: int, host: int, speed: float) -> None:
        """It starts on a host, or with that as its first one."""
        if self._data and self._data.get(job, NO_DATA)[0]:
            self._reading[job] = speed
            self._move(now, job, host, self._data[job][0])
        else:
            self._work(now, job, speed)

    def work_ended(self, now: int, job: int, host: int) -> None:
        """What was due has come: the work is over, and the output may have to be moved."""
        if self._until is not None:
            if self._until.get(job) != now:
                return  # of a run that was lost
            del self._until[job]
        if self._data and self._data.get(job, NO_DATA)[1]:
            self._writing.add(job)
            self._move(now, job, host, self._data[job][1])
        else:
            self._over(job)

    def ask_network(self, now: int) -> None:
        """What was due has come: transfers have ended, as far as is known."""
        if self._transfers is None:
            return
        for job in self._transfers.ended(now):
            if job in self._writing:
                self._writing.remove(job)
                self._over(job)
            else:
                self._work(now, job, self._reading.pop(job))
        self._await_network(now)

    def lose(self, now: int, job: int) -> None:
        """A run ends without an end of the job."""
        if self._until is not None and job in self._until:
            del self._until[job]
        elif self._transfers is not None:
            self._transfers.cancel(now, job)
            self._reading.pop(job, None)
            self._writing.discard(job)
            self._await_network(now)

    def _work(self, now: int, job: int, speed: float) -> None:
        end = now + round(self.works[job] / speed)
        if self._until is not None:
            self._until[job] = end
        heappush(self._due, (end, self._work_ends, job))

    def _move(self, now: int, job: int, host: int, size: int) -> None:
        assert self._transfers is not None, "only then it is kept what jobs move"
        self._transfers.begin(now, job, host, size)
        self._await_network(now)

    def _await_network(self, now: int) -> None:
        """See to it that the network is asked when its next transfer ends."""
        assert self._transfers is not None
        change = self._transfers.next_change(now)
        if change is not None and (self._asks_at <= now or change < self._asks_at):
            self._asks_at = change
            heappush(self._due, (change, self._asks, _NEVER))
