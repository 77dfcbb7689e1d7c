"""One simulation: a workload on a platform."""

import msgspec

from kettle_services.simulator.domain.clock import US
from kettle_services.simulator.domain.pool_rules import PoolRules
from kettle_services.simulator.invented.play import first_too_large, play
from kettle_services.simulator.platforms.platform import Platform
from kettle_services.simulator.results.result import Result
from kettle_services.simulator.workloads.workload import Workload
from kettle_services.simulator.wrench.batch_service import Discipline
from kettle_services.simulator.wrench.delays import Delays, Oddities
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
    step: int = US
    """Microseconds between two cycles of Kettle's negotiator at least."""

    def run(self) -> Result:
        """
        Play it to its end.

        Raises:
            JobTooLargeError: no host can ever hold a job.
            ValueError: what the chosen model does not know.
        """
        if self.rules is not None:
            self.check()
            return play(self.platform, self.workload, self.rules, step=self.step)
        pool = self._pool()
        pool.run()
        return Result(self.workload, self.platform, pool.starts, pool.ends, pool.reported)

    def check(self) -> None:
        """Whether each job has a host that can hold it.  Raises JobTooLargeError."""
        if self.rules is None:
            self._pool()
            return
        job = first_too_large(self.platform, self.workload)
        if job is not None:
            cores, memory = int(self.workload.cores[job]), int(self.workload.memory[job])
            raise JobTooLargeError(job, f"no host has {cores} cores and {memory} MiB of memory for a job")

    def _pool(self) -> WrenchPool:
        """With all jobs submitted."""
        work, hosts = self.workload, self.platform.hosts
        pool = WrenchPool(
            bare_metal=() if work.grid else hosts,
            batch=hosts if work.grid else (),
            discipline=self.discipline,
            delays=self.delays,
            oddities=self.oddities,
        )
        columns = (work.submitted, work.work, work.cores, work.memory, work.nodes, work.limit, work.priority)
        for job, (at, duration, cores, memory, nodes, limit, priority) in enumerate(
            zip(*(column.tolist() for column in columns), strict=True)
        ):
            try:
                if work.grid:
                    pool.submit_to_batch(
                        at, duration, nodes=nodes, cores=cores, limit=limit, priority=priority
                    )
                else:
                    pool.submit(at, duration, cores=cores, memory=memory, priority=priority)
            except ValueError as error:
                raise JobTooLargeError(job, str(error)) from error
        return pool
