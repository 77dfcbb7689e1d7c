"""The `kettle` command as people run it: a process, its output, its exit status."""

import asyncio
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kettle.testing.patience import PATIENCE_S
from kettle_wire.ads.types import Ad
from kettle_wire.attempts import ExitRecord
from kettle_wire.commands.negotiator import Verdict
from kettle_wire.events import (
    Clause,
    JobAssigned,
    JobCompleted,
    JobHeld,
    JobRemoved,
    JobStarted,
    Match,
    Rejection,
    Usage,
)

from .conftest import World

NOON = 1_795_176_000.0
"""Of 20 November 2026, UTC."""
JOB = "executable = /bin/sleep\narguments = 60 $(Process)\nqueue 3\n"
ASSIGNED = JobAssigned(attempt=1, claim="c", slot="slot1_1@here", startd="here")
DONE = JobCompleted(attempt=1, exit=ExitRecord(code=0), usage=Usage(wall=2.0, user_cpu=1.5, memory_kib=2048))
MACHINE: Ad = {
    "MyType": "Machine", "Name": "slot1@here", "Machine": "here", "Arch": "X86_64", "OpSys": "LINUX",
    "State": "Unclaimed", "Activity": "Idle", "SlotType": "Partitionable", "Cpus": 3, "TotalSlotCpus": 8,
    "Memory": 1024, "TotalSlotMemory": 4096, "Disk": 1 << 20, "EnteredCurrentState": int(time.time()),
}  # fmt: skip


def json(text: str) -> Any:
    return msgspec.json.decode(text)


@pytest.fixture
def sub(world: World) -> Path:
    path = world.place / "job.sub"
    path.write_text(JOB)
    return path


async def test_submit(world: World, sub: Path) -> None:
    """One line, as HTCondor's tools write it, and nothing beside it."""
    said = await world.kettle("submit", "job.sub")
    assert (0, "3 job(s) submitted to cluster 1.\n", "") == (said.status, said.out, said.err)


async def test_submit_json_and_macros(world: World) -> None:
    """NAME=VALUE is set before the file is read; standard input is a file too."""
    text = "executable = /bin/sleep\narguments = $(how_long)\nqueue\n"
    said = await world.kettle("submit", "-", "how_long=5", "--json", stdin=text)
    assert {"cluster": 1, "count": 1} == json(said.out)
    assert "5" == next(iter(world.pool.jobs.values()))["Args"]


async def test_a_file_may_make_several_clusters(world: World) -> None:
    """One line for each, also when it is JSON that is wanted, or a look beforehand."""
    (world.place / "two.sub").write_text(f"{JOB}executable = /bin/true\nqueue 2\n")
    shown = await world.kettle("submit", "--dry-run", "two.sub")
    assert "5 jobs in 2 clusters would be submitted." in shown.err
    assert ["# cluster 1", "# cluster 2"] == [line for line in shown.out.splitlines() if "cluster" in line]
    assert {} == world.pool.jobs
    said = await world.kettle("submit", "two.sub")
    expected = "3 job(s) submitted to cluster 1.\n2 job(s) submitted to cluster 2.\n"
    assert (0, expected, "") == (said.status, said.out, said.err)
    as_json = await world.kettle("submit", "two.sub", "--json")
    assert [3, 2] == [json(text + "}")["count"] for text in as_json.out.split("}\n")[:-1]]


async def test_dry_run(world: World, sub: Path) -> None:
    """The jobs are shown, nothing is sent, and no pool is needed."""
    said = await world.kettle("submit", "--dry-run", "job.sub", KETTLE_HOME="/nowhere")
    assert 0 == said.status
    assert 'Cmd = "/bin/sleep"' in said.out
    assert 'Args = "60 2"' in said.out
    assert "3 jobs would be submitted." in said.err
    as_json = await world.kettle("submit", "--dry-run", "--json", "job.sub")
    assert ["60 0", "60 1", "60 2"] == [ad["Args"] for ad in json(as_json.out)]
    assert {} == world.pool.jobs


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("executable = /bin/sleep\nrequest_memroy = 1\nqueue\n", "job.sub, line 2: 'request_memroy' is not a submit command"),
        ("executable = run.sh\nqueue\n", "line 1: the executable "),
        ("executable = /bin/sleep\ntransfer_input_files = a.dat\nqueue\n", "line 2: the input file "),
        ("executable = /bin/sleep\nrequirements = >\nqueue\n", "line 2: '>' is not an expression"),
        ("executable = /bin/sleep\nrequest_cpus = 0\nqueue\n", "line 2: request_cpus must be more than zero"),
        ("executable = /bin/sleep\nqueue x in ()\n", "line 2: the queue statement has no items"),
    ],
)  # fmt: skip
async def test_bad_submit_files(world: World, text: str, sentence: str) -> None:
    """Refused before anything is recorded: exit status 1 and one sentence with file and line."""
    (world.place / "job.sub").write_text(text)
    said = await world.kettle("submit", "job.sub")
    assert (1, "") == (said.status, said.out)
    assert 1 == len(said.err.splitlines())
    assert sentence in said.err
    assert {} == world.pool.commands


async def test_a_missing_submit_file(world: World) -> None:
    """It is named."""
    said = await world.kettle("submit", "absent.sub")
    assert (1, "") == (said.status, said.out)
    assert "kettle submit: cannot read the submit file absent.sub: No such file or directory\n" == said.err


async def test_q(world: World, sub: Path) -> None:
    """Aligned columns off a terminal, without colours."""
    await world.kettle("submit", "job.sub")
    await world.pool.record(("job/1.1", ASSIGNED), ("job/1.1", JobStarted(attempt=1)))
    await world.pool.record(("job/1.2", JobHeld(code=1, reason="a look", by="ada")))
    said = await world.kettle("q")
    head, *rows = said.out.splitlines()
    assert ["ID", "OWNER", "SUBMITTED", "RUN_TIME", "ST", "PRI", "SIZE", "CMD"] == head.split()
    assert [["1.0", "I"], ["1.1", "R"], ["1.2", "H"]] == [[r.split()[0], r.split()[5]] for r in rows[:3]]
    assert rows[0].endswith("sleep 60 0")
    assert (
        "Total for query: 3 jobs; 0 completed, 0 removed, 1 idle, 1 running, 1 held, 0 suspended" == rows[-1]
    )
    assert "\x1b" not in said.out
    held = await world.kettle("q", "--held")
    assert "a look" in held.out
    assert "1.0" not in held.out
    chosen = await world.kettle("q", "1.1", "--attributes", "ProcId,RemoteHost,Nothing")
    assert ["1", "slot1_1@here", "undefined"] == chosen.out.splitlines()[1].split()
    whole = await world.kettle("q", "1.0", "--long")
    assert 'Cmd = "/bin/sleep"' in whole.out
    some = await world.kettle("q", "--json", "--constraint", "ProcId > 0")
    assert [1, 2] == [ad["ProcId"] for ad in json(some.out)]


async def test_nothing_found_is_no_failure(world: World) -> None:
    """An empty queue is an answer."""
    said = await world.kettle("q")
    assert (0, "") == (said.status, said.err)
    assert "Total for query: 0 jobs" in said.out
    assert "[]\n" == (await world.kettle("q", "--json")).out


async def test_hold_release_rm(world: World, sub: Path) -> None:
    """What became of each job; exit status 1 if it was possible for none."""
    await world.kettle("submit", "job.sub")
    held = await world.kettle("hold", "1.0", "1.7", "--reason", "a look")
    assert (0, "Job 1.0 held.\n") == (held.status, held.out)
    assert "Job 1.7 is not in the queue; if it has ended, kettle history 1.7 shows it.\n" == held.err
    again = await world.kettle("release", "1.1")
    assert (1, "Job 1.1 is not held: it is idle.\n") == (again.status, again.err)
    released = await world.kettle("release", "--all", "--json")
    assert "done" in {one["outcome"] for one in json(released.out)}
    removed = await world.kettle("rm", "--constraint", "ProcId >= 1")
    assert "Job 1.1 removed.\nJob 1.2 removed.\n" == removed.out
    none = await world.kettle("rm", "--constraint", "ProcId > 99")
    assert 1 == none.status
    assert "no job in the queue matches" in none.err
    unnamed = await world.kettle("rm")
    assert 2 == unnamed.status
    assert "which jobs?" in unnamed.err
    for words in (("rm", "1", "--all"), ("hold", "--owner", "bob", "--all"), ("edit", "--all", "1", "A=1")):
        refused = await world.kettle(*words)
        assert (2, "") == (refused.status, refused.out)
        assert "--all is all of your jobs" in refused.err


async def test_events(world: World, sub: Path) -> None:
    """A timeline: when, how long after, what; JSON for programs."""
    world.pool.clock = lambda: NOON
    await world.kettle("submit", "job.sub")
    await world.pool.record(("job/1.0", ASSIGNED))
    await world.pool.record(("job/1.0", JobStarted(attempt=1, pid=77)))
    await world.pool.record(("job/1.0", DONE))
    said = await world.kettle("events", "1.0")
    date, *lines = said.out.splitlines()
    assert "2026-11-20" == date
    names = ["submitted", "assigned", "started", "completed"]
    assert names == [next(word for word in line.split() if word in names) for line in lines]
    assert "exited with code 0 after 2.00 s; used 1.50 s CPU, 2 MiB memory" in lines[-1]
    as_json = await world.kettle("events", "1.0", "--json")
    kinds = [json(line)["event"] for line in as_json.out.splitlines()]
    assert ["cluster.submitted/1", "job.assigned/1", "job.started/1", "job.completed/2"] == kinds
    missing = await world.kettle("events", "9.0")
    assert (1, "") == (missing.status, missing.out)
    assert 2 == (await world.kettle("events", "nine")).status


async def test_following_events(world: World, sub: Path) -> None:
    """Each event comes out as it is recorded, and the command ends with the job."""
    await world.kettle("submit", "job.sub")
    process = await world.start("events", "-f", "--json", "1.0")
    assert process.stdout is not None
    async with asyncio.timeout(PATIENCE_S):
        assert b"cluster.submitted" in await process.stdout.readline()
        await world.pool.record(("job/1.0", ASSIGNED))
        assert b"job.assigned" in await process.stdout.readline()
        await world.pool.record(("job/1.0", DONE))
        assert b"job.completed" in await process.stdout.readline()
        assert 0 == await process.wait()


async def test_wait(world: World, sub: Path) -> None:
    """The exit status says whether all went well."""
    await world.kettle("submit", "job.sub")
    process = await world.start("wait", "1")
    await asyncio.sleep(0.5)
    for proc in range(2):
        await world.pool.record((f"job/1.{proc}", DONE))
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(process.wait(), 0.1)
    await world.pool.record(("job/1.2", DONE))
    async with asyncio.timeout(PATIENCE_S):
        out, _ = await process.communicate()
        assert 0 == await process.wait()
    assert b"3 of 3 jobs completed well.\n" == out


async def test_wait_until_a_condition(world: World, sub: Path) -> None:
    """What has been true of a job once counts; a job that ends before is told by the exit status."""
    await world.kettle("submit", "job.sub")
    await world.pool.record(("job/1.0", ASSIGNED))
    process = await world.start("wait", "1", "--until", "JobStatus == 2", "--json")
    await world.pool.record(("job/1.0", DONE), ("job/1.1", ASSIGNED), ("job/1.2", JobRemoved(reason="r")))
    async with asyncio.timeout(PATIENCE_S):
        out, _ = await process.communicate()
        assert 1 == await process.wait()
    found = json(out.decode())
    assert (3, True) == (
        found["total"],
        found["met"] in {1, 2},
    )  # the first may have been seen, or have ended before
    assert "1.2" in found["ended"]
    assert 0 == (await world.kettle("wait", "1.1", "--until", "JobStatus == 2")).status
    assert "cannot be read" in (await world.kettle("wait", "1", "--until", "1 +")).err


async def test_wait_for_jobs_that_end_badly(world: World, sub: Path) -> None:
    """They are named, with how they ended."""
    await world.kettle("submit", "job.sub")
    await world.pool.record(("job/1.0", DONE), ("job/1.1", JobCompleted(attempt=1, exit=ExitRecord(code=2))))
    await world.pool.record(("job/1.2", JobCompleted(attempt=1, exit=ExitRecord(signal=9))))
    said = await world.kettle("wait", "1")
    assert 1 == said.status
    assert "1 of 3 jobs completed well; 2 ended badly: 1.1 (exit code 2), 1.2 (signal 9).\n" == said.out
    assert 0 == (await world.kettle("wait", "1", "--ignore-exit-codes")).status
    as_json = await world.kettle("wait", "1", "--json")
    assert {"1.1": "exit code 2", "1.2": "signal 9"} == json(as_json.out)["bad"]


async def test_wait_gives_up(world: World, sub: Path) -> None:
    """On time where that was asked for, and where only held jobs are left."""
    await world.kettle("submit", "job.sub")
    late = await world.kettle("wait", "1", "--for", "3")
    assert 1 == late.status
    assert "3 of 3 jobs have not ended" in late.err
    await world.pool.record(*((f"job/1.{proc}", JobHeld(code=1, reason="x")) for proc in range(3)))
    stuck = await world.kettle("wait", "1")
    assert 1 == stuck.status
    assert "3 jobs held and nothing else to wait for; see kettle why 1.0" in stuck.err


async def test_why_no_machine_takes_it(world: World, sub: Path) -> None:
    """Which clause of which side refuses how many slots."""
    await world.kettle("submit", "job.sub")
    world.pool.verdict = Verdict(
        cycle=4,
        at=time.time(),
        rejection=Rejection(
            submitter="ada",
            schedd="schedd",
            autocluster=1,
            count=3,
            reason="no match found",
            slots=8,
            clauses=[
                Clause(side="slot", text="TARGET.Wanted", refuses=2),
                Clause(side="job", text="TARGET.Memory >= RequestMemory", refuses=8),
            ],
        ),
    )
    said = await world.kettle("why", "1.0")
    assert "Job 1.0 has been idle for" in said.out
    assert (
        "It can run on none of 8 slots: all are refused by the clause TARGET.Memory >= RequestMemory of the job"
        in said.out
    )
    assert "The job asks for 128 MiB of memory." in said.out
    assert "8 of 8  the job's   TARGET.Memory >= RequestMemory" in said.out
    assert "2 of 8  the slot's  TARGET.Wanted" in said.out
    told = json((await world.kettle("why", "1.0", "--json")).out)
    assert ("idle", 8, 2) == (told["status"], told["slots"], len(told["clauses"]))


async def test_why_in_other_states(world: World, sub: Path) -> None:
    """Waiting for its turn, held, running, ended: one answer each."""
    await world.kettle("submit", "job.sub")
    assert "No negotiation has looked at jobs like this one yet" in (await world.kettle("why", "1.0")).out
    match = Match(submitter="ada", schedd="schedd", autocluster=1, slot="s", startd="m", count=2)
    world.pool.verdict = Verdict(cycle=1, at=time.time(), matches=[match])
    assert (
        "gave 2 places to jobs like this one; it waits for its turn" in (await world.kettle("why", "1.0")).out
    )
    await world.pool.record(("job/1.0", JobHeld(code=12, reason="no such file", by="shadow")))
    held = (await world.kettle("why", "1.0")).out
    assert "no such file (code 12)" in held
    assert "kettle release 1.0" in held
    await world.pool.record(("job/1.1", ASSIGNED), ("job/1.1", JobStarted(attempt=1)))
    assert "Job 1.1 runs on slot1_1@here" in (await world.kettle("why", "1.1")).out
    await world.pool.record(("job/1.1", DONE))
    assert "Job 1.1 has left the queue: it exited with code 0" in (await world.kettle("why", "1.1")).out
    await world.kettle("rm", "1.2")
    assert "Job 1.2 has left the queue: it was removed by ada" in (await world.kettle("why", "1.2")).out


async def test_status(world: World) -> None:
    """Machines and jobs; the parts of this machine's pool only where there is one."""
    world.pool.ads = [MACHINE, {"MyType": "Scheduler", "Name": "schedd", "TotalIdleJobs": 7}]
    said = await world.kettle("status")
    assert 0 == said.status
    assert "slot1@here" in said.out
    assert "3/8 free" in said.out
    assert "1/4 GiB free" in said.out
    assert "Jobs at schedd: 7 idle, 0 running, 0 held." in said.out
    assert ["slot1@here"] == [
        ad["Name"] for ad in json((await world.kettle("status", "--ads", "Machine", "--json")).out)
    ]
    assert "test" == json((await world.kettle("status", "--json")).out)["pool"]


async def test_history(world: World, sub: Path) -> None:
    """What has left the queue, with exit codes."""
    await world.kettle("submit", "job.sub")
    await world.pool.record(("job/1.0", DONE))
    said = await world.kettle("history", "1")
    row = said.out.splitlines()[1].split()
    assert ("1.0", "C", "0") == (row[0], row[5], row[8])
    assert [0] == [ad["ExitCode"] for ad in json((await world.kettle("history", "--json")).out)]


async def test_without_a_pool(world: World, tmp_path: Path) -> None:
    """One sentence that says what to do."""
    said = await world.kettle("q", KETTLE_HOME=str(tmp_path / "empty"))
    assert (1, "") == (said.status, said.out)
    assert said.err.startswith("kettle q: no pool is up: ")
    assert said.err.endswith("start one with: kettle up\n")


async def test_a_pool_that_does_not_answer(bare: World) -> None:
    """After as long as was asked for, with a hint."""
    said = await bare.kettle("q", "--patience", "0.5")
    assert 1 == said.status
    assert "the schedd 'schedd' did not answer within 0.5 seconds" in said.err
    assert said.err.endswith("see what runs with: kettle status\n")
