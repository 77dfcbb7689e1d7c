"""What bad input gets: one sentence that says what and where, and no trace in the log."""

import asyncio
import json
import re
import signal
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from kettle.client import job_id, select
from kettle.storage import PgLog
from kettle.testing.patience import PATIENCE_S
from kettle.testing.throwaway_pool import ThrowawayPool, throwaway_pool
from kettle_wire.events import ClusterSubmitted, decode

from .waiting import explained

HEAD = "executable = /bin/true\n"
SENTENCE = re.compile(r"kettle submit: bad\.sub, line (\d+): [^\n]+\n")


async def head(pool: ThrowawayPool) -> int:
    """Where the schedd's shard ends in PostgreSQL."""
    async with PgLog.connect(pool.state.database_url, patience=PATIENCE_S) as log:
        tenure = await log.tenure("schedd.schedd")
    assert tenure is not None
    return tenure.frame


async def submissions(pool: ThrowawayPool, since: int) -> list[str]:
    """The clusters that were recorded after a frame; of jobs of earlier tests more may be recorded."""
    async with PgLog.connect(pool.state.database_url, patience=PATIENCE_S) as log:
        return [
            entry.stream
            async for frame in log.read("schedd.schedd", after=since)
            for entry in frame.entries
            if isinstance(decode(entry.data), ClusterSubmitted)
        ]


async def submitted(pool: ThrowawayPool, text: str, cwd: Path) -> str:
    """Submit a description that is accepted; the id of its first job."""
    (cwd / "job.sub").write_text(text)
    status, out, err = await pool.kettle("submit", "job.sub", "--json", cwd=cwd)
    assert 0 == status, err  # which says so, too, if the pool is slow
    return f"{json.loads(out)['cluster']}.0"


async def held(pool: ThrowawayPool, job: str) -> str:
    """Wait until a job is held; what `kettle why` says of it."""
    async with asyncio.timeout(PATIENCE_S):
        status, _, err = await pool.kettle("wait", job)
    assert status == 1
    assert "1 job held and nothing else to wait for; see kettle why" in err
    status, out, err = await pool.kettle("why", job)
    assert (0, "") == (status, err)
    assert out.startswith(f"Job {job} has been held for ")
    await pool.client.remove(select(job))
    return out


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        (HEAD + "request_memroy = 2GB\nqueue\n", 2, "did you mean 'request_memory'?"),
        (HEAD + "use_scitokens = true\nqueue\n", 2, "scitokens_file = FILE"),
        (HEAD + "transfer_error = false\nqueue\n", 2, "is not carried out by this version"),
        ("executable = nowhere.sh\nqueue\n", 1, "nowhere.sh does not exist"),
        ("queue\n", 1, "there is no executable"),
        (HEAD + "input = absent\nqueue\n", 2, "absent does not exist"),
        (HEAD + "transfer_input_files = here, absent\nqueue\n", 2, "absent does not exist"),
        (HEAD + "output = nowhere/out\nqueue\n", 2, "there is no directory"),
        (HEAD + "requirements = (Memory >\nqueue\n", 2, "is not an expression"),
        (HEAD + "rank = 5 +\nqueue\n", 2, "is not an expression"),
        (HEAD + "\n+Project = two words\nqueue\n", 3, "is not an expression"),
        (HEAD + '+Owner = "somebody"\nqueue\n', 2, "is set by the schedd"),
        (HEAD + "+2nd = 1\nqueue\n", 2, "is not the name of an attribute"),
        (HEAD + "request_cpus = 0\nqueue\n", 2, "must be more than zero, not 0"),
        (HEAD + "request_cpus = -2\nqueue\n", 2, "must be more than zero, not -2"),
        (HEAD + "request_cpus = 0.5\nqueue\n", 2, "must be at least 1, not 0.5"),
        (HEAD + "request_cpus = 99999999999999999999\nqueue\n", 2, "too large"),
        (HEAD + "request_memory = -1 GB\nqueue\n", 2, "must be more than zero"),
        (HEAD + "request_memory = 0\nqueue\n", 2, "must be more than zero"),
        (HEAD + "request_disk = -1\nqueue\n", 2, "must be more than zero"),
        (HEAD + "queue name in ()\n", 2, "has no items"),
        (HEAD + "queue name from here\n", 2, "has no items: here is empty"),
        (HEAD + "queue name from absent\n", 2, "cannot read the items"),
        (HEAD + "queue 0\n", 2, "makes no job"),
        (HEAD + "queue 1000000000\n", 2, "at most"),
        ("\x7fELF\x00\x01\nqueue\n", 1, "not text in UTF-8"),
    ],
)
async def test_a_bad_description_is_refused(
    pool: ThrowawayPool, tmp_path: Path, text: str, line: int, words: str
) -> None:
    """Exit status 1, one sentence with file and line, and nothing is recorded."""
    before = await head(pool)
    (tmp_path / "here").touch()
    (tmp_path / "bad.sub").write_text(text)
    status, out, err = await pool.kettle("submit", "bad.sub", cwd=tmp_path)
    assert (1, "") == (status, out)
    sentence = SENTENCE.fullmatch(err)
    assert sentence is not None, err
    assert line == int(sentence[1])
    assert words in err
    assert [] == await submissions(pool, before)


async def test_without_a_queue_statement_there_is_no_line(pool: ThrowawayPool, tmp_path: Path) -> None:
    """What is missing from the whole file is told of the file; so is a file that is missing."""
    before = await head(pool)
    (tmp_path / "bad.sub").write_text(HEAD)
    assert (1, "", "kettle submit: bad.sub: there is no queue statement, so there is no job\n") == (
        await pool.kettle("submit", "bad.sub", cwd=tmp_path)
    )
    status, out, err = await pool.kettle("submit", "absent.sub", cwd=tmp_path)
    assert (1, "") == (status, out)
    assert "kettle submit: cannot read the submit file absent.sub: No such file or directory\n" == err
    assert [] == await submissions(pool, before)


@pytest.mark.parametrize(
    ("line", "clauses", "way_out"),
    [
        ("request_cpus = 3", ["TARGET.Cpus >= RequestCpus"], "1 of 1 slot would match if it asked for"),
        (
            "request_memory = 100 TB",
            ["TARGET.Memory >= RequestMemory"],
            "of memory instead of 100 TiB.",
        ),
        (
            'requirements = TARGET.OpSys == "WINDOWS"',
            ['TARGET.OpSys == "WINDOWS"'],
            'there OpSys is "LINUX"',
        ),
    ],
)
async def test_an_impossible_request_is_explained(
    pool: ThrowawayPool, tmp_path: Path, line: str, clauses: list[str], way_out: str
) -> None:
    """
    It is accepted; `kettle why` says which clause of it refuses how many slots, and what would let it run.
    """
    job = await submitted(pool, f"{HEAD}{line}\nqueue\n", tmp_path)
    told: dict[str, Any] = {}
    async with asyncio.timeout(PATIENCE_S):
        while not told.get("clauses"):
            status, out, err = await pool.kettle("why", job, "--json")
            assert (0, "") == (status, err)
            told = json.loads(out)
    assert told["slots"] == 1
    mine = [
        clause["text"] for clause in told["clauses"] if clause["side"] == "job" and clause["refuses"] == 1
    ]
    assert clauses == mine
    out = await explained(pool, job, "It cannot run on the only slot: that is refused by")
    assert re.search(rf"0 of 1 +1  the job's +{re.escape(clauses[0])}", out)
    assert way_out in out
    assert (0, f"Job {job} removed.\n", "") == await pool.kettle("rm", job)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"#!/no/such/interpreter\n", "bad interpreter: '/no/such/interpreter' does not exist"),
        (b"just some words\n", "neither a program for this machine nor a script"),
        (b"\x7fELF\x02\x01\x01" + bytes(40), "Exec format error"),
        (b"", "neither a program for this machine nor a script"),
    ],
)
async def test_an_executable_that_cannot_be_run_is_held(
    pool: ThrowawayPool, tmp_path: Path, content: bytes, words: str
) -> None:
    """With the reason, which `kettle why` shows."""
    (tmp_path / "program").write_bytes(content)
    (tmp_path / "program").chmod(0o755)
    job = await submitted(pool, "executable = program\nqueue\n", tmp_path)
    assert words in await held(pool, job)


@pytest.mark.parametrize(
    ("path", "words"),
    [("/etc/passwd", "Permission denied"), ("/no/such/program", "No such file or directory")],
)
async def test_a_program_of_the_machine_that_cannot_be_run_is_held(
    pool: ThrowawayPool, tmp_path: Path, path: str, words: str
) -> None:
    """
    One that is not transferred is looked for where it shall run, and may be missing or no program there.
    """
    job = await submitted(pool, f"executable = {path}\ntransfer_executable = false\nqueue\n", tmp_path)
    said = await held(pool, job)
    assert path in said
    assert words in said


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (("why", "47110000.0"), 1, "there is no job 47110000.0: this pool has never had a cluster 47110000"),
        (
            ("events", "47110000.0"),
            1,
            "there is no job 47110000.0: this pool has never had a cluster 47110000",
        ),
        (("wait", "47110000"), 1, "there is no cluster 47110000"),
        (("why", "HERE.99"), 1, "there is no job HERE.99: cluster HERE has "),
        (("events", "-f", "HERE.99"), 1, "there is no job HERE.99: cluster HERE has "),
        (("wait", "HERE.99"), 1, "there is no job HERE.99: cluster HERE has "),
        (("rm", "47110000"), 1, "no job in the queue matches 47110000"),
        (("hold", "47110000.3"), 1, "Job 47110000.3 is not in the queue"),
        (("release", "47110000.3"), 1, "Job 47110000.3 is not in the queue"),
        (("rm",), 2, "which jobs?"),
        (("rm", "x"), 2, "'x' is not the id of a job"),
        (("why", "x.y"), 2, "'x.y' is neither a job nor a node of a DAG"),
        (("rm", "1.-1"), 2, "'1.-1' is not the id of a job"),
        (("why", "x"), 2, "'x' is not the id of a job"),
        (("submit",), 2, "the following arguments are required: FILE\n"),
        (("run",), 2, "the following arguments are required: ROLE\n"),
        (("q", "--constraint", "Memory >"), 2, "'Memory >' cannot be read"),
        (("q", "--limit", "-1"), 2, "'-1' is not a whole number from 0 on"),
        (("history", "--limit", "-1"), 2, "'-1' is not a whole number from 0 on"),
        (("wait", "1", "--for", "soon"), 2, "'soon' is not a number of seconds"),
        (("stat",), 2, "did you mean kettle status?"),
    ],
)
async def test_what_is_not_there_is_said_so(
    pool: ThrowawayPool, tmp_path: Path, words: tuple[str, ...], status: int, said: str
) -> None:
    """No traceback, no waiting: exit status 1 for a refusal, 2 for what was typed, and a sentence."""
    if "HERE" in said:
        cluster = (await submitted(pool, f"{HEAD}queue\n", tmp_path)).partition(".")[0]
        words, said = tuple(word.replace("HERE", cluster) for word in words), said.replace("HERE", cluster)
    found, out, err = await pool.kettle(*words)
    assert (status, "") == (found, out)
    assert said in err
    assert "Traceback" not in err


async def test_every_command_speaks_json(pool: ThrowawayPool, tmp_path: Path) -> None:
    """With `--json` standard output is JSON and nothing else."""
    job = await submitted(pool, f"{HEAD}arguments = $(Process)\nqueue 3\n", tmp_path)
    cluster = job.partition(".")[0]
    stays = await submitted(
        pool, f"{HEAD}hold_me = 1\narguments = $(hold_me)\nrequest_cpus = 3\nqueue\n", tmp_path
    )
    for words in (
        ("submit", "job.sub", "--dry-run"),
        ("wait", cluster),
        ("q",),
        ("q", "--all", "--attributes", "ClusterId,ProcId"),
        ("history", cluster),
        ("why", job),
        ("why", stays),
        ("hold", stays, "--reason", "to see it"),
        ("q", "--held"),
        ("release", stays),
        ("rm", stays),
        ("status",),
        ("status", "--ads", "Machine"),
        ("log", "check"),
        ("log", "check", "--recent"),
        ("version",),
        ("up",),
    ):
        status, out, err = await pool.kettle(*words, "--json", cwd=tmp_path)
        assert (0, "") == (status, err), words
        json.loads(out)
    status, out, err = await pool.kettle("events", job, "--json")
    assert (0, "") == (status, err)
    assert len([json.loads(line) for line in out.splitlines()]) >= 4


async def test_a_pipe_gets_no_colours(pool: ThrowawayPool, tmp_path: Path) -> None:
    """Whatever is not a terminal gets plain text."""
    job = await submitted(pool, f"{HEAD}request_cpus = 3\nqueue\n", tmp_path)
    for words in (
        ("q",),
        ("q", "--held"),
        ("why", job),
        ("events", job),
        ("status",),
        ("log", "check"),
        ("history",),
    ):
        status, out, err = await pool.kettle(*words)
        assert 0 == status
        assert "\x1b" not in out + err, words
        assert out
    await pool.client.remove(select(job))


async def test_a_second_up_finds_the_pool(pool: ThrowawayPool) -> None:
    """Nothing is started again."""
    before = {daemon.name: daemon.pid for daemon in pool.state.daemons}
    status, out, _ = await pool.kettle("up")
    assert (0, f"The pool is already up in {pool.home}.\n") == (status, out)
    assert before == {daemon.name: daemon.pid for daemon in pool.state.daemons}


def connected(pid: int) -> bool:
    """Whether a process has a connection over TCP: a command is at work by then."""
    own = set[str]()
    for link in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):  # closed meanwhile
            own.add(str(link.readlink()))
    lines = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return any(fields[3] == "01" and f"socket:[{fields[9]}]" in own for fields in lines)


@pytest.mark.parametrize("words", [("wait",), ("events", "-f"), ("events", "-f", "--json")], ids=" ".join)
async def test_an_interrupt_ends_a_command_and_nothing_else(
    pool: ThrowawayPool, tmp_path: Path, words: tuple[str, ...]
) -> None:
    """Exit status 130, no traceback, and the job goes on."""
    job = await submitted(pool, "executable = /bin/sleep\narguments = 600\nqueue\n", tmp_path)
    process = await asyncio.create_subprocess_exec(
        # A shell that runs the tests in the background may have had them ignore interrupts, and the command would too.
        "env", "--default-signal=INT", sys.executable, "-P", "-m", "kettle_services.cli", *words, job,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**pool.environ, "KETTLE_HOME": str(pool.home)},
    )  # fmt: skip
    try:
        async with asyncio.timeout(PATIENCE_S):
            async for event in pool.client.follow(job_id(job)):
                if type(event.event).__name__ == "JobStarted":
                    break
            if words[0] == "events":
                assert process.stdout is not None
                while b"started" not in (line := await process.stdout.readline()):
                    assert line, "it has ended"
            else:
                while not connected(process.pid):  # it says nothing that one could wait for
                    await asyncio.sleep(0.02)
            process.send_signal(signal.SIGINT)
            _, err = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert (130, b"") == (process.returncode, err)
    (ad,) = await pool.client.jobs(select(job))
    assert 2 == ad["JobStatus"]
    await pool.client.remove(select(job))


async def test_without_a_pool_every_command_says_what_to_do(tmp_path: Path, template: Path) -> None:
    """
    One sentence, exit status 1; `down` finds nothing to do, once and again; a pool that starts has a machine at once.
    """
    async with throwaway_pool(tmp_path, cpus=1, template=template) as own:
        assert "Machine" in [ad.get("MyType") for ad in await own.client.ads()]
        (tmp_path / "job.sub").write_text(f"{HEAD}queue\n")
        said = [await own.kettle("down"), await own.kettle("down")]
        assert [
            (0, f"The pool in {own.home} is down.\n", ""),
            (0, f"No pool was up in {own.home}.\n", ""),
        ] == said
        for words in (
            ("status",), ("submit", "job.sub"), ("q",), ("history",), ("wait",), ("wait", "1"), ("events", "1.0"),
            ("why", "1.0"), ("hold", "1"), ("release", "1"), ("rm", "1"), ("log", "check"), ("q", "--json"),
        ):  # fmt: skip
            status, out, err = await own.kettle(*words, cwd=tmp_path)
            assert (1, "") == (status, out), words
            sentence = f"kettle {words[0]}: no pool is up: {own.home}/pool.json does not exist; start one with: kettle up\n"
            assert sentence == err
        await own.start()
        assert 0 == (await own.kettle("status"))[0]
    assert [] == own.left


async def test_the_record_is_sound(pool: ThrowawayPool) -> None:
    """After all of this the audit finds nothing."""
    audit = await pool.log_check()
    assert audit.clean, audit.said
