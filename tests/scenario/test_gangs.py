"""Jobs of several nodes, in a real pool: all of them together or none, and one end for all."""

import asyncio
import os
import signal
from collections import Counter
from typing import Any

import pytest

from kettle.client import select
from kettle.testing.patience import PATIENCE_S
from kettle.testing.throwaway_pool import ThrowawayPool
from kettle.userlog import Terminated
from kettle.userlog.event_to_ad import number_of
from kettle_wire.events import JobCompleted, JobNodeEnded, JobNodeStarted, JobStarted, JobVacated
from kettle_wire.jobs import JobId

from .evidence import Evidence
from .job_log import logged
from .waiting import explained, happened, there

SMALL = "request_memory = 16\nrequest_disk = 1024\n"
MEET = """\
#!/bin/sh
# meet DIRECTORY: node 0 waits for all others, and these until they are ended
touch "$1/$_CONDOR_PROCNO"
if [ "$_CONDOR_PROCNO" -gt 0 ]; then exec sleep 600; fi
while [ "$(ls "$1" | wc -l)" -lt "$_CONDOR_NPROCS" ]; do sleep 0.05; done
ls "$1" | tr '\\n' ' '
exit 3
"""


@pytest.fixture(scope="module")
def configuration() -> dict[str, Any]:
    return {"cpus": 4}


async def submit(
    pool: ThrowawayPool, evidence: Evidence, script: str, *, nodes: int = 3, more: str = ""
) -> JobId:
    """A job of so many nodes, each of which runs the script with the directory of the evidence."""
    path = evidence.work / "node.sh"
    path.write_text(script)
    path.chmod(0o755)
    description = f"""\
universe = parallel
machine_count = {nodes}
executable = node.sh
arguments = {evidence.directory} $(ClusterId)
output = out.$(Node)
error = err.$(Node)
log = log
{SMALL}{more}queue
"""
    submitted = await pool.client.submit(description, cwd=evidence.work)
    return JobId(submitted.cluster, 0)


async def have_run(evidence: Evidence, times: int) -> None:
    """Wait until each of three nodes has said so many times that it runs, and no more."""
    files = [evidence.directory / str(node) for node in range(3)]
    await there(*files)
    async with asyncio.timeout(PATIENCE_S):
        while [times] * 3 != [len(file.read_text().split()) for file in files]:
            await asyncio.sleep(0.05)


async def test_nodes_run_at_the_same_time_and_node_0_ends_all(
    pool: ThrowawayPool, evidence: Evidence
) -> None:
    """Three nodes have the ranks 0, 1 and 2, know of each other, and end with the exit of node 0."""
    job = await submit(pool, evidence, MEET)
    done = await happened(pool.client, job, JobCompleted)
    assert done.exit.code == 3
    assert (evidence.work / "out.0").read_text() == "0 1 2 "


async def test_a_job_gets_all_of_its_slots_or_none(pool: ThrowawayPool, evidence: Evidence) -> None:
    """
    One node more than there are slots: nothing of it starts, and a job that fits is not kept waiting by it.
    """
    large = await submit(pool, evidence, "#!/bin/sh\nexit 1\n", nodes=5)
    said = await explained(pool, str(large), "gave none to jobs like it")
    assert "It needs 5 slots at the same time" in said
    done = await happened(pool.client, await submit(pool, evidence, MEET, nodes=4), JobCompleted)
    assert done.exit.code == 3
    [ad] = (await pool.client.queue(select(str(large)))).jobs
    assert (0, 0) == (ad["NumJobMatches"], ad["CurrentHosts"])


async def test_a_job_takes_as_many_slots_as_there_are_within_its_range(
    pool: ThrowawayPool, evidence: Evidence
) -> None:
    """
    With three of four slots free it has three nodes of the two to nine that it may have, which know of each other.
    """
    other = await pool.client.submit(
        f"executable = /bin/sleep\narguments = 600\ntransfer_executable = false\n{SMALL}queue\n",
        cwd=evidence.work,
    )
    await happened(pool.client, JobId(other.cluster, 0), JobStarted)
    done = await happened(
        pool.client,
        await submit(pool, evidence, MEET, nodes=9, more="My.MinHosts = 2\n"),
        JobCompleted,
    )
    assert done.exit.code == 3
    assert (evidence.work / "out.0").read_text() == "0 1 2 "
    await pool.client.remove(select(other.cluster))


async def test_a_job_that_waits_for_all_of_its_nodes_has_the_results_of_each(
    pool: ThrowawayPool, evidence: Evidence
) -> None:
    """
    Node 0 ends first, and the job with the last one; its log tells of each node, and the exit is that of node 0.
    """
    script = """\
#!/bin/sh
if [ "$_CONDOR_PROCNO" -gt 0 ]; then while [ ! -e "$1/go" ]; do sleep 0.05; done; fi
echo "$_CONDOR_PROCNO of $_CONDOR_NPROCS on $(wc -l <"$MACHINE_FILE") machines"
exit $((4 + _CONDOR_PROCNO))
"""
    wish = '+ParallelShutdownPolicy = "WAIT_FOR_ALL"\n'
    job = await submit(pool, evidence, script, more=wish)
    first = await happened(pool.client, job, JobNodeEnded)
    assert first.node == 0
    (evidence.directory / "go").touch()
    done = await happened(pool.client, job, JobCompleted)
    assert done.exit.code == 4
    said = [(evidence.work / f"out.{node}").read_text() for node in range(3)]
    assert [f"{node} of 3 on 3 machines\n" for node in range(3)] == said
    events = await logged(evidence.work / "log", Terminated)
    told = Counter(number_of(event) for event in events)
    assert {0: 1, 14: 3, 1: 1, 15: 3, 5: 1} == {number: told[number] for number in (0, 14, 1, 15, 5)}


async def test_what_is_done_to_a_job_is_done_to_all_of_its_nodes(
    pool: ThrowawayPool, evidence: Evidence
) -> None:
    """A hold ends all nodes, a release starts all again with their numbers, and a removal leaves nothing."""
    script = '#!/bin/sh\numask 0\necho $$ >>"$1/$_CONDOR_PROCNO"\nexec sleep 600\n'
    job = await submit(pool, evidence, script)
    started = await happened(pool.client, job, JobStarted)
    await have_run(evidence, 1)
    [ad] = (await pool.client.queue(select(str(job)))).jobs
    assert (3, 3, 3) == (ad["CurrentHosts"], ad["MinHosts"], ad["MaxHosts"])
    assert len(str(ad["RemoteHosts"]).split(",")) == 3
    await pool.client.act("hold", select(str(job)), "for a while")
    await happened(pool.client, job, JobVacated)
    await pool.client.act("release", select(str(job)), "enough")
    again = await happened(pool.client, job, JobStarted, times=2)
    assert started.attempt + 1 == again.attempt
    await have_run(evidence, 2)
    await pool.client.remove(select(str(job)), "over")
    await pool.client.wait(select(str(job)))


async def test_a_node_that_is_lost_takes_all_others_along(pool: ThrowawayPool, evidence: Evidence) -> None:
    """The starter of one node is killed: all nodes begin again, none of them beside its predecessor."""
    script = """\
#!/bin/sh
umask 0
exec 9>>"$1/lock.$_CONDOR_PROCNO"
flock -n 9 || echo two >>"$1/overlaps"
echo $PPID >"$1/starter.$_CONDOR_PROCNO"
echo run >>"$1/$_CONDOR_PROCNO"
while [ "$(wc -l <"$1/$_CONDOR_PROCNO")" -lt 2 ]; do sleep 0.05; done
[ "$_CONDOR_PROCNO" -eq 0 ] || exec sleep 600
while [ "$(cat "$1"/[12] | wc -l)" -lt 4 ]; do sleep 0.05; done
"""
    job = await submit(pool, evidence, script)
    node = await happened(pool.client, job, JobNodeStarted, times=3)
    await there(*(evidence.directory / str(number) for number in range(3)))
    os.kill(int((evidence.directory / f"starter.{node.node}").read_text()), signal.SIGKILL)
    done = await happened(pool.client, job, JobCompleted)
    assert (2, 0) == (done.attempt, done.exit.code)
    assert not (evidence.directory / "overlaps").exists()


async def test_jobs_that_each_need_the_whole_pool_run_one_after_the_other(
    pool: ThrowawayPool, evidence: Evidence
) -> None:
    """
    Neither holds a part of it while the other one waits for that: all nodes of one end before the other begins.
    """
    script = """\
#!/bin/sh
touch "$1/begun.$2.$_CONDOR_PROCNO"
while [ "$(ls "$1" | grep -c "^begun.$2[.]")" -lt "$_CONDOR_NPROCS" ]; do sleep 0.05; done
other=$(ls "$1" | grep -v "[.]$2[.]")
touch "$1/ended.$2.$_CONDOR_PROCNO"
[ "$(echo "$other" | grep -c begun)" -eq "$(echo "$other" | grep -c ended)" ]
"""
    wish = '+ParallelShutdownPolicy = "WAIT_FOR_ALL"\n'
    jobs = [await submit(pool, evidence, script, nodes=4, more=wish) for _ in range(2)]
    for job in jobs:
        done = await happened(pool.client, job, JobCompleted)
        assert (1, 0) == (done.attempt, done.exit.code)
    assert 16 == len(list(evidence.directory.iterdir()))


async def test_nodes_go_on_while_services_are_killed(pool: ThrowawayPool, evidence: Evidence) -> None:
    """
    Each service once, while nodes run and when they have ended: every node runs once, and all end together.
    """
    script = """\
#!/bin/sh
echo run >>"$1/$_CONDOR_PROCNO"
while [ ! -e "$1/go" ]; do sleep 0.05; done
exit $_CONDOR_PROCNO
"""
    wish = '+ParallelShutdownPolicy = "WAIT_FOR_ALL"\n'
    job = await submit(pool, evidence, script, more=wish)
    await happened(pool.client, job, JobStarted)
    await there(*(evidence.directory / str(node) for node in range(3)))
    for name in ("schedd", "shadow", "startd", "negotiator"):
        await pool.restarted(name, after=pool.kill(name))
    (evidence.directory / "go").touch()
    await pool.restarted("shadow", after=pool.kill("shadow"))
    done = await happened(pool.client, job, JobCompleted)
    assert (1, 0) == (done.attempt, done.exit.code)
    assert ["run\n"] * 3 == [(evidence.directory / str(node)).read_text() for node in range(3)]
    audit = await pool.log_check()
    assert audit.clean, audit.said
