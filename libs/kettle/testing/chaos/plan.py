"""What a run is to do, and who is told how it goes on."""

from collections.abc import Sequence
from typing import Final, Protocol

import msgspec

from kettle.testing.chaos.liveness import Pulse
from kettle.testing.chaos.nemesis import Outcome
from kettle.testing.chaos.schedule import Fault
from kettle.testing.chaos.workload import Workload

WITH_IAM: Final = ("collector", "negotiator", "schedd", "shadow", "startd", "accounting", "iam")
"""The services of a personal pool, and an iam with people, programs and machines that ask it."""


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be done."""

    seed: int
    seconds: float = 60.0
    every: float = 5.0
    """Seconds between the beginnings of two faults, on average."""
    longest: float = 8.0
    """Seconds, of the faults that last."""
    faults: tuple[str, ...] = ()
    """Patterns of faults, as in `kettle.testing.chaos.schedule.chosen`; empty: all."""
    jobs: int = 0
    """The most jobs that are submitted; 0: no limit."""
    depth: int = 120
    """Jobs that are kept in the queue."""
    nodes: int = 1
    """Some of the jobs have up to so many nodes, which run at the same time."""
    cpus: int = 8
    bound: float = 90.0
    """
    Seconds: the longest that the pool may take to work again after a fault, and to become idle at the end.
    """
    disk_mib: int = 2048
    daemons: tuple[str, ...] = WITH_IAM
    """The services, as in `[master] daemon_list`; empty: those of a personal pool, which has no iam."""


class Watcher(Protocol):
    """Who is told how a run goes on."""

    def phase(self, what: str) -> None:
        """Something else begins."""
        ...

    def planned(self, faults: Sequence[Fault]) -> None:
        """These are to be made."""
        ...

    def fault(self, outcome: Outcome) -> None:
        """A fault is over."""
        ...

    def watching(self, pulse: Pulse, workload: Workload) -> None:
        """These have counts to show."""
        ...
