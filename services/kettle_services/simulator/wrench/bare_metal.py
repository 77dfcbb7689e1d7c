"""Bare-metal services: hosts whose idle cores and memory jobs take at once, the first host first."""

from collections.abc import Container, Sequence
from heapq import heapify, heappop, heappush
from typing import Final

from kettle_services.simulator.platforms.hosts import Host

AWAY: Final = 1 << 40
"""Cores that a host lacks while it is not there."""


class BareMetal:
    """All hosts of all bare-metal services, in the order in which the services are asked."""

    def __init__(self, hosts: Sequence[Host]) -> None:
        self._cores = [host.cores for host in hosts]
        self._memory = [host.memory for host in hosts]
        self.hosts = list(hosts)
        self._candidates: dict[tuple[int, int], list[int]] = {}
        """For each shape (cores, MiB) a heap of hosts, among them all that can hold one more job of it."""
        self._listed: dict[tuple[int, int], bytearray] = {}

    def add(self, host: Host) -> None:
        """A further host joins, as the machine of a cloud does that has booted."""
        self.hosts.append(host)
        self._cores.append(host.cores)
        self._memory.append(host.memory)
        for listed in self._listed.values():
            listed.append(0)
        self._offer(len(self.hosts) - 1)

    def can_ever_hold(self, cores: int, memory: int) -> bool:
        """Whether one host is large enough when nothing else runs on it."""
        return any(cores <= host.cores and memory <= host.memory for host in self.hosts)

    def speed(self, host: int) -> float:
        """How many seconds of work of a core of speed 1 it does in a second."""
        return self.hosts[host].speed

    def first_with(self, cores: int, memory: int) -> int | None:
        """The first host that can hold a job now."""
        shape = cores, memory
        heap = self._candidates.get(shape)
        if heap is None:
            heap = self._candidates[shape] = [
                host for host in range(len(self.hosts)) if self.holds(host, cores, memory)
            ]
            heapify(heap)
            listed = self._listed[shape] = bytearray(len(self.hosts))
            for host in heap:
                listed[host] = 1
        while heap:
            host = heap[0]
            if self.holds(host, cores, memory):
                return host
            heappop(heap)
            self._listed[shape][host] = 0
        return None

    def take(self, host: int, cores: int, memory: int) -> None:
        """A job occupies a part of a host."""
        self._cores[host] -= cores
        self._memory[host] -= memory

    def free(self, host: int, cores: int, memory: int) -> None:
        """It is over."""
        self._cores[host] += cores
        self._memory[host] += memory
        self._offer(host)

    def go(self, host: int) -> None:
        """A host is not there any more; what runs on it is freed later."""
        self._cores[host] -= AWAY

    def come(self, host: int) -> None:
        """It is there again."""
        self._cores[host] += AWAY
        self._offer(host)

    def has_hope(self, cores: int, memory: int, gone: Container[int]) -> bool:
        """Whether a host that has not gone for good is large enough."""
        return any(
            cores <= host.cores and memory <= host.memory
            for place, host in enumerate(self.hosts)
            if place not in gone
        )

    def holds(self, host: int, cores: int, memory: int) -> bool:
        """Whether it can hold one more job now."""
        return cores <= self._cores[host] and memory <= self._memory[host]

    def _offer(self, host: int) -> None:
        for shape, heap in self._candidates.items():
            listed = self._listed[shape]
            if not listed[host] and self.holds(host, *shape):
                listed[host] = 1
                heappush(heap, host)
