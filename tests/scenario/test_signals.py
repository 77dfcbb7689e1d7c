"""How a job is told to end, and how it is not, in a real pool."""

import asyncio
from contextlib import aclosing
from pathlib import Path

from kettle.client import select
from kettle.testing.patience import PATIENCE_S
from kettle.testing.shared_pool import SharedPool
from kettle_wire.events import JobVacated
from kettle_wire.jobs import JobId

from .evidence import Evidence

HEARER = """\
#!/bin/bash
for name in TERM USR1 USR2 HUP; do trap "echo $name >>$1/$2; exit 0" $name; done
echo ready >>$1/$2
while :; do sleep 0.05; done
"""
KINDS = ("kill_sig = USR1", "remove_kill_sig = 12", "hold_kill_sig = SIGHUP", "want_graceful_removal = false")


async def test_a_job_hears_the_signal_that_it_wants(
    tmp_path: Path, shared_pool: SharedPool, evidence: Evidence
) -> None:
    """
    When it is removed its own, when it is held its own, else the general one; and none if it wants no grace.
    """
    script = evidence.work / "hearer.sh"
    script.write_text(HEARER)
    script.chmod(0o755)
    settings = {"startd": {"machine_max_vacate_time": 600.0}}
    async with (
        shared_pool.lent(cpus=4, settings=settings) as pool,
        asyncio.timeout(PATIENCE_S),
    ):
        jobs: list[JobId] = []
        for number, line in enumerate(KINDS):
            description = f"""\
executable = hearer.sh
arguments = {evidence.directory} {number}
request_memory = 16
request_disk = 1024
{line}
queue
"""
            jobs.append(JobId((await pool.client.submit(description, cwd=evidence.work)).cluster, 0))
        heard = [evidence.directory / str(number) for number in range(len(jobs))]
        while not all(path.exists() and path.read_text() for path in heard):
            await asyncio.sleep(0.05)
        await pool.client.hold(select(str(jobs[2])))
        for job in (jobs[0], jobs[1], jobs[3]):
            await pool.client.remove(select(str(job)))
        for job in jobs:
            async with aclosing(pool.client.follow(job)) as events:
                async for event in events:
                    if isinstance(event.event, JobVacated):
                        break

    assert [["ready", "USR1"], ["ready", "USR2"], ["ready", "HUP"], ["ready"]] == [
        path.read_text().split() for path in heard
    ]
