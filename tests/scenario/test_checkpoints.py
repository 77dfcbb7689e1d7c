"""
Jobs that save what they have done and go on from there, in a real pool: on the same machine, and after it was drained.
"""

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from kettle.client import select
from kettle.testing.patience import PATIENCE_S
from kettle.testing.throwaway_pool import ThrowawayPool
from kettle.userlog import Checkpointed, Terminated
from kettle_wire.ads import Ad
from kettle_wire.events import (
    JobAssigned,
    JobCheckpointed,
    JobCompleted,
    JobHeld,
    JobStarted,
    JobVacated,
)
from kettle_wire.jobs import JobId

from .evidence import Evidence
from .job_log import logged
from .waiting import happened

AT_ONCE: dict[str, dict[str, str | float]] = {"startd": {"checkpoint_pause": 0.01}}
"""Jobs that have saved go on at once."""

COUNTER = """\
#!/bin/sh
# counter DIRECTORY LAST: count to LAST, note each number in DIRECTORY, save after every second one
mkdir -p state
read -r done <state/count || done=0
while [ "$done" -lt "$2" ]; do
    while [ "$done" = 3 ] && [ ! -e "$1/go" ]; do sleep 0.05; done
    done=$((done + 1))
    echo "$done" >>"$1/steps"
    echo "step $done"
    echo "$done" >state/count
    [ $((done % 2)) = 0 ] && exit 85
done
cp state/large large
echo "$done" >result
"""


@pytest.fixture(scope="module")
def configuration() -> dict[str, Any]:
    return {"settings": AT_ONCE}


async def ended(pool: ThrowawayPool, job: JobId) -> Ad:
    """The ad of a job that has left the queue, as soon as accounting knows it."""
    async with asyncio.timeout(PATIENCE_S):
        while not (found := await pool.client.history(select(job))):
            await asyncio.sleep(0.05)
    return found[0]


async def until_empty(directory: Path) -> None:
    """Wait until no file is left below a directory: what a job has saved goes after it has ended."""
    async with asyncio.timeout(PATIENCE_S):
        while any(names for _, _, names in os.walk(directory)):
            await asyncio.sleep(0.05)


def script(evidence: Evidence, text: str) -> None:
    path = evidence.work / "job.sh"
    path.write_text(text)
    path.chmod(0o755)


async def submit(pool: ThrowawayPool, evidence: Evidence, arguments: str, *more: str) -> JobId:
    description = f"""\
executable = job.sh
arguments = {arguments}
output = out
error = err
log = log
checkpoint_exit_code = 85
request_memory = 16
request_disk = 10240
{"".join(f"{line}{os.linesep}" for line in more)}queue
"""
    submitted = await pool.client.submit(description, cwd=evidence.work)
    return JobId(submitted.cluster, 0)


async def test_a_drained_job_goes_on_from_its_checkpoint(pool: ThrowawayPool, evidence: Evidence) -> None:
    """
    No step before the checkpoint is repeated, nothing that was written before it is lost, and large files come along.
    """
    begin = (
        '[ -e state/large ] || { mkdir -p state && head -c 3000000 /dev/zero | tr "\\\\0" x >state/large; }\n'
    )
    script(evidence, COUNTER.replace("mkdir -p state\n", begin))
    job = await submit(
        pool,
        evidence,
        f"{evidence.directory} 5",
        "transfer_checkpoint_files = state",
        "transfer_output_files = result, large",
    )
    first = await happened(pool.client, job, JobCheckpointed)
    while (evidence.directory / "steps").read_text() != "1\n2\n3\n":
        await asyncio.sleep(0.05)
    (ad,) = await pool.client.jobs(select(job))
    machine = str((await pool.client.ads("Machine", constraint="PartitionableSlot"))[0]["Machine"])
    status, _, said = await pool.kettle("drain", "--quick", "--resume-on-completion", machine)
    assert 0 == status, said
    vacated = await happened(pool.client, job, JobVacated)
    (evidence.directory / "go").touch()
    completed = await happened(pool.client, job, JobCompleted)
    done = await ended(pool, job)
    events = [event.event for event in await pool.client.events(job)]
    lines = await logged(evidence.work / "log", Terminated)
    numbers = [event.number for event in lines if event.number not in {6, 40}]

    assert (1, 1, 1, 0) == (first.attempt, first.number, ad["NumCkpts"], ad["CheckpointNumber"])
    assert (1, 1014) == (vacated.attempt, vacated.ending.code)
    assert (2, 0) == (completed.attempt, completed.exit.code)
    assert "1\n2\n3\n3\n4\n5\n" == (evidence.directory / "steps").read_text()
    assert "step 1\nstep 2\nstep 3\nstep 4\nstep 5\n" == (evidence.work / "out").read_text()
    assert ("5\n", 3_000_000) == (
        (evidence.work / "result").read_text(),
        (evidence.work / "large").stat().st_size,
    )
    assert [(1, 1), (2, 1)] == [(e.attempt, e.number) for e in events if isinstance(e, JobCheckpointed)]
    assert (2, 1, 2) == (done["NumCkpts"], done["CheckpointNumber"], done["NumJobStarts"])
    assert [0, 1, 3, 4, 1, 3, 5] == numbers
    assert all(event.sent > 3_000_000 for event in lines if isinstance(event, Checkpointed))
    assert [2, 2] == [sum(isinstance(event, kind) for event in events) for kind in (JobAssigned, JobStarted)]
    await until_empty(pool.home / "state" / "spool")


async def test_a_checkpoint_that_is_not_there_holds_the_job(pool: ThrowawayPool, evidence: Evidence) -> None:
    """Code 36, and the sentence names the file."""
    script(evidence, "#!/bin/sh\nexit 85\n")
    job = await submit(pool, evidence, "", "transfer_checkpoint_files = state/one, state/two")
    held = await happened(pool.client, job, JobHeld)
    assert (36, "the job did not make state/one, state/two for its checkpoint") == (held.code, held.reason)
    await pool.client.remove(select(job))


async def test_services_that_die_meanwhile_lose_no_checkpoint(
    pool: ThrowawayPool, evidence: Evidence
) -> None:
    """Shadow and startd are killed while the job saves again and again: each step is taken once."""
    steps = evidence.directory / "steps"
    script(
        evidence,
        '#!/bin/sh\nread -r done <count || done=0\n[ "$done" = 30 ] && exit 0\n'
        f"done=$((done + 1))\necho $done >count\necho $done >>{steps}\nsleep 0.1\nexit 85\n",
    )
    job = await submit(pool, evidence, "")
    for number, service in ((3, "shadow"), (10, "startd"), (17, "shadow")):
        await happened(pool.client, job, JobCheckpointed, times=number)
        killed = pool.kill(service)
        await pool.restarted(service, after=killed)
    completed = await happened(pool.client, job, JobCompleted)
    done = await ended(pool, job)
    assert (1, 0, 30) == (completed.attempt, completed.exit.code, done["NumCkpts"])
    assert [str(number) for number in range(1, 31)] == steps.read_text().split()


async def test_the_record_is_sound(pool: ThrowawayPool) -> None:
    """After all of this the audit finds nothing."""
    audit = await pool.log_check()
    assert audit.clean, audit.said
