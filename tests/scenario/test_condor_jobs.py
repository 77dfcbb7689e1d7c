"""The condor_* commands about jobs that run, and about why others do not, to the letter."""

import asyncio
import os
import pty
import re
import signal

import pytest

from kettle.testing.commands.running import Said
from kettle.testing.patience import PATIENCE_S
from kettle.testing.throwaway_pool import ThrowawayPool
from kettle_wire.events import JobHeld, JobStarted, JobVacated

from .condor import WAITS, Condor
from .terminals import all_said
from .waiting import happened

RUNS = "executable = /bin/sleep\narguments = 600\nqueue\n"
TALKS = """\
#!/bin/sh
echo one; echo two; echo wrong >&2
mkdir logs; echo 'step 1' > 'logs/a step.log'
while [ ! -e go ]; do sleep 0.1; done
echo three; echo 'wrong again' >&2
while [ ! -e stop ]; do sleep 0.1; done
"""


async def talking(condor: Condor, pool: ThrowawayPool) -> str:
    """A job that has written its files and runs until a file `go` is in its sandbox."""
    script = condor.work / "talk.sh"
    script.write_text(TALKS)
    script.chmod(0o755)
    cluster = await condor.submitted("executable = talk.sh\noutput = out\nerror = err\nqueue\n")
    job = f"{cluster}.0"
    await happened(pool.client, job, JobStarted)
    async with asyncio.timeout(PATIENCE_S):
        while (await condor("condor_tail", job, "logs/a step.log")).out != "step 1\n":
            await asyncio.sleep(0.05)
    return job


# -- condor_tail ---------------------------------------------------------------------------------------------------------


async def test_the_end_of_files_is_shown_while_they_grow(condor: Condor, pool: ThrowawayPool) -> None:
    """The standard output alone is printed as it is, several files each under its name."""
    job = await talking(condor, pool)
    for words, expected in {
        (job,): "one\ntwo\n",
        ("-maxbytes", "4", job): "two\n",
        (job, "-maxb", "0"): "",
        (job, "-no-stdout", "-stderr"): "wrong\n",
        (job, "logs/a step.log"): "step 1\n",
        (job, "-stderr"): "==> _condor_stdout <==\none\ntwo\n\n==> _condor_stderr <==\nwrong\n",
    }.items():
        assert Said(0, expected, "") == await condor("condor_tail", *words), words
    for words, sentence in {
        (job, "none"): "none: ",
        (job, "../secret"): "../secret: ",
        ("1000000.0",): "1000000.0",
        (job, "-no-stdout"): "nothing to show",
        ("x.y",): "'x.y' is not the id of a job",
        (): "which job?",
        (job, "-maxbytes", "few"): "requires a number",
    }.items():
        said = await condor("condor_tail", *words)
        assert (1, "") == (said.status, said.out), words
        assert sentence in said.err, words


async def test_what_is_followed_ends_with_the_job(condor: Condor, pool: ThrowawayPool) -> None:
    """What is added is shown as it comes."""
    job = await talking(condor, pool)

    async def following(*words: str) -> asyncio.subprocess.Process:
        command = [str(condor.place / "condor_tail"), "-f", *words, job]
        return await asyncio.create_subprocess_exec(
            *command, stdout=asyncio.subprocess.PIPE, env=condor.environ
        )

    out, err = await following(), await following("-stderr", "-no-stdout", "-maxbytes", "3")
    async with asyncio.timeout(PATIENCE_S):
        for process, text in ((out, b"one\ntwo\n"), (err, b"ng\n")):
            assert process.stdout is not None
            assert text == await process.stdout.readexactly(len(text))
        await condor("condor_ssh_to_job", job, "touch go")
        for process, text in ((out, b"three\n"), (err, b"wrong again\n")):
            assert process.stdout is not None
            assert text == await process.stdout.readexactly(len(text))
        await condor("condor_ssh_to_job", job, "touch stop")
        for process in (out, err):
            assert b"" == (await process.communicate())[0]
            assert 0 == process.returncode


async def test_a_job_that_does_not_run_yet_is_waited_for_if_that_is_wanted(
    condor: Condor, pool: ThrowawayPool
) -> None:
    script = condor.work / "talk.sh"
    script.write_text(TALKS)
    script.chmod(0o755)
    job = f"{await condor.submitted(f'executable = talk.sh{os.linesep}requirements = false{os.linesep}queue{os.linesep}')}.0"
    said = await condor("condor_tail", job)
    assert (1, "") == (said.status, said.out)
    assert re.fullmatch(rf"condor_tail: .*{re.escape(job)}.*\n", said.err), said.err
    waiting = asyncio.create_task(
        condor("condor_ssh_to_job", "-auto-retry", job, "while [ ! -d logs ]; do sleep 0.1; done; echo there")
    )
    await condor("condor_qedit", job, "Requirements", "true")
    assert Said(0, "there\n", "") == await waiting


# -- condor_ssh_to_job ---------------------------------------------------------------------------------------------------


async def test_a_command_beside_a_job_is_as_if_it_ran_here(condor: Condor, pool: ThrowawayPool) -> None:
    """
    Its input, its output, its errors, its exit code; what is behind the id is the command's, dashes too.
    """
    job = await talking(condor, pool)
    for words, typed, expected in (
        ((job, "cat 'logs/a step.log'; echo no >&2; exit 3"), "", Said(3, "step 1\n", "no\n")),
        ((job, "cat", "-"), "given\n", Said(0, "given\n", "")),
        ((job, "test", "-e", "nothing"), "", Said(1, "", "")),
        ((job, "kill -TERM $$"), "", Said(128 + signal.SIGTERM, "", "")),
        ((job,), "echo typed; exit 4\n", Said(4, "typed\n", "")),
        (("-debug", "-name", "schedd", job, "ls", "-d", "logs"), "", Said(0, "logs\n", "")),
    ):
        assert expected == await condor("condor_ssh_to_job", *words, typed=typed), words


async def test_a_terminal_here_is_a_terminal_there(condor: Condor, pool: ThrowawayPool) -> None:
    job = await talking(condor, pool)
    ours, theirs = pty.openpty()
    process = await asyncio.create_subprocess_exec(
        condor.place / "condor_ssh_to_job", job,
        stdin=theirs, stdout=theirs, stderr=theirs, env=condor.environ, start_new_session=True,
    )  # fmt: skip
    os.close(theirs)
    os.write(ours, b"test -t 0 && echo $((6 * 7)) beside; exit 4\n")
    async with asyncio.timeout(PATIENCE_S):
        status = await process.wait()
    seen = all_said(ours)
    assert (4, True) == (status, b"42 beside" in seen)
    assert b"Welcome to slot1_" in seen


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ((), "which job?"),
        (("1000000.0", "ls"), "1000000.0"),
        (("-ssh", "sftp", "1.0"), "-ssh is not carried out; there is no ssh behind it"),
        (("-X", "1.0"), "no windows are forwarded"),
        (("-nonsense", "1.0"), "Unrecognized argument -nonsense"),
    ],
)
async def test_what_has_no_ssh_is_refused(condor: Condor, words: tuple[str, ...], sentence: str) -> None:
    said = await condor("condor_ssh_to_job", *words)
    assert (1, "") == (said.status, said.out)
    assert sentence in said.err


# -- who has what, and who gets it ---------------------------------------------------------------------------------------


async def test_the_jobs_of_this_machine_are_shown(condor: Condor, pool: ThrowawayPool) -> None:
    """Whose they are, where they come from, and what they run; and the daemons."""
    nobody = await condor("condor_who")
    titles = "OWNER CLIENT SLOT JOB RUNTIME PID PROGRAM"
    assert Said(0, f"{titles}\n", "") == nobody
    job = f"{await condor.submitted(RUNS)}.0"
    pid = (await happened(pool.client, job, JobStarted)).pid
    async with asyncio.timeout(PATIENCE_S):
        while len(lines := (await condor("condor_who")).out.splitlines()) < 2:
            await asyncio.sleep(0.05)
    assert titles.split() == lines[0].split()
    owner, client, slot, shown, ran, its_pid, *program = lines[1].split()
    mine = (await condor("condor_q", job, "-af", "Owner")).out.strip()
    assert (mine, "schedd", job, str(pid), ["sleep", "600"]) == (owner, client, shown, its_pid, program)
    assert re.fullmatch(r"1_\d+", slot)
    assert re.fullmatch(r"0\+00:0\d:\d\d", ran)
    assert f"{job}\n" == (await condor("condor_who", "-af", "JobId")).out
    daemons = (await condor("condor_who", "-daemons")).out.splitlines()
    assert ["Daemon", "State", "PID", "Restarts"] == daemons[0].split()
    schedd = next(line.split() for line in daemons if line.startswith("Schedd"))
    assert ["Schedd", "Running", str(pool.pid("schedd")), str(pool.daemon("schedd").starts - 1)] == schedd
    everything = (await condor("condor_who", "-allpids")).out.splitlines()[1].split()
    assert str(pid) in everything[5].split(",")


async def test_a_job_runs_now_in_the_place_of_another(condor: Condor, pool: ThrowawayPool) -> None:
    runs = "executable = /bin/sleep\narguments = 600\nrequest_cpus = 2\nqueue\n"
    old = f"{await condor.submitted(runs)}.0"
    await happened(pool.client, old, JobStarted)
    new = f"{await condor.submitted(runs)}.0"
    assert Said(0, f"Job {new} runs as soon as {old} is gone.\n", "") == await condor("condor_now", new, old)
    await happened(pool.client, old, JobVacated)
    await happened(pool.client, new, JobStarted)
    said = await condor("condor_now", new, old)
    assert (1, "") == (said.status, said.out)
    assert said.err.startswith("condor_now: ")
    said = await condor("condor_now", new)
    assert (1, "You must specify both the now-job and (at least one) vacate-job") == (
        said.status,
        said.err.partition(": ")[2].partition("\n")[0],
    )


# -- why jobs wait -------------------------------------------------------------------------------------------------------


async def test_the_subcode_of_a_hold_goes_on_record(condor: Condor, pool: ThrowawayPool) -> None:
    job = f"{await condor.submitted(f'{WAITS}queue{os.linesep}')}.0"
    said = await condor("condor_hold", job, "-subcode", "42", "-reason", "wait for the data")
    assert Said(0, f"Job {job} held\n", "") == said
    held = await happened(pool.client, job, JobHeld)
    assert (1, 42) == (held.code, held.subcode)
    wanted = ("-af", "HoldReasonCode", "HoldReasonSubCode")
    assert "1 42\n" == (await condor("condor_q", job, *wanted)).out
    for wrong in ("much", "3000000000"):
        said = await condor("condor_hold", job, "-subcode", wrong)
        assert (1, "") == (said.status, said.out)
        assert f"-subcode requires a number, not '{wrong}'" in said.err


async def test_an_analysis_shows_requirements_and_what_meets_them(condor: Condor) -> None:
    """The expression, the attributes in it, its conditions with the slots that meet each, and a summary."""
    description = (
        'executable = /bin/sleep\nrequest_memory = 99999999\nrequirements = OpSys == "LINUX"\nqueue\n'
    )
    job = f"{await condor.submitted(description)}.0"
    shown = f"{int(job.partition('.')[0]):03}.000"
    async with asyncio.timeout(PATIENCE_S):
        while "Of 1 machines,\n" not in (text := (await condor("condor_q", "-better-analyze", job)).out):
            await asyncio.sleep(0.1)
    assert text.startswith("\n\n-- Schedd: schedd@")
    assert f"The Requirements expression for job {shown} is\n\n    " in text
    assert f"Job {shown} defines the following attributes:\n\n" in text
    assert "\n    RequestMemory = 99999999\n" in text
    assert re.search(r"^Step    Matched  Condition\n-----  --------  ---------\n", text, re.MULTILINE)
    assert re.search(r"^\[\d+\] +0  TARGET.Memory >= RequestMemory$", text, re.MULTILINE), text
    assert re.search(r'^\[\d+\] +1  .*OpSys == "LINUX"', text, re.MULTILINE), text
    assert f"{shown}:  Job is idle.\n" in text
    assert "instead of" in text  # what it should ask for
    assert f"{shown}:  Run analysis summary ignoring user priority.  Of 1 machines,\n" in text
    assert "      0 are able to run your job\n" in text
    async with asyncio.timeout(PATIENCE_S):  # a negotiator that is slow for a moment is done without
        while "      0 are able to run your job\n" not in (
            short := (await condor("condor_q", "-analyze", job)).out
        ):
            await asyncio.sleep(0.1)
    assert "Requirements expression" not in short
    await condor("condor_hold", job, "-reason", "for a reason")
    held = (await condor("condor_q", "-better-analyze", job)).out
    assert f"{shown}:  Job is held.\n" in held
    assert "for a reason" in held


async def test_of_no_jobs_there_is_nothing_to_analyse(condor: Condor) -> None:
    said = await condor("condor_q", "-better-analyze", "1000000.0")
    assert (0, "") == (said.status, said.err)
    assert 3 == len(said.out.splitlines())


# -- what is not there ---------------------------------------------------------------------------------------------------


async def test_a_dag_that_cannot_run_is_not_submitted(condor: Condor) -> None:
    """What is wrong with it is said before anything is written."""
    (condor.work / "a.dag").write_text("JOB A a.sub\nPARENT A CHILD AA\n")
    said = await condor("condor_submit_dag", "-dagman", "/bin/true", "-f", "a.dag")
    assert (1, "") == (said.status, said.out)
    assert "ERROR: a.dag, line 2: no node or splice is called AA; did you mean A?\n" == said.err
    assert ["a.dag"] == [path.name for path in condor.work.iterdir()]


async def test_chirp_is_for_jobs(condor: Condor, pool: ThrowawayPool) -> None:
    """Elsewhere it says where to use it; where a job finds this one first it does what the job's own does."""
    said = await condor("condor_chirp", "get_job_attr", "RequestMemory")
    assert (1, "") == (said.status, said.out)
    assert said.err.startswith("condor_chirp: this is no job: ")
    description = (
        "executable = /bin/sleep\narguments = 600\nwant_io_proxy = true\nrequest_memory = 17\nqueue\n"
    )
    job = f"{await condor.submitted(description)}.0"
    await happened(pool.client, job, JobStarted)
    config = condor.work / "config"
    config.write_text((await condor("condor_ssh_to_job", job, "cat $_CONDOR_CHIRP_CONFIG")).out)
    inside = {"_CONDOR_CHIRP_CONFIG": str(config)}
    assert Said(0, "17\n", "") == await condor("condor_chirp", "get_job_attr", "RequestMemory", **inside)
