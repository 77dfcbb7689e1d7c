"""The jobs of one autocluster that may run now, best first."""

from collections.abc import Iterable
from heapq import heapify, heappop, heappush, nsmallest

from kettle_wire.jobs import JobId

Order = tuple[int, int, int]
"""Sorts as HTCondor orders a submitter's jobs: JobPrio descending, then cluster, then proc."""


def order(job: JobId, priority: int) -> Order:
    """The place of a job among its submitter's."""
    return (-priority, job.cluster, job.proc)


class Runnable:
    """
    A priority queue that forgets cheaply: a place that was left is skipped when it comes to the front.

    A job leaves the place that it had, so that it can come back with another priority.
    """

    def __init__(self) -> None:
        self._heap: list[Order] = []
        self._live: set[Order] = set()

    def __len__(self) -> int:
        return len(self._live)

    def add(self, jobs: Iterable[JobId], priority: int) -> None:
        """Put jobs in that have one priority; one that is in already stays where it is."""
        for job in jobs:
            place = order(job, priority)
            if place not in self._live:
                self._live.add(place)
                heappush(self._heap, place)

    def discard(self, jobs: Iterable[JobId], priority: int) -> None:
        """Take jobs out that were put in with this priority; one that is not in changes nothing."""
        self._live.difference_update(order(job, priority) for job in jobs)
        if 2 * len(self._live) < len(self._heap):
            # Most places are empty: skipping them one by one would take longer than starting over.
            self._heap = list(self._live)
            heapify(self._heap)

    def first(self, most: int) -> list[Order]:
        """The places of the jobs that should run first, in order, at most so many."""
        return nsmallest(most, self._live)

    def best(self) -> tuple[Order, JobId] | None:
        """The first job and its place, left in; None if there is none."""
        while self._heap:
            first = self._heap[0]
            if first in self._live:
                return first, JobId(first[1], first[2])
            heappop(self._heap)
        return None
