"""The data of jobs on their way over a simulated network, in the whole microseconds of a pool."""

import math
from collections.abc import Sequence
from typing import Final

from kettle_services.simulator.platforms.network import Network

_US: Final = 1e6


class Transfers:
    """
    At most one for each job at a time; `ways` are the links between each host and where all of them meet.
    """

    def __init__(self, network: Network, ways: Sequence[Sequence[int]]) -> None:
        self._network = network
        self._ways = ways
        self._jobs: dict[int, int] = {}
        """By the transfer's number in the network."""

    def begin(self, now: int, job: int, host: int, size: int) -> None:
        """So many bytes between a job on a host and the centre."""
        self._jobs[self._network.begin(now / _US, self._ways[host], float(size))] = job

    def ended(self, now: int) -> list[int]:
        """The jobs whose transfers have ended by now."""
        return [self._jobs.pop(transfer) for transfer in self._network.ended(now / _US)]

    def cancel(self, now: int, job: int) -> None:
        """What is on its way for a job is not needed any more."""
        for transfer in [transfer for transfer, owner in self._jobs.items() if owner == job]:
            del self._jobs[transfer]
            self._network.cancel(now / _US, transfer)

    def next_change(self, now: int) -> int | None:
        """When it has to be asked again at the latest; later than now, and never if nothing is on its way."""
        change = self._network.next_change()
        return None if change is None else max(now + 1, math.ceil(change * _US))
