"""
Jobs in the queue are given other values: they are matched, ordered and shown by them, whatever dies meanwhile.
"""

import asyncio
import signal
from collections import Counter
from pathlib import Path
from typing import Any, Final

import pytest

from kettle.client import CommandRefusedError, select
from kettle.storage import PgLog
from kettle.testing.throwaway_pool import ThrowawayPool
from kettle_wire.commands.schedd import Acted, Submitted
from kettle_wire.event_expansion import events_of, expanded, stands_for_many
from kettle_wire.events import JobAssigned, JobEdited
from kettle_wire.frames import Frame

from .persons import somebody

WITHIN_S: Final = 120.0
MANY: Final = 1000
_TOO_LARGE: Final = (
    "executable = /bin/true\ntransfer_executable = false\nrequest_memory = 1000000000\nqueue {count}\n"
)


@pytest.fixture(scope="module")
def configuration() -> dict[str, Any]:
    return {"cpus": 1, "settings": {"schedd": {"periodic_expr_interval": 0.2}}}


async def frames(pool: ThrowawayPool, submitted: Submitted) -> list[Frame]:
    """The log from a submission on."""
    async with PgLog.connect(pool.client.pool.database_url) as log:
        return [frame async for frame in log.read("schedd.schedd", after=submitted.position.frame - 1)]


def answers(acted: Acted) -> Counter[tuple[int, str]]:
    """How many jobs of each cluster got which answer; each job has one."""
    assert len(acted.outcomes) == len({one.job for one in acted.outcomes})
    return Counter((one.job.cluster, one.outcome) for one in acted.outcomes)


async def submitted(pool: ThrowawayPool, place: Path, count: int) -> Submitted:
    """A cluster of jobs that fit nowhere."""
    return await pool.client.submit(_TOO_LARGE.format(count=count), cwd=place)


async def test_a_job_that_fits_nowhere_is_edited_and_runs(pool: ThrowawayPool, tmp_path: Path) -> None:
    """Its history has the new value, also for a search, and says how often it was edited."""
    cluster = (await submitted(pool, tmp_path, 1)).cluster
    status, out, err = await pool.kettle("edit", f"{cluster}.0", "requestmemory=16", 'Why="it fits now"')
    assert (0, f"Job {cluster}.0 changed.", "") == (status, out.strip(), err)
    async with asyncio.timeout(WITHIN_S):
        await pool.client.wait(select(cluster))
        while not (
            found := await pool.client.history(
                select(constraint='RequestMemory == 16 && Why == "it fits now"')
            )
        ):
            await asyncio.sleep(0.1)
    assert [(cluster, 16, 1)] == [(ad["ClusterId"], ad["RequestMemory"], ad["NumEdits"]) for ad in found]


async def test_a_raised_job_overtakes(pool: ThrowawayPool, tmp_path: Path) -> None:
    """
    Of three jobs that wait the last is raised and the first lowered; when they fit, the one core takes them in that order,
    although the schedd was killed in between.
    """
    three = await submitted(pool, tmp_path, 3)
    cluster = three.cluster
    assert 0 == (await pool.kettle("prio", f"{cluster}.2", "+10"))[0]
    assert 0 == (await pool.kettle("prio", f"{cluster}.0", "-5"))[0]
    killed = pool.kill("schedd", signal.SIGKILL)
    await pool.restarted("schedd", after=killed)
    found = await pool.client.jobs(select(cluster), projection=["JobPrio"])
    assert [-5, 0, 10] == [ad["JobPrio"] for ad in found]
    assert {(cluster, "done"): 3} == answers(
        await pool.client.edit_jobs(select(cluster), {"RequestMemory": 16})
    )
    async with asyncio.timeout(WITHIN_S):
        await pool.client.wait(select(cluster))
    ran = [
        entry.stream
        for frame in await frames(pool, three)
        for entry, event in zip(frame.entries, events_of(frame), strict=True)
        if isinstance(event, JobAssigned) and entry.stream.startswith(f"job/{cluster}.")
    ]
    assert [f"job/{cluster}.{proc}" for proc in (2, 1, 0)] == ran


async def test_a_thousand_jobs_are_edited_by_one_command(
    pool: ThrowawayPool, tmp_path: Path, another: str
) -> None:
    """
    A constraint means all but one, and eve's: hers stay as they are. They are recorded together, and known apart, also when
    the schedd was killed; a policy that was set holds them at its next look. The log is in order.
    """
    me = pool.client
    many = await submitted(pool, tmp_path, MANY)
    mine = many.cluster
    async with somebody(pool, another, tmp_path) as eve:
        hers = (await eve.submit(_TOO_LARGE.format(count=9), cwd=tmp_path)).cluster
        meant = select(constraint=f"ClusterId >= {mine} && ProcId != 7")
        acted = await me.edit_jobs(meant, {"Colour": "blue", "requestmemory": 2_000_000_000})
        assert {(mine, "done"): MANY - 1, (hers, "denied"): 8} == answers(acted)
        again = await me.edit_jobs(meant, {"COLOUR": "blue"})
        assert {(mine, "already_done"): MANY - 1, (hers, "denied"): 8} == answers(again)

        recorded = [
            frame
            for frame in await frames(pool, many)
            if any(e.stream == f"jobs/{mine}" for e in frame.entries)
        ]
        assert 10 > sum(stands_for_many(entry) for frame in recorded for entry in frame.entries)
        single = [event for frame in recorded for event in events_of(expanded(frame))]
        assert MANY - 1 == len(single)
        assert {me.pool.user} == {event.by for event in single if isinstance(event, JobEdited)}

        killed = pool.kill("schedd", signal.SIGKILL)
        await pool.restarted("schedd", after=killed)
        found = await me.jobs(select(mine), projection=["Colour", "RequestMemory"])
        values = Counter((ad.get("Colour"), ad["RequestMemory"]) for ad in found)
        assert {("blue", 2_000_000_000): MANY - 1, (None, 1_000_000_000): 1} == values
        theirs = await me.jobs(select(hers), projection=["Colour", "RequestMemory"])
        assert {(None, 1_000_000_000)} == {(ad.get("Colour"), ad["RequestMemory"]) for ad in theirs}

        assert 0 == (await pool.kettle("edit", f"{mine}.3", 'PeriodicHold=Colour == "blue"'))[0]
        async with asyncio.timeout(WITHIN_S):
            await me.wait(select(f"{mine}.3"), through_hold=False)
        await me.remove(select(mine))
        status, said, err = await pool.kettle("log", "check")
        assert 0 == status, said + err


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ('Owner="eve"', "the attribute Owner is kept by the queue"),
        ("jobstatus=4", "the attribute jobstatus is kept by the queue"),
        ("NumEdits=0", "is kept by the queue"),
        ('AcctGroup="physics"', "it says who is charged"),
        ("JobUniverse=7", "it says how the job is run"),
        ('JobPrio="high"', "JobPrio is a whole number"),
        ("Requirements=Memory >", "cannot be read"),
    ],
)
async def test_what_nobody_may_set_is_refused_with_a_sentence(
    pool: ThrowawayPool, tmp_path: Path, change: str, says: str
) -> None:
    """Nothing is recorded, not even of what stands beside it in the same command."""
    one = await submitted(pool, tmp_path, 1)
    status, _, err = await pool.kettle("edit", str(one.cluster), "Colour=1", change)
    assert 0 != status
    assert says in err
    assert [] == await edits(pool, one)
    await pool.client.remove(select(one.cluster))


async def edits(pool: ThrowawayPool, since: Submitted) -> list[JobEdited]:
    """All edits of jobs that the pool has recorded since a submission."""
    return [
        event
        for frame in await frames(pool, since)
        for event in events_of(expanded(frame))
        if isinstance(event, JobEdited)
    ]


async def test_a_selection_that_cannot_be_read_and_anothers_job_record_nothing(
    pool: ThrowawayPool, tmp_path: Path, another: str
) -> None:
    """The one is refused, the other is an answer."""
    async with somebody(pool, another, tmp_path) as mallory:
        hers = await mallory.submit(_TOO_LARGE.format(count=1), cwd=tmp_path)
        with pytest.raises(CommandRefusedError, match="cannot be read"):
            await mallory.edit_jobs(select(constraint="ProcId =="), {"Colour": 1})
        status, _, err = await pool.kettle("prio", "-p", "7", f"{hers.cluster}.0")
    assert (1, f"Job {hers.cluster}.0 is not yours.") == (status, err.strip())
    assert [] == await edits(pool, hers)
