"""A period that never was: the machines of a platform, and the submissions of a workload."""

from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Final

import numpy as np

from kettle.matchmaking import Tree
from kettle_services.schedd.domain.queue.fold import Queue
from kettle_services.simulator.domain.machine import Machine, bare, changed
from kettle_services.simulator.domain.period import Happening, Period
from kettle_services.simulator.domain.submitter_sums import Arrivals
from kettle_services.simulator.platforms.hosts import PLENTY, STAYS, Host
from kettle_services.simulator.platforms.platform import Platform
from kettle_services.simulator.workloads.workload import Workload
from kettle_wire.ads import Ad, Scalar
from kettle_wire.events import ClusterSubmitted, MachineJoined, MachineLeft
from kettle_wire.jobs import JobId

SCHEDD: Final = "simulated"
SHARD: Final = f"schedd.{SCHEDD}"
END: Final = 1 << 62
"""Later than anything: a simulation ends with its last job."""
_MOST_MIB: Final = 1 << 40
"""What a host has of which nobody said how much."""
_TOGETHER: Final = ("submitted", "cores", "memory", "priority", "user", "kind")
"""Jobs that are alike in these, one after another, are one submission."""
_FITS: Final = "TARGET.Memory >= RequestMemory && TARGET.Cpus >= RequestCpus"


class KnownDurations:
    """
    How long each job of a workload occupies a core, by its place in the workload and the speed of the host.
    """

    def __init__(self, workload: Workload, firsts: dict[int, int], speeds: Mapping[str, float]) -> None:
        """`firsts` are the first jobs of clusters, `speeds` those of hosts whose speed is not 1."""
        self._work: list[int] = workload.work.tolist()
        self._firsts, self._speeds = firsts, speeds
        self.before = 0
        """From when a slot is given to a job until that runs."""
        self.began: dict[str, int] = {}
        """None has begun before the period."""
        self.estimated: set[str] = set()
        self.endless: set[str] = set()

    def place(self, job: JobId) -> int:
        """In the workload."""
        return self._firsts[job.cluster] + job.proc

    def submitted(self, job: int) -> int:
        """One job is a cluster of its own; the number that this has."""
        cluster = len(self._firsts) + 1
        self._firsts[cluster] = job
        return cluster

    def of(self, job: JobId, stream: str, ad: Callable[[], Mapping[str, Scalar]], startd: str) -> int | None:
        """In microseconds, on a core of that host."""
        work = self._work[self.place(job)]
        return self.before + (round(work / self._speeds[startd]) if startd in self._speeds else work)

    def saved(self, stream: str, elapsed: int) -> int:
        """Jobs that make room begin again from their beginning."""
        return 0


def period_of(
    platform: Platform, workload: Workload, *, groups: Tree, until: int = END, said: Ad | None = None
) -> tuple[Period, KnownDurations]:
    """
    The period, which begins with the first second of the epoch, and where the jobs of the workload are in it.

    `said` is what all machines say of themselves besides. Raises ValueError: a workload of nodes, which only the other model knows.
    """
    if len(workload) and workload.nodes.max() > 1:
        raise ValueError("jobs of several nodes are simulated by the model of a batch service only")
    happenings: list[Happening] = _of_hosts(platform)
    firsts: dict[int, int] = {}
    arrivals = Arrivals()
    for cluster, (first, end) in enumerate(_submissions(workload), 1):
        firsts[cluster] = first
        at = int(workload.submitted[first])
        event = submission(workload, first, end, cluster, groups)
        arrivals.note(event, at)
        happenings.append(Happening(at, SHARD, f"cluster/{cluster}", event))
    speeds = {host.name: host.speed for host in platform.hosts if host.speed != 1.0}
    durations = KnownDurations(workload, firsts, speeds)
    period = Period(
        since=0,
        until=until,
        queues=lambda: {SHARD: Queue(SCHEDD, saved=False)},
        arrivals={SHARD: arrivals},
        works={SHARD: durations},
        machines={host.name: machine_of(host, said) for host in platform.hosts},
        there=[host.name for host in platform.hosts if not host.joins],
        principals={},
        happenings=happenings,
    )
    return period, durations


def submission(workload: Workload, first: int, end: int, cluster: int, groups: Tree) -> ClusterSubmitted:
    """Of the jobs from one on and before another, which are alike."""
    ad = job_ad(workload, first, groups)
    group = ad.get("AcctGroup", "")
    user = workload.users[int(workload.user[first])]
    return ClusterSubmitted(
        cluster=cluster,
        owner=user.removeprefix(f"{group}.") if group else user,
        ad=ad,
        columns=[],
        rows=[[] for _ in range(end - first)],
    )


def _of_hosts(platform: Platform) -> list[Happening]:
    """
    What hosts do that are not there all the time and do not fail; they go before others come, and these before jobs do.
    """
    found: list[Happening] = []
    for host in platform.hosts:
        if host.leaves != STAYS and host.failures is None:
            found.append(goes(host, host.leaves))
        if host.joins and host.failures is None:
            found.append(comes(host, host.joins))
    return sorted(found, key=lambda one: (one.at, isinstance(one.event, MachineJoined)))


def goes(host: Host, at: int) -> Happening:
    """A host goes, with whatever runs on it."""
    left = MachineLeft(machine=host.name, reason="drained")
    return Happening(at, "collector", f"machine/{host.name}", left)


def comes(host: Host, at: int) -> Happening:
    """A host comes."""
    joined = MachineJoined(machine=host.name, cpus=host.cores, memory=_memory(host))
    return Happening(at, "collector", f"machine/{host.name}", joined)


def _submissions(workload: Workload) -> list[tuple[int, int]]:
    """The first job of each, and the one after its last; without those that wait for others."""
    if not len(workload):
        return []
    ready = np.ones(len(workload), dtype=bool) if workload.waits is None else workload.waits.counts == 0
    columns = np.stack([*(getattr(workload, name) for name in _TOGETHER), ready])
    new = np.flatnonzero(np.any(columns[:, 1:] != columns[:, :-1], axis=0)) + 1
    edges = [0, *new.tolist(), len(workload)]
    return [(first, end) for first, end in pairwise(edges) if ready[first]]


def job_ad(workload: Workload, job: int, groups: Tree) -> Ad:
    """
    What a job of the workload says.

    A user `group.name` is that of an accounting group, if the pool has one of that name.
    """
    ad: Ad = {
        "RequestCpus": int(workload.cores[job]),
        "RequestMemory": max(1, int(workload.memory[job])),
        "RequestDisk": 1,
        "JobPrio": int(workload.priority[job]),
    }
    user = workload.users[int(workload.user[job])]
    if number := groups.number_of(user):
        group = user[: len(groups.groups[number].name)]
        ad |= {"AccountingGroup": user, "AcctGroup": group, "AcctGroupUser": user[len(group) + 1 :]}
    return ad | workload.kinds[int(workload.kind[job])].said(_FITS)


def machine_of(host: Host, said: Ad | None = None) -> Machine:
    """The host as a startd describes it, with what else all say."""
    machine = bare(host.name, host.cores, _memory(host))
    more: Ad = dict(said or {})
    if host.speed != 1.0:
        more["Speed"] = host.speed
    return changed(machine, more) if more else machine


def _memory(host: Host) -> int:
    return _MOST_MIB if host.memory == PLENTY else host.memory
