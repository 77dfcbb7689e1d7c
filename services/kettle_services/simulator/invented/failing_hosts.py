"""Hosts of a simulated pool that fail and are repaired."""

from functools import partial

from kettle_services.simulator.domain.clock import COMES
from kettle_services.simulator.domain.simulation import PeriodSimulation
from kettle_services.simulator.invented.period_of_workload import comes, goes
from kettle_services.simulator.platforms.host_changes import Changes, changes
from kettle_services.simulator.platforms.hosts import Host
from kettle_services.simulator.platforms.platform import Platform
from kettle_services.simulator.workloads.distributions import Randomness


class FailingHosts:
    """
    All of a platform; each change is looked at when the one before it happens, because there may be no end of them.
    """

    def __init__(self, platform: Platform, simulation: PeriodSimulation, seed: int) -> None:
        """The seed gives the same failures as in the other model."""
        self._simulation = simulation
        self.last = 0
        """When the last of those that are away comes back, as far as that is known."""
        self.in_vain = 0
        """Changes since somebody has set this to 0."""
        for host in platform.hosts:
            if host.failures is not None:
                found = changes(host, Randomness(seed, f"failures of {host.name}").one)
                if host.joins:
                    next(found)  # it is not there before it joins
                self._plan(host, found)

    def _plan(self, host: Host, found: Changes) -> None:
        change = next(found, None)
        if change is not None:
            at, there = change
            if there:
                self.last = max(self.last, at)
            elif host.notice:
                self._simulation.notice(host.name, at - host.notice)
            self._simulation.clock.at(at, partial(self._change, host, found, at, there), turn=COMES)

    def _change(self, host: Host, found: Changes, at: int, there: bool) -> None:  # noqa: FBT001 - whether it comes
        self.in_vain += 1
        self._simulation.happens(comes(host, at) if there else goes(host, at))
        self._plan(host, found)
