"""
A batch service: its own queue over nodes that jobs share by cores.

Jobs start in order, or with backfilling: a later one may start at once where that delays, as far as the time limits tell, no earlier one
(conservative) or not the first one (EASY; Mu'alem and Feitelson, IEEE Transactions on Parallel and Distributed Systems 12, 2001).
"""

from collections import deque
from collections.abc import Container, Sequence
from enum import StrEnum
from typing import Final

import numpy as np

from kettle_services.simulator.platforms.hosts import Host
from kettle_services.simulator.wrench.bare_metal import AWAY
from kettle_services.simulator.wrench.pending_jobs import Shape
from kettle_services.simulator.wrench.profile import Profile

PADDING: Final = 5_000_000
"""Microseconds after its time limit at which the end of a job is expected, as in WRENCH."""


class Discipline(StrEnum):
    """Which jobs of the queue may start."""

    FCFS = "fcfs"
    """The first one only."""
    CONSERVATIVE = "conservative"
    """Those, too, that delay no earlier one."""
    EASY = "easy"
    """Those, too, that do not delay the first one."""


class BatchService:
    """
    Waiting jobs, and the cores of the nodes; who calls it knows the time, in microseconds.

    `shapes` and `limits` are those of all jobs, by number; they grow while jobs come.
    """

    def __init__(
        self,
        nodes: Sequence[Host],
        shapes: Sequence[Shape],
        limits: Sequence[int],
        discipline: Discipline = Discipline.FCFS,
    ) -> None:
        self._nodes = list(nodes)
        self._shapes = shapes
        self._limits = limits
        self._discipline = discipline
        self._idle = [node.cores for node in nodes]
        self._waiting: deque[int] = deque()
        self._running: dict[int, list[int]] = {}
        """The nodes of each job that runs."""
        self._expected: dict[int, int] = {}
        """When it ends at the latest, as far as the queue knows; only backfilling asks."""
        self._first = 0
        """No node before this one has an idle core."""

    def can_ever_hold(self, shape: Shape) -> bool:
        """Whether so many nodes have so many cores each."""
        return sum(node.cores >= shape.cores for node in self._nodes) >= shape.more

    def speed(self, job: int) -> float:
        """Of the slowest node of a job that runs."""
        return min(self._nodes[node].speed for node in self._running[job])

    def first_node(self, job: int) -> int:
        """Of a job that runs."""
        return self._running[job][0]

    def jobs_on(self, node: int) -> list[int]:
        """All that run there, with this or other nodes."""
        return [job for job, nodes in self._running.items() if node in nodes]

    def go(self, node: int) -> None:
        """A node is not there any more; what runs on it ends later."""
        self._idle[node] -= AWAY

    def come(self, node: int) -> None:
        """It is there again."""
        self._idle[node] += AWAY
        self._first = min(self._first, node)

    def has_hope(self, gone: Container[int]) -> bool:
        """Whether the first job that waits could run on nodes that have not gone for good."""
        if not self._waiting:
            return False
        shape = self._shapes[self._waiting[0]]
        there = (node.cores for place, node in enumerate(self._nodes) if place not in gone)
        return sum(cores >= shape.cores for cores in there) >= shape.more

    def submit(self, job: int) -> None:
        """A job waits for nodes, and cores on each."""
        self._waiting.append(job)

    def end(self, job: int) -> None:
        """A job is over."""
        for node in self._running.pop(job):
            self._idle[node] += self._shapes[job].cores
            self._first = min(self._first, node)
        self._expected.pop(job, None)

    def start(self, now: int) -> list[int]:
        """The jobs that start now."""
        started = self._start_first_ones(now)
        if self._discipline is not Discipline.FCFS and len(self._waiting) > 1:
            started += self._backfill(now)
        return started

    def _start_first_ones(self, now: int) -> list[int]:
        """Until one does not fit."""
        started: list[int] = []
        while self._waiting:
            found = self._nodes_with(self._shapes[self._waiting[0]])
            if found is None:
                break
            started.append(self._waiting.popleft())
            self._begin(started[-1], found, now)
        return started

    def _backfill(self, now: int) -> list[int]:
        ends = (
            (max(self._expected[job], now), nodes, self._shapes[job].cores)
            for job, nodes in self._running.items()
        )
        profile = Profile(now, np.array(self._idle, dtype=np.int64), ends)
        hopeless: dict[Shape, int] = {}
        """The shortest duration for which a shape did not fit at once."""
        started: list[int] = []
        for place, job in enumerate(self._waiting):
            shape, duration = self._shapes[job], self._limits[job] + PADDING
            found = None
            if duration < hopeless.get(shape, duration + 1):
                found = profile.now(shape.more, shape.cores, duration)
            if found is not None:
                started.append(job)
                self._begin(job, found, now)
                profile.reserve(now, duration, found, shape.cores)
                continue
            hopeless[shape] = duration
            if self._discipline is Discipline.CONSERVATIVE or place == 0:
                planned = profile.earliest(shape.more, shape.cores, duration)
                if planned is not None:
                    profile.reserve(planned[0], duration, planned[1], shape.cores)
        gone = set(started)
        self._waiting = deque(job for job in self._waiting if job not in gone)
        return started

    def _begin(self, job: int, nodes: list[int], now: int) -> None:
        cores = self._shapes[job].cores
        for node in nodes:
            self._idle[node] -= cores
        self._running[job] = nodes
        if self._discipline is not Discipline.FCFS:
            self._expected[job] = now + self._limits[job] + PADDING

    def _nodes_with(self, shape: Shape) -> list[int] | None:
        idle = self._idle
        while self._first < len(idle) and not idle[self._first]:
            self._first += 1
        found: list[int] = []
        for node in range(self._first, len(idle)):
            if idle[node] >= shape.cores:
                found.append(node)
                if len(found) == shape.more:
                    return found
        return None
