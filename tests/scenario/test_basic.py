"""One personal pool and the things that people do with it."""

import asyncio
import json
from contextlib import aclosing
from pathlib import Path

import asyncpg

from kettle.client import Client, JobEvent, job_id, select
from kettle.client.jobs.status import Status
from kettle.testing.patience import PATIENCE_S
from kettle.testing.throwaway_pool import ThrowawayPool
from kettle_wire.events import JobAssigned, JobCompleted, JobHeld
from kettle_wire.events.cycle import Rejection
from kettle_wire.jobs import JobId


async def ended(client: Client, cluster: int) -> dict[int, tuple[str, int | None, int | None]]:
    """Wait for a cluster; how each of its jobs ended."""
    async with asyncio.timeout(PATIENCE_S):
        progress = await client.wait(select(cluster))
    return {
        job.proc: (state.status, state.exit_code, state.exit_signal) for job, state in progress.jobs.items()
    }


async def until(client: Client, cluster: int, status: Status) -> None:
    """Wait until all jobs of a cluster have one status."""
    async with asyncio.timeout(PATIENCE_S), aclosing(client.watch(select(cluster))) as watched:
        async for progress in watched:
            if progress.counts[status] == progress.total:
                return
    raise AssertionError(f"the jobs ended and were never {status}")


def happened(events: list[JobEvent]) -> list[str]:
    return [type(each.event).__name__ for each in events]


async def refused(client: Client, job: JobId) -> Rejection:
    """Wait until a negotiation has refused a job; what it said."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            verdict = (await client.why(job)).verdict
            if verdict is not None and verdict.rejection is not None:
                return verdict.rejection
            await asyncio.sleep(0.05)


async def test_exit_codes(pool: ThrowawayPool, tmp_path: Path) -> None:
    """How a program ends is how its job ends: with its code, or with the signal that killed it."""
    script = tmp_path / "end.sh"
    script.write_text('#!/bin/sh\n[ "$1" = kill ] && kill -9 $$\nexit "$1"\n')
    script.chmod(0o755)
    submitted = await pool.client.submit(
        "executable = end.sh\narguments = $(how)\nqueue how in (0 1 77 kill)\n", cwd=tmp_path
    )
    assert {
        0: ("completed", 0, None),
        1: ("completed", 1, None),
        2: ("completed", 77, None),
        3: ("completed", None, 9),
    } == await ended(pool.client, submitted.cluster)


async def test_files_in_and_out(pool: ThrowawayPool, tmp_path: Path) -> None:
    """Input files are in the sandbox, output files come back, and standard output and error too."""
    (tmp_path / "words").write_text("b\na\n")
    (tmp_path / "sorting.sh").write_text(
        "#!/bin/sh\nsort words >sorted\ncat\necho oh >&2\nmkdir extra; echo x >new\n"
    )
    (tmp_path / "sorting.sh").chmod(0o755)
    (tmp_path / "in.txt").write_text("from stdin\n")
    submitted = await pool.client.submit(
        "executable = sorting.sh\ntransfer_input_files = words\ninput = in.txt\noutput = out\nerror = err\n"
        "queue\n",
        cwd=tmp_path,
    )
    assert {0: ("completed", 0, None)} == await ended(pool.client, submitted.cluster)
    assert (tmp_path / "sorted").read_text() == "a\nb\n"
    assert (tmp_path / "new").read_text() == "x\n"
    assert (tmp_path / "out").read_text() == "from stdin\n"
    assert (tmp_path / "err").read_text() == "oh\n"


async def test_a_bad_executable_is_held_with_the_reason(pool: ThrowawayPool, tmp_path: Path) -> None:
    """A program that cannot be run holds its job, which says why; released, it is tried again."""
    script = tmp_path / "broken.sh"
    script.write_text("#!/no/such/interpreter\n")
    script.chmod(0o755)
    submitted = await pool.client.submit("executable = broken.sh\nqueue\n", cwd=tmp_path)
    await until(pool.client, submitted.cluster, "held")
    (ad,) = await pool.client.jobs(select(submitted.cluster))
    assert "broken.sh" in str(ad["HoldReason"])
    assert ad["HoldReasonCode"] == 6
    await pool.client.release(select(submitted.cluster))
    await until(pool.client, submitted.cluster, "held")
    held = [each.event for each in await pool.client.events(job_id(f"{submitted.cluster}.0"))]
    assert len([event for event in held if isinstance(event, JobHeld)]) == 2
    await pool.client.remove(select(submitted.cluster))
    assert {0: ("removed", None, None)} == await ended(pool.client, submitted.cluster)


async def test_hold_release_remove(pool: ThrowawayPool, tmp_path: Path) -> None:
    """
    A running job that is held stops, runs again when it is released, and never runs again when it is removed.
    """
    submitted = await pool.client.submit("executable = /bin/sleep\narguments = 600\nqueue\n", cwd=tmp_path)
    cluster = select(submitted.cluster)
    await until(pool.client, submitted.cluster, "running")
    await pool.client.hold(cluster, "a look at it")
    await until(pool.client, submitted.cluster, "held")
    (ad,) = await pool.client.jobs(cluster)
    assert "a look at it" in str(ad["HoldReason"])
    await pool.client.release(cluster)
    await until(pool.client, submitted.cluster, "running")
    acted = await pool.client.remove(cluster)
    assert ["done"] == [outcome.outcome for outcome in acted.outcomes]
    assert {0: ("removed", None, None)} == await ended(pool.client, submitted.cluster)
    again = await pool.client.remove(cluster)
    assert "done" not in [outcome.outcome for outcome in again.outcomes]


async def test_a_claim_is_used_again(pool: ThrowawayPool, tmp_path: Path) -> None:
    """Twenty short jobs on two CPUs need far fewer claims than jobs."""
    submitted = await pool.client.submit("executable = /bin/true\nqueue 20\n", cwd=tmp_path)
    how = await ended(pool.client, submitted.cluster)
    assert {("completed", 0, None)} == set(how.values())
    claims = {
        each.event.claim
        for proc in range(20)
        for each in await pool.client.events(job_id(f"{submitted.cluster}.{proc}"))
        if isinstance(each.event, JobAssigned)
    }
    assert 1 <= len(claims) <= 8


async def test_an_impossible_request_is_explained(pool: ThrowawayPool, tmp_path: Path) -> None:
    """
    A request that no machine can meet is accepted, and `why` names the clause and how many slots it refuses.
    """
    submitted = await pool.client.submit(
        'executable = /bin/true\nrequirements = TARGET.Machine == "elsewhere"\nqueue\n', cwd=tmp_path
    )
    job = job_id(f"{submitted.cluster}.0")
    rejection = await refused(pool.client, job)
    assert rejection.slots >= 1
    assert [
        "elsewhere" in clause.text for clause in rejection.clauses if clause.refuses == rejection.slots
    ] == [True]
    await pool.client.remove(select(submitted.cluster))


async def test_the_events_tell_the_life_of_a_job(pool: ThrowawayPool, tmp_path: Path) -> None:
    """From the record alone one sees what happened to a job, in order."""
    submitted = await pool.client.submit("executable = /bin/true\nqueue\n", cwd=tmp_path)
    await ended(pool.client, submitted.cluster)
    events = await pool.client.events(job_id(f"{submitted.cluster}.0"))
    assert ["ClusterSubmitted", "JobAssigned", "JobStarted", "JobCompleted"] == happened(events)
    last = events[-1].event
    assert isinstance(last, JobCompleted)
    assert last.usage.wall > 0


async def test_the_record_is_sound(pool: ThrowawayPool) -> None:
    """After all of this the audit finds nothing."""
    audit = await pool.log_check()
    assert audit.clean, audit.said


async def test_submissions_into_a_set_are_one_thing(pool: ThrowawayPool, tmp_path: Path) -> None:
    """Two clusters of a set are one line, held, released and removed by its name, and nothing else is."""
    text = "executable = /bin/sleep\ntransfer_executable = false\narguments = 600\n"
    first = await pool.client.submit(f"{text}jobset = sweep\nqueue 2\n", cwd=tmp_path)
    other = await pool.client.submit(f"{text}queue\n", cwd=tmp_path)
    again = await pool.client.submit(f"{text}jobset = sweep\nqueue\n", cwd=tmp_path)

    status, out, _ = await pool.kettle("hold", "--jobset", "sweep", "--json")
    assert 0 == status
    assert [f"{first.cluster}.0", f"{first.cluster}.1", f"{again.cluster}.0"] == [
        one["job"] for one in json.loads(out)
    ]
    status, out, _ = await pool.kettle("q", "--jobsets", "--json")
    (found,) = json.loads(out)
    assert ("sweep", first.cluster, 3, 3) == (found["name"], found["number"], found["total"], found["held"])
    assert [first.cluster, again.cluster] == found["clusters"]
    assert 0 == (await pool.kettle("release", "--jobset", "SWEEP"))[0]
    status, out, _ = await pool.kettle("q", "--batch", "--json")
    assert {f"ID: {each.cluster}" for each in (first, other, again)} <= {b["name"] for b in json.loads(out)}

    assert 0 == (await pool.kettle("rm", "--jobset", "sweep"))[0]
    await ended(pool.client, first.cluster)
    await ended(pool.client, again.cluster)
    assert (await pool.client.jobs(select(other.cluster)))[0]["JobStatus"] in {1, 2}
    await pool.client.remove(select(other.cluster))
    await ended(pool.client, other.cluster)


async def test_who_has_seen_a_job_end_finds_it_in_the_history(pool: ThrowawayPool, tmp_path: Path) -> None:
    """
    The history is written after a job's end is shown; who has seen the end is answered when it is there.
    """
    client, other, stranger = pool.client, pool.client.at(""), pool.client.at("")
    text = "executable = /bin/true\ntransfer_executable = false\nhold = true\nqueue\n"
    cluster = (await client.submit(text, cwd=tmp_path)).cluster
    assert [] == await client.history(select(cluster))  # which has the submission then
    connection = await asyncpg.connect(client.pool.database_url)
    try:
        writing = connection.transaction()
        await writing.start()
        await connection.execute(
            "LOCK TABLE jobs.history IN SHARE ROW EXCLUSIVE MODE"
        )  # it can still be read
        await other.act("release", select(cluster))
        assert {0: ("completed", 0, None)} == await ended(client, cluster)
        asking = asyncio.create_task(client.history(select(cluster)))
        assert [] == await stranger.history(select(cluster))
        await writing.rollback()
        (ad,) = await asking
    finally:
        await connection.close()
    assert 0 == ad["ExitCode"]
