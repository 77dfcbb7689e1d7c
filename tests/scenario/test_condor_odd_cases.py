"""
The condor_* commands that programs run, where things are not as usual: none, very many, odd names, and services away.
"""

import asyncio
import os
import re
import signal
import socket
from collections.abc import Generator
from contextlib import contextmanager

import pytest

from kettle.testing.commands.running import Said
from kettle.testing.throwaway_pool import ThrowawayPool

from .condor import WAITS, Condor

MANY = 4_000
PATIENCE = "5"
"""Seconds of a command that is to find nobody: enough to find the bus on a busy machine."""
NOBODYS = "1000000.0"
NEVER = 'Owner == "nobody at all"'


# -- none ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["condor_rm", "condor_hold", "condor_release"])
async def test_nothing_can_be_done_to_no_jobs(condor: Condor, name: str) -> None:
    """To all of none it is no failure; to a job, a cluster or a person without any it is one."""
    verb = name.removeprefix("condor_").replace("rm", "remove")
    for words, status, err in (
        (("-all",), 0, f"Couldn't find/{verb} all jobs\n"),
        (("1000000.0",), 1, "Job 1000000.0 not found\n"),
        (("1000000",), 1, f"Couldn't find/{verb} all jobs in cluster 1000000\n"),
        (("nobody",), 1, f'Couldn\'t find/{verb} all jobs of user "nobody"\n'),
    ):
        assert Said(status, "", err) == await condor(name, *words), words


async def test_of_an_empty_queue_tables_have_their_titles(condor: Condor) -> None:
    """Nextflow looks for the titles, and reads from there to an empty line."""
    lines = (await condor("condor_q", "-nobatch")).out.split("\n")
    title = lines.index(" ID      OWNER            SUBMITTED     RUN_TIME ST PRI SIZE CMD")
    assert "" == lines[title + 1]
    batches = (await condor("condor_q")).out.splitlines()
    titles = ["OWNER", "BATCH_NAME", "SUBMITTED", "DONE", "RUN", "IDLE", "HOLD", "TOTAL", "JOB_IDS"]
    assert titles == batches[3].split()
    assert "" == batches[4]
    totals = await condor("condor_q", "-totals")
    assert (0, "") == (totals.status, totals.err)
    assert (
        "Total for query: 0 jobs; 0 completed, 0 removed, 0 idle, 0 running, 0 held, 0 suspended "
        in totals.out
    )
    history = await condor("condor_history", "1000000")
    assert Said(0, " ID     OWNER          SUBMITTED   RUN_TIME     ST COMPLETED   CMD\n", "") == history


@pytest.mark.parametrize(
    ("typed", "sentence"),
    [("", "there is no queue statement"), ("nonsense\nqueue\n", "line 1")],
)
async def test_a_submission_of_nothing_is_refused(condor: Condor, typed: str, sentence: str) -> None:
    said = await condor("condor_submit", typed=typed)
    assert (1, "") == (said.status, said.out)
    assert said.err.startswith("\nERROR: ")
    assert sentence in said.err


async def test_a_log_of_no_jobs_is_waited_for(condor: Condor) -> None:
    """Somebody may be about to submit."""
    (condor.work / "log").touch()
    assert Said(1, "Time expired.\n", "") == await condor("condor_wait", "-wait", "0", "log")
    assert Said(1, "Time expired.\n", "") == await condor("condor_wait", "-wait", "1", "log", "7.3")
    said = await condor("condor_wait", "log", "x")
    assert (1, "") == (said.status, said.out)
    assert "'x' is not the id of a job" in said.err


# -- a condition that nothing meets --------------------------------------------------------------------------------------


async def test_a_constraint_may_match_nothing(condor: Condor) -> None:
    """No failure of a question; of what should have been done it is one."""
    cluster = await condor.submitted(f"{WAITS}queue\n")
    for name in ("condor_q", "condor_history", "condor_status"):
        for form in (("-af", "Owner"), ("-json",), ("-long",)):
            assert Said(0, "", "") == await condor(name, "-constraint", NEVER, *form), name
    assert Said(0, "", "") == await condor("condor_status", "-constraint", NEVER)
    for name, verb in (("condor_rm", "remove"), ("condor_hold", "hold"), ("condor_release", "release")):
        expected = f"Couldn't find/{verb} all jobs matching constraint ({NEVER})\n"
        assert Said(1, "", expected) == await condor(name, "-constraint", NEVER)
    for name in ("condor_q", "condor_history", "condor_status", "condor_rm", "condor_hold", "condor_release"):
        said = await condor(name, "-constraint", 'Owner == "x')
        assert (1, "") == (said.status, said.out), name
        assert "Parse error: the constraint 'Owner == \"x' cannot be read" in said.err, name
    assert "1\n" == (await condor("condor_q", f"{cluster}", "-af", "JobStatus")).out


# -- odd names -----------------------------------------------------------------------------------------------------------


async def test_names_may_have_blanks(condor: Condor) -> None:
    """Of files, logs, batches and in conditions."""
    name = "a set, of 2 'jobs'"
    (condor.work / "my jobs.sub").write_text(
        "executable = /bin/sh\narguments = \"-c 'exit 0'\"\nlog = the log\nqueue 2\n"
    )
    said = await condor("condor_submit", "-batch-name", name, "-terse", "my jobs.sub")
    cluster = said.out.partition(".")[0]
    assert Said(0, f"{cluster}.0 - {cluster}.1\n", "") == said
    assert Said(0, "All jobs done.\n", "") == await condor("condor_wait", "the log", cluster)
    meant = ("-constraint", f'JobBatchName == "{name}"')
    wanted = f"{cluster}.0 {name}"
    said = await condor("condor_history", cluster, *meant, "-match", "1", "-af:j", "JobBatchName")
    assert (0, "") == (said.status, said.err)
    assert said.out in {f"{cluster}.0 {name}\n", f"{cluster}.1 {name}\n"}, wanted
    waits = await condor.submitted(f"{WAITS}queue 2\n", "-batch-name", name)
    assert name in (await condor("condor_q")).out
    assert (
        f"{waits}.0 {name}\n{waits}.1 {name}\n"
        == (await condor("condor_q", *meant, "-af:j", "JobBatchName")).out
    )
    held = await condor("condor_hold", *meant, "-reason", "two words")
    assert Said(0, f"All jobs matching constraint ({meant[1]}) have been held\n", "") == held
    assert Said(0, "", "") == await condor("condor_status", "a name", "-af", "Name")
    for command in ("condor_q", "condor_rm", "condor_history"):
        said = await condor(command, "two words")
        assert (1, "") == (said.status, said.out)
        assert "'two words' is neither the id of a job nor a user" in said.err


@pytest.mark.parametrize(
    "words",
    [
        ("condor_q", "-constraint", 'Owner == "\udcff"'),
        ("condor_history", "-constraint", 'Owner == "\udcff"'),
        ("condor_rm", "-reason", "\udcff", "1.0"),
        ("condor_hold", "-reason", "\udcff", "1.0"),
        ("condor_submit", "-append", '+Tag = "\udcff"'),
        ("condor_drain", "-reason", "\udcff", socket.gethostname()),
    ],
)
async def test_octets_that_are_no_text_are_refused(condor: Condor, words: tuple[str, ...]) -> None:
    """A file system has them in names; messages cannot."""
    said = await condor(*words, typed=f"{WAITS}queue\n")
    assert (1, "") == (said.status, said.out)
    assert re.search("not (text in )?UTF-8", said.err)
    assert "Traceback" not in said.err


# -- very many -----------------------------------------------------------------------------------------------------------


async def test_thousands_of_jobs_are_as_one(condor: Condor) -> None:
    """Each with its dot and its line; what is done to all of them is done by one command, and said once."""
    (condor.work / "many.sub").write_text(f"{WAITS}queue {MANY}\n")
    said = await condor("condor_submit", "many.sub")
    assert (0, "") == (said.status, said.err)
    first, second = said.out.splitlines()
    assert f"Submitting job(s){'.' * MANY}" == first
    cluster = second.removeprefix(f"{MANY} job(s) submitted to cluster ").rstrip(".")
    ids = (await condor("condor_q", "-af:j", "JobStatus")).out.splitlines()
    assert [f"{cluster}.{proc} 1" for proc in range(MANY)] == ids
    assert MANY == (await condor("condor_q", "-long")).out.count(f"\nClusterId = {cluster}\n")
    rows = (await condor("condor_q", "-nobatch")).out.splitlines()
    assert MANY == sum(row.lstrip().startswith(f"{cluster}.") for row in rows)
    batch = (await condor("condor_q")).out.splitlines()[4].split()
    assert ["_", "_", str(MANY), "_", str(MANY), f"{cluster}.0-{MANY - 1}"] == batch[-6:]
    for name, done, status in (("condor_hold", "held", 5), ("condor_release", "released", 1)):
        assert Said(0, f"All jobs in cluster {cluster} have been {done}\n", "") == await condor(name, cluster)
        counted = (await condor("condor_q", "-constraint", f"JobStatus == {status}", "-af", "ProcId")).out
        assert MANY == counted.count("\n"), name
    few = [f"{cluster}.{proc}" for proc in range(500)]
    said = await condor("condor_hold", *few)
    assert Said(0, "".join(f"Job {job} held\n" for job in few), "") == said
    gone = f"All jobs in cluster {cluster} have been marked for removal\n"
    assert Said(0, gone, "") == await condor("condor_rm", cluster)
    assert Said(0, "", "") == await condor("condor_q", cluster, "-af", "ProcId")
    said = await condor("condor_history", cluster, "-af", "ProcId", "JobStatus")
    assert (0, "") == (said.status, said.err)
    assert sorted(f"{proc} 3" for proc in range(MANY)) == sorted(said.out.splitlines())


async def test_a_log_of_thousands_of_jobs_is_read(condor: Condor) -> None:
    """However many of them have ended."""
    began = "000 (7.{:03}.000) 2026-11-20 17:00:00 Job submitted from host: <127.0.0.1>\n...\n"
    ended = "005 (7.{:03}.000) 2026-11-20 17:00:01 Job terminated.\n\t(1) Normal termination (return value 0)\n...\n"
    log = condor.work / "log"
    log.write_text("".join(map(began.format, range(MANY))) + "".join(map(ended.format, range(MANY - 1))))
    assert Said(1, "Time expired.\n", "") == await condor("condor_wait", "-wait", "0", "log")
    assert Said(0, f"{MANY - 1} jobs done.\n", "") == await condor(
        "condor_wait", "-num", f"{MANY // 2}", "log"
    )
    assert Said(0, "All jobs done.\n", "") == await condor("condor_wait", "log", "7.12")
    with log.open("a") as more:
        more.write(ended.format(MANY - 1))
    assert Said(0, "All jobs done.\n", "") == await condor("condor_wait", "log")


# -- services that do not answer -----------------------------------------------------------------------------------------


@contextmanager
def still(pool: ThrowawayPool, *services: str) -> Generator[None]:
    """Services that do not answer."""
    pids = [pool.kill(service, signal.SIGSTOP) for service in services]
    try:
        yield
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)


async def test_without_its_service_a_command_says_so_and_fails(condor: Condor, pool: ThrowawayPool) -> None:
    """
    Nothing on standard output, one sentence with the name of what does not answer, status 1.

    What waits for a service is done when it goes on, in any order. So these ask for what changes nothing.
    """
    cluster = await condor.submitted(f"{WAITS}log = log\nqueue\n")
    job = f"{cluster}.0"
    commands: dict[str, tuple[tuple[str, ...], ...]] = {
        "schedd": (
            ("condor_q",), ("condor_q", "-totals"), ("condor_q", job, "-af", "JobStatus"), ("condor_hold", NOBODYS),
            ("condor_release", NOBODYS), ("condor_qedit", job, "Tag", "1"), ("condor_tail", job),
            ("condor_ssh_to_job", job, "ls"), ("condor_submit",), ("condor_reschedule",),
        ),
        "accounting": (("condor_history",), ("condor_history", job, "-af", "JobStatus")),
        "collector": (("condor_status",), ("condor_drain", "x"), ("condor_who",)),
        "negotiator": (("condor_userprio",),),
    }  # fmt: skip

    async def fails(service: str, name: str, *words: str) -> None:
        said = await condor(name, *words, typed=f"{WAITS}queue\n", _condor_TOOL_PATIENCE=PATIENCE)
        assert (1, "") == (said.status, said.out), name
        begin = "\nERROR: " if name == "condor_submit" else f"{name}: "
        sentence = rf"{begin}the {service} '{service}' did not answer within {PATIENCE} seconds \(.*\)\n"
        assert re.fullmatch(sentence, said.err), said

    with still(pool, *commands):
        async with asyncio.TaskGroup() as all_at_once:
            for service, asked in commands.items():
                for words in asked:
                    all_at_once.create_task(fails(service, *words))
        assert Said(1, "Time expired.\n", "") == await condor("condor_wait", "-wait", "0", "log")
    assert f"{job} 1\n" == (await condor("condor_q", "-limit", "1", "-af:j", "JobStatus")).out


async def test_without_a_pool_a_command_says_so_and_fails(condor: Condor) -> None:
    """
    None is known, or its bus is away: each in one sentence that says what to do, and condor_wait does not need any.
    """
    empty = str(condor.work / "nothing")
    away = {"KETTLE_NATS_URL": "nats://127.0.0.1:9", "_condor_TOOL_PATIENCE": "0.3", "KETTLE_HOME": empty}
    for name, words in {
        "condor_q": (),
        "condor_rm": ("1.0",),
        "condor_hold": ("1.0",),
        "condor_release": ("1.0",),
        "condor_history": (),
        "condor_status": (),
        "condor_submit": (),
    }.items():
        begin = "\nERROR: " if name == "condor_submit" else f"{name}: "
        for variables, sentence in (({"KETTLE_HOME": empty}, "no pool is up: "), (away, "cannot be reached")):
            said = await condor(name, *words, typed=f"{WAITS}queue\n", **variables)
            assert (1, "") == (said.status, said.out), said
            assert said.err.startswith(begin)
            assert sentence in said.err
            assert "Traceback" not in said.err
    (condor.work / "log").write_text("005 (7.0.0) 2026-11-20 17:00:01 Job terminated.\n...\n")
    assert Said(0, "All jobs done.\n", "") == await condor("condor_wait", "log", KETTLE_HOME=empty)
