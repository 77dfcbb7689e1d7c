"""
Commands on thousands of jobs at once: what is recorded for all of them together is to everybody what happened to each.
"""

import asyncio
import signal
from collections import Counter
from collections.abc import Mapping
from contextlib import aclosing
from pathlib import Path
from typing import Final

from kettle.client import Client, select
from kettle.client.events.published import Wanted
from kettle.client.jobs.status import Status
from kettle.client.jobs.submission import prepare
from kettle.storage import PgLog
from kettle.testing.throwaway_pool import ThrowawayPool
from kettle.userlog.events import Aborted, Held, Released
from kettle_wire.commands.schedd import Acted, Select, Submitted
from kettle_wire.event_expansion import size, stands_for_many
from kettle_wire.events import (
    ClustersSubmitted,
    ClusterSubmitted,
    JobHeld,
    JobReleased,
    JobRemoved,
    JobStarted,
    JobVacated,
    decode,
)
from kettle_wire.frames import Frame
from kettle_wire.jobs import JobId

from .job_log import logged
from .persons import somebody
from .waiting import happened

WITHIN_S: Final = 120.0
MANY: Final = 3000
_WAITING: Final = "executable = /bin/true\ntransfer_executable = false\nrequirements = false\n"
_RUNNING: Final = (
    "executable = /bin/sleep\narguments = 600\nlog = running.log\nrequest_memory = 16\nqueue 2\n"
)
JOB_EVENTS: Final = "job.held", "job.released", "job.removed"


async def until(client: Client, cluster: int, status: Status) -> None:
    """Wait until all jobs of a cluster have one status."""
    async with asyncio.timeout(WITHIN_S), aclosing(client.watch(select(cluster))) as watched:
        async for progress in watched:
            if progress.counts[status] == progress.total:
                return
    raise AssertionError(f"the jobs ended and were never {status}")


def answers(acted: Acted) -> Counter[tuple[int, str, str]]:
    """How many jobs of each cluster were in which status and got which answer; each job has one."""
    assert len(acted.outcomes) == len({one.job for one in acted.outcomes})
    return Counter((one.job.cluster, one.status, one.outcome) for one in acted.outcomes)


async def frames(pool: ThrowawayPool, submitted: Submitted) -> list[Frame]:
    """The log from a submission on."""
    async with PgLog.connect(pool.client.pool.database_url) as log:
        return [frame async for frame in log.read("schedd.schedd", after=submitted.position.frame - 1)]


async def held(client: Client, cluster: int) -> Counter[str]:
    return Counter(
        str(ad.get("HoldReason")) for ad in await client.jobs(select(cluster), projection=["HoldReason"])
    )


async def test_thousands_are_held_released_and_removed_by_one_command_each(
    pool: ThrowawayPool, tmp_path: Path, another: str
) -> None:
    """
    Three thousand jobs wait, two run, and eve has some: a constraint means all of them but one. There is one answer for each;
    what waits is recorded in a few events, what runs stops, and eve's jobs stay as they are. Queue, job event logs, history,
    published events and the log itself know of each single job, also after the schedd was killed, and nothing is wrong.
    """
    me = pool.client
    running = (await me.submit(_RUNNING, cwd=tmp_path)).cluster
    for proc in range(2):
        await happened(me, JobId(running, proc), JobStarted)
    many = await me.submit(f"{_WAITING}log = many.log\nqueue {MANY}\n", cwd=tmp_path)
    mine = many.cluster
    async with somebody(pool, another, tmp_path) as eve:
        hers = (await eve.submit(f"{_WAITING}queue 20\n", cwd=tmp_path)).cluster
        meant = select(constraint=f"ClusterId >= {running} && ProcId != 17")

        assert {
            (running, "running", "done"): 2,
            (mine, "idle", "done"): MANY - 1,
            (hers, "idle", "denied"): 19,
        } == answers(await me.hold(meant, "so many"))
        status, _, err = await pool.kettle("hold", f"{hers}.3")
        assert (1, f"Job {hers}.3 is not yours.") == (status, err.strip())
        await until(me, running, "held")
        for proc in range(2):  # before that a removal would be recorded first
            await happened(me, JobId(running, proc), JobVacated)
        found = Counter(str(reason).partition(" (")[0] for reason in (await held(me, mine)).elements())
        assert {"so many": MANY - 1, "None": 1} == found
        assert {"None": 20} == await held(me, hers)

        killed = pool.kill("schedd", signal.SIGKILL)
        await pool.restarted("schedd", after=killed)
        assert {(mine, "held", "already_done"): MANY - 1, (mine, "idle", "done"): 1} == answers(
            await me.hold(select(mine))
        )
        assert {(mine, "held", "done"): 5} == answers(
            await me.release(select(*(f"{mine}.{n}" for n in range(5))))
        )
        assert {(mine, "held", "done"): MANY - 5, (mine, "idle", "bad_status"): 5} == answers(
            await me.release(select(mine))
        )
        assert {(mine, "idle", "done"): MANY, (running, "held", "done"): 2} == answers(
            await me.remove(select(mine, running))
        )

        kinds = [type(one.event) for one in await me.events(JobId(running, 0))]
        assert [JobHeld, JobVacated, JobRemoved] == kinds[-3:]
        await told_of_each(pool, tmp_path, mine)
        await few_were_recorded(pool, many)
        await eve_is_left_alone(pool, many, hers)
        status, _, err = await pool.kettle("log", "rebuild", "jobs")
        assert 0 == status, err
        assert MANY == len(await me.history(select(mine), limit=0))
        audit = await pool.log_check()
        assert audit.clean, audit.said


async def told_of_each(pool: ThrowawayPool, directory: Path, mine: int) -> None:
    """
    History, the job event log, what is published and the events of a job have what happened to each of them.
    """
    me = pool.client
    async with asyncio.timeout(WITHIN_S):
        while len(await me.history(select(mine), limit=0)) < MANY:
            await asyncio.sleep(0.1)
    ads = await me.history(select(mine), limit=0)
    assert {(3, 1): MANY} == Counter((ad["JobStatus"], ad["NumHolds"]) for ad in ads)
    lines = await logged(directory / "many.log", Aborted, times=MANY)
    for kind in (Held, Released, Aborted):
        assert {JobId(mine, proc): 1 for proc in range(MANY)} == Counter(
            line.job for line in lines if isinstance(line, kind)
        )
    for proc in (0, 17, MANY - 1):
        kinds = [type(one.event) for one in await me.events(JobId(mine, proc))]
        assert [ClusterSubmitted, JobHeld, JobReleased, JobRemoved] == kinds
    status, out, err = await pool.kettle("log", "show", "--job", f"{mine}.700", "--type", "job")
    assert 0 == status, err
    assert [*JOB_EVENTS] == [line.split()[6].partition("/")[0] for line in out.splitlines()]
    seen = Counter[tuple[str, str]]()
    ids = set[str]()
    async with asyncio.timeout(WITHIN_S), aclosing(me.published(Wanted(cluster=mine, after=0))) as events:
        async for one in events:
            seen[one.envelope.type, one.envelope.stream] += 1
            ids.add(one.envelope.id)
            if sum(1 for kind, _ in seen if "removed" in kind) == MANY:
                break
    assert {1} == set(seen.values())
    assert 3 * MANY + 1 == len(seen) == len(ids)


async def few_were_recorded(pool: ThrowawayPool, many: Submitted) -> None:
    """The log has a few events instead of a thousand times as many."""
    mine, recorded = many.cluster, await frames(pool, many)
    of_mine = [e for frame in recorded for e in frame.entries if e.stream.startswith(f"job/{mine}.")]
    together = [e for frame in recorded for e in frame.entries if stands_for_many(e)]
    assert {f"jobs/{mine}"} == {entry.stream for entry in together}
    assert len(of_mine) + len(together) < MANY / 50
    assert 3 * MANY == len(of_mine) + sum(size(frame) for frame in recorded) - sum(
        len(frame.entries) for frame in recorded
    ) + len(together)


async def eve_is_left_alone(pool: ThrowawayPool, many: Submitted, hers: int) -> None:
    """Nothing is recorded of her jobs but their submission."""
    assert [] == [
        entry.stream
        for frame in await frames(pool, many)
        for entry in frame.entries
        if entry.stream.startswith((f"job/{hers}.", f"jobs/{hers}"))
    ]


async def test_submissions_that_are_alike_are_one_event_that_outlives_its_schedd(pool: ThrowawayPool) -> None:
    """
    Each is a cluster of its own, to the queue, the record, and the next schedd, which knows the commands, and which of the
    clusters have left; the audit finds nothing.
    """
    made = {
        f"alike/{number}": prepare(
            f"executable = /bin/sleep\narguments = 60{number}\ntransfer_executable = false\nrequirements = false\nqueue\n"
        )
        for number in range(12)
    }
    clusters = [each.cluster for each in submitted_of(await pool.client.submit_many(made))]
    assert [*range(clusters[0], clusters[0] + 12)] == clusters
    await pool.client.remove(select(*clusters[:5]))
    killed = pool.kill("schedd")
    await pool.restarted("schedd", after=killed)
    more = {**dict(reversed(made.items())), "alike/new": made["alike/0"]}
    again = [each.cluster for each in submitted_of(await pool.client.submit_many(more))]
    assert clusters == sorted(again[:-1])
    assert clusters[-1] < again[-1]
    ads = await pool.client.jobs(Select(clusters=clusters), projection=["ClusterId", "Args"])
    assert [(clusters[number], f"60{number}") for number in range(5, 12)] == sorted(
        (ad["ClusterId"], ad["Args"]) for ad in ads
    )
    [first, *_] = await pool.client.events(JobId(clusters[7], 0))
    assert isinstance(first.event, ClusterSubmitted)
    assert ("607", 1) == (first.event.ad["Args"], len(first.event.rows))
    async with PgLog.connect(pool.client.pool.database_url) as log:
        types = {
            entry.type
            async for frame in log.read("schedd.schedd")
            for entry in frame.entries
            if isinstance(event := decode(entry.data), ClustersSubmitted | ClusterSubmitted)
            and clusters[0]
            <= (event.first if isinstance(event, ClustersSubmitted) else event.cluster)
            <= clusters[-1]
        }
    assert {"clusters.submitted/1"} == types
    await pool.client.remove(select(*clusters[5:], again[-1]))
    audit = await pool.log_check()
    assert audit.clean, audit.said


def submitted_of(found: Mapping[str, object]) -> list[Submitted]:
    """Those that are."""
    return [each for each in found.values() if isinstance(each, Submitted)]
