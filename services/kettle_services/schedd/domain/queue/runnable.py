"""The jobs of one autocluster that may run now, best first."""

from collections.abc import Iterator, Sequence
from heapq import heapify, heappop, heappush, nsmallest
from itertools import groupby, islice
from typing import Final

from kettle_wire.jobs import JobId

PAGE: Final = 256
"""Jobs of a cluster whose presence is one number: a queue of a hundred thousand is four hundred of them."""

Order = tuple[int, int, int]
"""Sorts as HTCondor orders a submitter's jobs: JobPrio descending, then cluster, then proc."""
_Page = Order
"""Instead of the proc, the number of the page that it is in: pages sort as their jobs do."""


class Runnable:
    """
    A priority queue that forgets cheaply: a page that has become empty is skipped when it comes to the front.

    A job leaves the place that it had, so that it can come back with another priority.
    """

    def __init__(self) -> None:
        self._pages: dict[_Page, int] = {}
        """Which jobs of a page are in, as bits; there is none without a job."""
        self._heap: list[_Page] = []
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, jobs: Sequence[JobId], priority: int) -> None:
        """
        Put jobs of one cluster in that have one priority, in their order and each once; one that is in already stays where it is.
        """
        for page, bits in _bits(jobs, -priority):
            before = self._pages.get(page, 0)
            if not before:
                heappush(self._heap, page)
            self._pages[page] = before | bits
            self._count += (bits & ~before).bit_count()

    def discard(self, jobs: Sequence[JobId], priority: int) -> None:
        """
        Take jobs of one cluster out that were put in with this priority, in their order; one that is not in changes nothing.
        """
        for page, bits in _bits(jobs, -priority):
            before = self._pages.get(page, 0)
            if after := before & ~bits:
                self._pages[page] = after
            elif before:
                del self._pages[page]
            self._count -= (before & bits).bit_count()
        if 2 * len(self._pages) < len(self._heap):
            # Most pages are empty: skipping them one by one would take longer than starting over.
            self._heap = list(self._pages)
            heapify(self._heap)

    def first(self, most: int) -> list[Order]:
        """The places of the jobs that should run first, in order, at most so many."""
        return list(islice(self._places(most), most))

    def _places(self, pages: int) -> Iterator[Order]:
        for urgency, cluster, page in nsmallest(pages, self._pages):
            left = self._pages[urgency, cluster, page]
            while left:
                yield urgency, cluster, page * PAGE + _lowest(left)
                left &= left - 1

    def best(self) -> tuple[Order, JobId] | None:
        """The first job and its place, left in; None if there is none."""
        while self._heap:
            urgency, cluster, page = first = self._heap[0]
            if (bits := self._pages.get(first)) is not None:
                proc = page * PAGE + _lowest(bits)
                return (urgency, cluster, proc), JobId(cluster, proc)
            heappop(self._heap)
        return None


def _lowest(bits: int) -> int:
    """The place of the lowest bit that is set."""
    return (bits & -bits).bit_length() - 1


def _bits(jobs: Sequence[JobId], urgency: int) -> Iterator[tuple[_Page, int]]:
    """By page, which of its jobs these are."""
    cluster, first, last = jobs[0].cluster, jobs[0].proc, jobs[-1].proc
    if last - first == len(jobs) - 1:  # all from the first to the last
        for page in range(first // PAGE, last // PAGE + 1):
            start, end = max(first - page * PAGE, 0), min(last + 1 - page * PAGE, PAGE)
            yield (urgency, cluster, page), (1 << end) - (1 << start)
        return
    for page, some in groupby(jobs, key=lambda job: job.proc // PAGE):
        bits = 0
        for job in some:
            bits |= 1 << job.proc % PAGE
        yield (urgency, cluster, page), bits
