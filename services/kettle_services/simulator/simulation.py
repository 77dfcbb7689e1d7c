"""One simulation: a workload on a platform."""

from collections.abc import Callable, Sequence
from typing import Final

import msgspec
import numpy as np

from kettle_services.simulator.domain.claims import Record, forget
from kettle_services.simulator.domain.pool_rules import PoolRules
from kettle_services.simulator.garbage import seldom_collected
from kettle_services.simulator.invented.never_fits import first_refused, first_too_large, machines_of
from kettle_services.simulator.invented.period_of_workload import END
from kettle_services.simulator.invented.play import LOOKS, Course, Watch, play, unwatched
from kettle_services.simulator.platforms.host_changes import changes
from kettle_services.simulator.platforms.network import TCP, Correction, Network
from kettle_services.simulator.platforms.platform import Platform
from kettle_services.simulator.results.result import Result
from kettle_services.simulator.workloads.dependencies import Dependencies
from kettle_services.simulator.workloads.distributions import Randomness
from kettle_services.simulator.workloads.workload import Workload
from kettle_services.simulator.wrench.batch_service import Discipline
from kettle_services.simulator.wrench.delays import Delays, Oddities
from kettle_services.simulator.wrench.dependent_jobs import DependentJobs
from kettle_services.simulator.wrench.job_runs import NO_DATA
from kettle_services.simulator.wrench.pool import WrenchPool
from kettle_services.simulator.wrench.transfers import Transfers

_PROGRAM: Final = 60 << 20
"""Bytes of the program without any job."""
_AT_ONCE: Final = 1 << 14
"""Jobs whose columns are turned into lists, which take several times the memory."""


class JobTooLargeError(ValueError):
    """A job that no host can hold; nothing was simulated."""

    def __init__(self, job: int, why: str) -> None:
        super().__init__(f"job {job}: {why}")
        self.job = job


class Simulation(msgspec.Struct, frozen=True, kw_only=True):
    """
    The jobs of a workload on all hosts of a platform.

    Without `rules`, as WRENCH models a pool: the hosts are a bare-metal service, or, for a workload of the grid universe, a batch service
    with a discipline of its queue. With the rules of a pool, Kettle's own queue, negotiator and accountant decide.
    """

    platform: Platform
    workload: Workload
    delays: Delays = Delays()
    discipline: Discipline = Discipline.FCFS
    oddities: Oddities = Oddities()
    messages: bool = True
    """In WRENCH's model: control messages take as long as the links between a host and the centre let them."""
    correction: Correction = TCP
    rules: PoolRules | None = None
    seed: int = 0
    """Of failures of hosts."""
    course: Course = Course()
    """How Kettle's deciders are played."""
    until: int = END
    """It ends then, in microseconds, whatever still waits or runs."""

    @seldom_collected()
    def run(self, record: Record = forget, watch: Watch = unwatched) -> Result:
        """
        Play it to its end; `record` receives what Kettle's own queue would have recorded, and `watch` how far it is.

        Raises:
            JobTooLargeError: no host can ever hold a job.
            ValueError: what the chosen model does not know.
        """
        if self.rules is not None:
            self.check()
            return play(
                self.platform,
                self.workload,
                self.rules,
                course=self.course,
                seed=self.seed,
                until=self.until,
                record=record,
                watch=watch,
                correction=self.correction,
            )
        if self.workload.waits is not None:
            return self._run_dependent(self.workload.waits)
        pool = self._empty_pool()
        self._submit_all(pool)
        for moment in self._looks:
            pool.run(until=moment)
            watch(len(self.workload) - pool.open, len(self.workload))
        pool.run(until=self.until)
        hosts = pool.places if self._one_host_each else None
        return Result(
            self.workload,
            self.platform,
            pool.starts,
            pool.ends,
            pool.reported,
            hosts=hosts,
            lost=pool.lost,
            stopped=self._stopped(pool),
        )

    @property
    def memory(self) -> int:
        """About how many bytes it takes to play it, by what runs of up to a million jobs and cores took."""
        jobs, hosts = len(self.workload), len(self.platform.hosts)
        if self.rules is None:
            return _PROGRAM + jobs * 300 + hosts * 2_000
        cores = self.platform.cores + sum(
            pool.max * max((offer.cpus for offer in pool.offers), default=0) for pool in self.course.pools
        )
        return _PROGRAM + jobs * 2_000 + min(jobs, cores) * 3_500 + hosts * 6_000

    @property
    def members(self) -> dict[str, list[str]]:
        """The users of each accounting group and of those below it, if there are groups with jobs."""
        found: dict[str, list[str]] = {}
        if self.rules is None:
            return found
        tree = self.rules.groups.tree
        for user in self.workload.users:
            for number in tree.upward(tree.number_of(user)):
                if number:
                    found.setdefault(tree.groups[number].name, []).append(user)
        return dict(sorted(found.items()))

    def check(self) -> None:
        """
        Whether each job has a host that can hold it.

        Raises:
            JobTooLargeError: there is none for a job.
            ValueError: what the chosen model does not know.
        """
        if self.rules is None:
            self._submit_all(self._empty_pool())
            return
        platform = self.platform.with_more(machines_of(self.course.pools))
        job = first_too_large(platform, self.workload)
        if job is not None:
            cores, memory = int(self.workload.cores[job]), int(self.workload.memory[job])
            raise JobTooLargeError(job, f"no host has {cores} cores and {memory} MiB of memory for a job")
        refused = first_refused(
            platform, self.workload, self.rules.groups.tree, self.course.said, self.course.routes
        )
        if refused is not None:
            raise JobTooLargeError(*refused)

    def _run_dependent(self, waits: Dependencies) -> Result:
        self.check()
        pool = self._empty_pool()
        submit = self._submit_to(pool)
        jobs = DependentJobs(self.workload, waits, submit)
        pool.run(jobs, until=self.until)
        columns = (pool.starts, pool.ends, pool.reported, pool.submitted, pool.places)
        starts, ends, reported, submitted, places = (
            _in_order(column, jobs.jobs, len(self.workload)) for column in columns
        )
        hosts = places if self._one_host_each else None
        lost = [(jobs.jobs[job], start, end) for job, start, end in pool.lost]
        return Result(
            self.workload, self.platform, starts, ends, reported, submitted, hosts, lost, self._stopped(pool)
        )

    @property
    def _looks(self) -> Sequence[int]:
        """When somebody is told how far it is, in the time in which jobs come."""
        if not len(self.workload):
            return ()
        first, last = int(self.workload.submitted[0]), min(int(self.workload.submitted[-1]), self.until)
        return (
            [first + (last - first) * number // LOOKS for number in range(1, LOOKS)] if last > first else ()
        )

    def _stopped(self, pool: WrenchPool) -> int | None:
        return self.until if self.until < END and pool.open else None

    @property
    def _one_host_each(self) -> bool:
        return bool(self.workload.nodes.max(initial=1) == 1)

    def _empty_pool(self) -> WrenchPool:
        hosts = self.platform.hosts
        return WrenchPool(
            bare_metal=() if self.workload.grid else hosts,
            batch=hosts if self.workload.grid else (),
            discipline=self.discipline,
            delays=self.delays,
            oddities=self.oddities,
            messages=self._message_times() if self.messages else (),
            transfers=self._transfers(),
            changes={
                place: changes(host, Randomness(self.seed, f"failures of {host.name}").one)
                for place, host in enumerate(hosts)
                if not host.is_always_there
            },
        )

    def _transfers(self) -> Transfers | None:
        platform = self.platform
        if not platform.links:
            return None
        return Transfers(Network(platform.links, self.correction), platform.ways)

    def _message_times(self) -> Sequence[int]:
        """Of each host, in microseconds; nothing if none takes any time."""
        platform = self.platform
        latencies = [link.latency for link in platform.links]
        if not any(latencies):
            return ()
        factor = self.correction.latency * 1e6
        return [round(sum(latencies[link] for link in way) * factor) for way in platform.ways]

    def _submit_all(self, pool: WrenchPool) -> None:
        """In the order of the workload, at their earliest times."""
        submitted = self.workload.submitted
        for first in range(0, len(submitted), _AT_ONCE):
            some = slice(first, first + _AT_ONCE)
            submit = self._submit_to(pool, some)
            for job, at in enumerate(submitted[some].tolist()):
                try:
                    submit(at, job)
                except ValueError as error:
                    raise JobTooLargeError(first + job, str(error)) from error

    def _submit_to(self, pool: WrenchPool, some: slice = slice(None)) -> Callable[[int, int], int]:
        """The function that submits one of some jobs of the workload, by its place among them, at a time."""
        work = self.workload
        columns = (work.work, work.cores, work.memory, work.nodes, work.limit, work.priority)
        works, cores, memories, nodes, limits, priorities = (column[some].tolist() for column in columns)
        reads, writes = work.reads[some], work.writes[some]
        data = {job: (int(reads[job]), int(writes[job])) for job in np.flatnonzero(reads + writes).tolist()}

        def submit_to_batch(at: int, job: int) -> int:
            return pool.submit_to_batch(
                at,
                works[job],
                nodes=nodes[job],
                cores=cores[job],
                limit=limits[job],
                priority=priorities[job],
                data=data.get(job, NO_DATA),
            )

        def submit(at: int, job: int) -> int:
            return pool.submit(
                at,
                works[job],
                cores=cores[job],
                memory=memories[job],
                priority=priorities[job],
                data=data.get(job, NO_DATA),
            )

        return submit_to_batch if work.grid else submit


def _in_order(column: Sequence[int], jobs: Sequence[int], count: int) -> Sequence[int]:
    """A column of a pool in the order of the workload; -1 for jobs that were never submitted."""
    found = [-1] * count
    for value, job in zip(column, jobs, strict=True):
        found[job] = value
    return found
