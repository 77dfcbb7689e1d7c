"""A period that never was: the machines of a platform, and the submissions of a workload."""

from collections.abc import Mapping
from itertools import pairwise
from typing import Final

import numpy as np

from kettle_services.schedd.domain.queue.fold import Queue
from kettle_services.simulator.domain.machine import Machine, bare
from kettle_services.simulator.domain.period import Happening, Period
from kettle_services.simulator.domain.submitter_sums import Arrivals
from kettle_services.simulator.platforms.hosts import PLENTY, Host
from kettle_services.simulator.platforms.platform import Platform
from kettle_services.simulator.workloads.workload import Workload
from kettle_wire.ads import Ad, Expr, Scalar
from kettle_wire.events import ClusterSubmitted
from kettle_wire.jobs import JobId

SCHEDD: Final = "simulated"
SHARD: Final = f"schedd.{SCHEDD}"
_END: Final = 1 << 62
"""Later than anything: a simulation ends with its last job."""
_MOST_MIB: Final = 1 << 40
"""What a host has of which nobody said how much."""
_TOGETHER: Final = ("submitted", "cores", "memory", "priority", "user")
"""Jobs that are alike in these, one after another, are one submission."""


class KnownDurations:
    """How long each job of a workload occupies a core, by its place in the workload."""

    def __init__(self, workload: Workload, firsts: Mapping[int, int]) -> None:
        self._work = workload.work
        self._firsts = firsts
        self.began: dict[str, int] = {}
        """None has begun before the period."""
        self.estimated: set[str] = set()
        self.endless: set[str] = set()

    def place(self, job: JobId) -> int:
        """In the workload."""
        return self._firsts[job.cluster] + job.proc

    def of(self, job: JobId, stream: str, ad: Mapping[str, Scalar]) -> int | None:
        """In microseconds, on a core of speed 1."""
        return int(self._work[self.place(job)])

    def saved(self, stream: str, elapsed: int) -> int:
        """Jobs that make room begin again from their beginning."""
        return 0


def period_of(platform: Platform, workload: Workload) -> tuple[Period, KnownDurations]:
    """
    The period, which begins with the first second of the epoch, and where the jobs of the workload are in it.

    Raises ValueError: a workload of nodes, or hosts of different speeds, which only the other model knows.
    """
    if len(workload) and workload.nodes.max() > 1:
        raise ValueError("jobs of several nodes are simulated by the model of a batch service only")
    if any(host.speed != 1.0 for host in platform.hosts):
        raise ValueError("hosts of another speed than 1 are simulated by WRENCH's model only")
    happenings: list[Happening] = []
    firsts: dict[int, int] = {}
    arrivals = Arrivals()
    for cluster, (first, end) in enumerate(_submissions(workload), 1):
        firsts[cluster] = first
        at = int(workload.submitted[first])
        event = ClusterSubmitted(
            cluster=cluster,
            owner=workload.users[int(workload.user[first])],
            ad=_ad(workload, first),
            columns=[],
            rows=[[] for _ in range(end - first)],
        )
        arrivals.note(event, at)
        happenings.append(Happening(at, SHARD, f"cluster/{cluster}", event))
    durations = KnownDurations(workload, firsts)
    machines = {host.name: _machine(host) for host in platform.hosts}
    period = Period(
        since=0,
        until=_END,
        queues=lambda: {SHARD: Queue(SCHEDD)},
        arrivals={SHARD: arrivals},
        works={SHARD: durations},
        machines=machines,
        there=list(machines),
        principals={},
        happenings=happenings,
    )
    return period, durations


def _submissions(workload: Workload) -> list[tuple[int, int]]:
    """The first job of each, and the one after its last."""
    if not len(workload):
        return []
    columns = np.stack([getattr(workload, name) for name in _TOGETHER])
    new = np.flatnonzero(np.any(columns[:, 1:] != columns[:, :-1], axis=0)) + 1
    edges = [0, *new.tolist(), len(workload)]
    return list(pairwise(edges))


def _ad(workload: Workload, job: int) -> Ad:
    return {
        "RequestCpus": int(workload.cores[job]),
        "RequestMemory": max(1, int(workload.memory[job])),
        "RequestDisk": 1,
        "JobPrio": int(workload.priority[job]),
        "Requirements": Expr("TARGET.Memory >= RequestMemory && TARGET.Cpus >= RequestCpus"),
    }


def _machine(host: Host) -> Machine:
    return bare(host.name, host.cores, _MOST_MIB if host.memory == PLENTY else host.memory)
