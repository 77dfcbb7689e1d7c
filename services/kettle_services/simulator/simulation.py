"""One simulation: a workload on a platform."""

from collections.abc import Callable, Sequence

import msgspec

from kettle_services.simulator.domain.claims import Record, forget
from kettle_services.simulator.domain.pool_rules import PoolRules
from kettle_services.simulator.invented.never_fits import first_refused, first_too_large
from kettle_services.simulator.invented.play import Course, play
from kettle_services.simulator.platforms.platform import Platform
from kettle_services.simulator.results.result import Result
from kettle_services.simulator.workloads.dependencies import Dependencies
from kettle_services.simulator.workloads.workload import Workload
from kettle_services.simulator.wrench.batch_service import Discipline
from kettle_services.simulator.wrench.delays import Delays, Oddities
from kettle_services.simulator.wrench.dependent_jobs import DependentJobs
from kettle_services.simulator.wrench.pool import WrenchPool


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
    rules: PoolRules | None = None
    course: Course = Course()
    """How Kettle's deciders are played."""

    def run(self, record: Record = forget) -> Result:
        """
        Play it to its end; `record` receives what Kettle's own queue would have recorded.

        Raises:
            JobTooLargeError: no host can ever hold a job.
            ValueError: what the chosen model does not know.
        """
        if self.rules is not None:
            self.check()
            return play(self.platform, self.workload, self.rules, course=self.course, record=record)
        if self.workload.waits is not None:
            return self._run_dependent(self.workload.waits)
        pool = self._empty_pool()
        self._submit_all(pool)
        pool.run()
        return Result(self.workload, self.platform, pool.starts, pool.ends, pool.reported)

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
        if self.workload.waits is not None:
            raise ValueError("jobs that wait for others are simulated by WRENCH's model only")
        job = first_too_large(self.platform, self.workload)
        if job is not None:
            cores, memory = int(self.workload.cores[job]), int(self.workload.memory[job])
            raise JobTooLargeError(job, f"no host has {cores} cores and {memory} MiB of memory for a job")
        refused = first_refused(self.platform, self.workload, self.rules.groups.tree, self.course.said)
        if refused is not None:
            raise JobTooLargeError(*refused)

    def _run_dependent(self, waits: Dependencies) -> Result:
        self.check()
        pool = self._empty_pool()
        submit = self._submit_to(pool)
        jobs = DependentJobs(self.workload, waits, submit)
        pool.run(jobs)
        columns = (pool.starts, pool.ends, pool.reported, pool.submitted)
        starts, ends, reported, submitted = (_in_order(column, jobs.jobs) for column in columns)
        return Result(self.workload, self.platform, starts, ends, reported, submitted)

    def _empty_pool(self) -> WrenchPool:
        hosts = self.platform.hosts
        return WrenchPool(
            bare_metal=() if self.workload.grid else hosts,
            batch=hosts if self.workload.grid else (),
            discipline=self.discipline,
            delays=self.delays,
            oddities=self.oddities,
        )

    def _submit_all(self, pool: WrenchPool) -> None:
        """In the order of the workload, at their earliest times."""
        submit = self._submit_to(pool)
        for job, at in enumerate(self.workload.submitted.tolist()):
            try:
                submit(at, job)
            except ValueError as error:
                raise JobTooLargeError(job, str(error)) from error

    def _submit_to(self, pool: WrenchPool) -> Callable[[int, int], int]:
        """The function that submits a job of the workload at a time."""
        work = self.workload
        columns = (work.work, work.cores, work.memory, work.nodes, work.limit, work.priority)
        works, cores, memories, nodes, limits, priorities = (column.tolist() for column in columns)

        def submit_to_batch(at: int, job: int) -> int:
            return pool.submit_to_batch(
                at,
                works[job],
                nodes=nodes[job],
                cores=cores[job],
                limit=limits[job],
                priority=priorities[job],
            )

        def submit(at: int, job: int) -> int:
            return pool.submit(
                at, works[job], cores=cores[job], memory=memories[job], priority=priorities[job]
            )

        return submit_to_batch if work.grid else submit


def _in_order(column: Sequence[int], jobs: Sequence[int]) -> Sequence[int]:
    """A column of a pool in the order of the workload."""
    found = [0] * len(jobs)
    for value, job in zip(column, jobs, strict=True):
        found[job] = value
    return found
