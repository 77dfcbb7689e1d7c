"""A batch service: its own queue, first come first served, over nodes that jobs share by cores."""

from collections import deque
from collections.abc import Sequence

from kettle_services.simulator.platforms.hosts import Host
from kettle_services.simulator.wrench.pending_jobs import Shape


class BatchService:
    """Waiting jobs, and the cores of the nodes; who calls it knows the time."""

    def __init__(self, nodes: Sequence[Host]) -> None:
        self._nodes = list(nodes)
        self._idle = [node.cores for node in nodes]
        self._waiting: deque[int] = deque()
        self._shapes: deque[Shape] = deque()
        """Of those that wait."""
        self._used: dict[int, list[int]] = {}
        self._first = 0
        """No node before this one has an idle core."""

    def can_ever_hold(self, shape: Shape) -> bool:
        """Whether so many nodes have so many cores each."""
        return sum(node.cores >= shape.cores for node in self._nodes) >= shape.more

    def speed(self, job: int) -> float:
        """Of the slowest node of a job that runs."""
        return min(self._nodes[node].speed for node in self._used[job])

    def submit(self, job: int, shape: Shape) -> None:
        """A job waits for nodes, and cores on each."""
        self._waiting.append(job)
        self._shapes.append(shape)

    def end(self, job: int, shape: Shape) -> None:
        """A job is over."""
        for node in self._used.pop(job):
            self._idle[node] += shape.cores
            self._first = min(self._first, node)

    def start(self) -> list[int]:
        """The jobs that start now: the first ones that wait, until one does not fit."""
        started: list[int] = []
        while self._waiting:
            shape = self._shapes[0]
            found = self._nodes_with(shape)
            if found is None:
                break
            self._shapes.popleft()
            for node in found:
                self._idle[node] -= shape.cores
            self._used[job := self._waiting.popleft()] = found
            started.append(job)
        return started

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
