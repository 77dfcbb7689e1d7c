"""
The jobs that wait at the manager, by priority and shape: which one is next that can be placed is found without asking for each.
"""

from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterator
from typing import NamedTuple


class Shape(NamedTuple):
    """What a job needs."""

    grid: bool
    """It goes to the batch service."""
    cores: int
    """Of the host, or of each node."""
    more: int
    """MiB of memory, or nodes."""


class PendingJobs:
    """Numbers of jobs; one that has come later has a higher number."""

    def __init__(self) -> None:
        self._queues: dict[int, dict[Shape, _Queue]] = {}
        self._waiting = bytearray()
        self._count = 0
        self.newest = -1
        """The last one that has come."""

    def __len__(self) -> int:
        return self._count

    def add(self, job: int, shape: Shape, priority: int = 0) -> None:
        """It waits from now on."""
        queues = self._queues.setdefault(priority, {})
        queue = queues.get(shape)
        if queue is None:
            queue = queues[shape] = _Queue()
        queue.jobs.append(job)
        self._waiting.extend(bytes(job + 1 - len(self._waiting)))
        self._waiting[job] = 1
        self._count += 1
        self.newest = job

    def add_again(self, job: int, shape: Shape, priority: int = 0) -> None:
        """One that was placed waits again, where it was among the others."""
        self._queues[priority][shape].put_back(job)
        self._waiting[job] = 1
        self._count += 1

    def shapes(self) -> list[Shape]:
        """Of the jobs that wait."""
        return [
            shape
            for queues in self._queues.values()
            for shape, queue in queues.items()
            if queue.first(0, self._waiting) is not None
        ]

    def remove(self, job: int, shape: Shape, priority: int = 0) -> None:
        """It was placed."""
        self._waiting[job] = 0
        self._count -= 1
        self._queues[priority][shape].skip(self._waiting)

    def priorities(self) -> list[int]:
        """Of the jobs that may wait, the highest first."""
        return sorted(self._queues, reverse=True)

    def next(
        self, priority: int, start: int, end: int, fits: Callable[[Shape], bool]
    ) -> tuple[int, Shape] | None:
        """The first one of a priority from `start` on, and before `end`, of a shape that fits now."""
        best: tuple[int, Shape] | None = None
        for shape, queue in self._queues[priority].items():
            job = queue.first(start, self._waiting)
            if job is not None and job < (best[0] if best else end) and fits(shape):
                best = job, shape
        return best

    def in_order(self) -> Iterator[int]:
        """All that wait, as they came."""
        return (job for job, waits in enumerate(self._waiting) if waits)


class _Queue:
    """The jobs of one shape; those that do not wait any more are left out when they are come to."""

    __slots__ = ("head", "jobs")

    def __init__(self) -> None:
        self.jobs = array("l")
        self.head = 0

    def skip(self, waiting: bytearray) -> None:
        jobs, head = self.jobs, self.head
        while head < len(jobs) and not waiting[jobs[head]]:
            head += 1
        if head > 64 and head * 2 > len(jobs):
            del jobs[:head]
            head = 0
        self.head = head

    def put_back(self, job: int) -> None:
        place = bisect_left(self.jobs, job, lo=self.head)
        if place == len(self.jobs) or self.jobs[place] != job:
            self.jobs.insert(place, job)

    def first(self, start: int, waiting: bytearray) -> int | None:
        jobs = self.jobs
        place = bisect_left(jobs, start, lo=self.head)
        while place < len(jobs):
            job = jobs[place]
            if waiting[job]:
                return job
            place += 1
        return None
