"""
The demonstration of pools of workers: a pool without any machine gets mixed jobs, grows, packs them, and shrinks to nothing.

Its machines are processes of this host; they advertise more cores than there are, so that it shows on a small host, too.
"""

import asyncio
import time
from pathlib import Path
from typing import Final

import msgspec

from kettle.client import Client, select
from kettle.client.explanations.pool_use import PoolFigures, figures
from kettle.client.explanations.worker_pools import (
    jobs_sentence,
    machines_sentence,
    obstacle_sentence,
)
from kettle.terminal.quantities import counted, duration
from kettle.worker_pools.reading import read_pool
from kettle_services.cli.demonstration import (
    DemonstrationPool,
    audited,
    demonstration_pool,
    meter,
    say,
    title,
)
from kettle_services.cli.errors import CommandError
from kettle_services.cli.output.screen import Screen
from kettle_services.cli.pools.reporting import lines
from kettle_wire.commands.worker_pools import PlanExplained
from kettle_wire.leases import LeaseState

DAEMONS: Final = (
    "collector", "negotiator", "schedd", "shadow", "accounting", "iam", "scaler", "provisioner",
)  # fmt: skip
POOL: Final = "demo"
FILE: Final = """\
name = "demo"
max = 6
idle = "3s"
waits = 0

[[offer]]
name = "shared"
provider = "process"
max = 4
cpus = 8
memory = "4 GB"
price = "0.08 EUR"
boot = "2s"

[[offer]]
name = "large"
provider = "process"
cpus = 12
memory = "6 GB"
price = "0.20 EUR"
boot = "2s"
"""
DESCRIPTION: Final = """\
executable = /bin/sleep
arguments = 2
request_memory = 128
queue {small}
request_cpus = 2
queue {medium}
request_cpus = 10
queue {large}
"""
_LEAST: Final = 30
_LEAVE_S: Final = 120.0
"""So long the machines have, when nothing is left to do."""


class ElasticFigures(msgspec.Struct, kw_only=True):
    """What the demonstration showed; seconds."""

    jobs: int
    done: int = 0
    first: float = 0.0
    """From the submission to the end of the first job."""
    took: float = 0.0
    left: int = -1
    """Machines in the end."""
    use: PoolFigures | None = None
    clean: bool = False

    @property
    def right(self) -> bool:
        """Whether everything is as it must be."""
        return self.done == self.jobs and self.left == 0 and self.clean


def run(screen: Screen, *, jobs: int, keep: bool) -> int:
    """Show it; the exit status is 0 if all jobs ended well, no machine is left, and the log is clean."""
    if not _LEAST <= jobs <= 1000:
        raise CommandError(
            f"the demonstration takes between {_LEAST} and 1000 jobs; try kettle demo elastic --jobs 300"
        )
    found = ElasticFigures(jobs=jobs)
    with demonstration_pool(screen, keep=keep) as shown:
        title(screen, "A pool without any machine: only the services that decide")
        shown.up(screen, {"master": {"daemon_list": list(DAEMONS)}, "scaler": {"renew_interval": 1.0}})
        asyncio.run(_show(screen, shown, found))
    if screen.as_json:
        screen.json(found)
    return 0 if found.right else 1


async def _show(screen: Screen, made: DemonstrationPool, found: ElasticFigures) -> None:
    async with Client.connect(home=made.home) as client:
        workers, began = client.worker_pools, time.time()
        title(screen, "A pool file: two offers, at most six machines, each gone after three idle seconds")
        await workers.apply(read_pool(FILE, "demo.toml"))
        cluster = await _submit(client, made.place, found.jobs)
        plan = asyncio.create_task(_first_plan(client))
        with meter(screen, found.jobs) as shown:
            async for progress in client.watch(select(cluster)):
                shown(progress)
                if progress.done and not found.first:
                    found.first = time.time() - began
                found.done = progress.done - len(progress.bad())
                if progress.stuck:
                    break
        found.took = time.time() - began
        say(screen, f"{found.done} jobs in {duration(found.took)}; the first after {duration(found.first)}.")
        title(screen, "Why so many machines: the first plan that ordered some")
        _tell(screen, await plan)
        title(screen, "Nothing is left to do: the machines go")
        await _empty(client, found)
        use = await workers.report(POOL, since=began, now=time.time())
        found.use = figures(use.report.leases, use.used, now=time.time())
        for lease in use.report.leases:
            if lease.accepted:
                say(
                    screen,
                    f"  {lease.lease}: a machine of {lease.offer}, gone after {duration(lease.ended - lease.accepted)}",
                )
        title(screen, "What they were used for")
        for line in lines(found.use):
            say(screen, f"  {line}")
    found.clean, frames = await audited(made.home)
    said = screen.paint("clean", "good") if found.clean else screen.paint("NOT CLEAN", "bad")
    say(screen, f"The log has {counted(frames, 'frame')}, and its audit is {said}.")


async def _submit(client: Client, place: Path, jobs: int) -> int:
    """One cluster of jobs of one, two and ten cores."""
    large, medium = jobs // 50, jobs // 5
    work = place / "jobs"
    work.mkdir(mode=0o700)
    text = DESCRIPTION.format(small=jobs - medium - large, medium=medium, large=large)
    return (await client.submit(text, cwd=work)).cluster


async def _first_plan(client: Client) -> PlanExplained:
    """The first plan that orders machines; plans come every few seconds, as things change."""
    while True:
        leases = await client.worker_pools.leases(POOL)
        if leases.leases:
            return await client.worker_pools.explain(POOL)
        await asyncio.sleep(0.1)


def _tell(screen: Screen, explained: PlanExplained) -> None:
    for waiting in explained.plan.waiting:
        say(
            screen,
            f"  {counted(waiting.jobs, 'job')} of {counted(int(waiting.cpus), 'core')} ({waiting.shape}): {jobs_sentence(waiting)}",
        )
        for obstacle in waiting.obstacles:
            say(screen, f"    {obstacle_sentence(obstacle, now=explained.at)}")
    for planned in explained.plan.machines:
        say(screen, f"  {machines_sentence(planned)}")


async def _empty(client: Client, found: ElasticFigures) -> None:
    """Wait until the pool has no machines any more, which their provider has proven."""
    try:
        async with asyncio.timeout(_LEAVE_S):
            while leases := (await client.worker_pools.leases(POOL)).leases:
                found.left = len(leases)
                await asyncio.sleep(0.2)
    except TimeoutError:
        return
    gone = await client.worker_pools.leases(POOL, states=[LeaseState.GONE])
    found.left = 0 if gone.leases else -1
