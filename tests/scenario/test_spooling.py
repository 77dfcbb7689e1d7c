"""
Jobs whose files are sent to the access point with their submission, and fetched from there after their end.
"""

import asyncio
import os
import shutil
import signal
import sys
from asyncio.subprocess import Process
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from kettle.client import CommandRefusedError, select
from kettle.testing.commands.running import execute
from kettle.testing.patience import PATIENCE_S
from kettle.testing.throwaway_pool import ThrowawayPool
from kettle_wire.commands import spooling
from kettle_wire.jobs import JobId

from .condor import Condor
from .persons import somebody

MODULES = Path(__file__).parents[2] / "services" / "kettle_services" / "condor" / "python"


@pytest.fixture(scope="module")
def configuration() -> dict[str, Any]:
    return {"cpus": 4}


@pytest.fixture
def condor(pool: ThrowawayPool, place: Path, tmp_path: Path) -> Condor:
    work = tmp_path / "work"
    work.mkdir()
    return Condor(place, pool, work)


def spool_of(pool: ThrowawayPool) -> Path:
    return pool.home / "state" / "spooled.schedd"


async def said(condor: Condor, cluster: int, *attributes: str) -> list[list[str]]:
    """What the queue says of the jobs of a cluster."""
    out = (await condor("condor_q", f"{cluster}", "-af:t", *attributes)).out
    return [line.split("\t") for line in out.splitlines()]


async def ended(condor: Condor, cluster: int, *, count: int = 1) -> None:
    """Wait until all jobs of a cluster have completed, and stay in the queue."""
    async with asyncio.timeout(PATIENCE_S):
        while [["4"]] * count != (states := await said(condor, cluster, "JobStatus")):
            assert ["5"] not in states, await said(condor, cluster, "HoldReason")
            await asyncio.sleep(0.05)


async def gone(directory: Path) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while directory.exists():
            await asyncio.sleep(0.05)


PROGRAM = """#!/bin/sh
cat > from-stdin
cat data/one "$(basename "$1")" > made
echo "out $2"
echo "err $2" >&2
mkdir -p deep && echo "$2" > deep/result
"""


def prepared(work: Path) -> str:
    """A program with all kinds of input, and the description of two jobs of it."""
    (work / "bin").mkdir()
    (work / "bin" / "program").write_text(PROGRAM)
    (work / "bin" / "program").chmod(0o755)
    (work / "data").mkdir()
    (work / "data" / "one").write_bytes(b"one\n")
    (work / "large").write_bytes(os.urandom(3 << 20))
    (work / "typed").write_text("typed\n")
    (work / "out").mkdir()
    return """
executable = bin/program
arguments = large $(Process)
input = typed
transfer_input_files = data, large
transfer_output_files = made, from-stdin, deep
transfer_output_remaps = "made=made.$(Process)"
output = out/stdout.$(Process)
error = out/stderr.$(Process)
log = out/log
request_memory = 16
queue 2
"""


async def test_the_submitters_files_are_not_needed_any_more(
    condor: Condor, pool: ThrowawayPool, tmp_path: Path
) -> None:
    """
    The jobs run although what they were submitted from is deleted when condor_submit returns; what they made comes back,
    byte by byte, and they leave the queue and the spool then.
    """
    (tmp_path / "work" / "job.sub").write_text(prepared(condor.work))
    large = (condor.work / "large").read_bytes()
    done = await condor("condor_submit", "-spool", "job.sub")
    assert (0, "") == (done.status, done.err), done
    first, second = done.out.splitlines()
    assert "Submitting job(s).." == first
    cluster = int(second.removeprefix("2 job(s) submitted to cluster ").rstrip("."))
    shutil.rmtree(condor.work)
    condor.work.mkdir()
    await ended(condor, cluster, count=2)
    [[iwd, submitted, begun, finished], _] = await said(
        condor, cluster, "Iwd", "SUBMIT_Iwd", "StageInStart", "StageInFinish"
    )
    assert (str(spool_of(pool) / f"{cluster}" / "0"), str(condor.work)) == (iwd, submitted)
    assert 0 < int(begun) <= int(finished)
    fetched = await condor("condor_transfer_data", f"{cluster}")
    assert (0, "Fetching data files...\n", "") == (fetched.status, fetched.out, fetched.err)
    for proc in range(2):
        assert b"one\n" + large == (condor.work / f"made.{proc}").read_bytes()
        assert f"out {proc}\n" == (condor.work / "out" / f"stdout.{proc}").read_text()
        assert f"err {proc}\n" == (condor.work / "out" / f"stderr.{proc}").read_text()
    assert "typed\n" == (condor.work / "from-stdin").read_text()
    assert (condor.work / "deep" / "result").read_text() in {"0\n", "1\n"}
    events = [
        line[:3] for line in (condor.work / "out" / "log").read_text().splitlines() if line[:3].isdecimal()
    ]
    assert {"000": 2, "012": 2, "013": 2, "005": 2} == {
        number: events.count(number) for number in ("000", "012", "013", "005")
    }
    assert "" == (await condor("condor_q", f"{cluster}", "-af", "ClusterId")).out
    await gone(spool_of(pool) / f"{cluster}")


async def test_a_proxy_is_sent_along(condor: Condor, pool: ThrowawayPool) -> None:
    """
    The job has it, closed to others, though its submitter has removed it meanwhile; and it does not come back.
    """
    (condor.work / "x509up").write_text("certificate\n")
    (condor.work / "x509up").chmod(0o644)
    (condor.work / "run").write_text('#!/bin/sh\nstat -c %a "$X509_USER_PROXY"; cat "$X509_USER_PROXY"\n')
    text = f"executable = run\noutput = out\nuse_x509userproxy = true\nx509userproxy = {condor.work}/x509up\nqueue\n"
    done = await condor("condor_submit", "-spool", "-terse", typed=text)
    assert (0, "") == (done.status, done.err)
    cluster = int(done.out.partition(".")[0])
    (condor.work / "x509up").unlink()
    await ended(condor, cluster)
    assert 0 == (await condor("condor_transfer_data", f"{cluster}")).status
    assert "600\ncertificate\n" == (condor.work / "out").read_text()
    assert not (condor.work / "x509up").exists()
    await gone(spool_of(pool) / f"{cluster}")


LARGE = 128 << 20
"""Bytes that are on their way long enough for somebody to see it."""
SUM = """
executable = /usr/bin/sha256sum
arguments = large
transfer_executable = false
transfer_input_files = large
output = sum
request_memory = 16
queue
"""


@asynccontextmanager
async def sending(
    condor: Condor, pool: ThrowawayPool, description: str
) -> AsyncGenerator[tuple[Process, int]]:
    """A condor_submit that is suspended while it sends a large file, and the cluster that it has made."""
    with (condor.work / "large").open("wb") as file:
        file.truncate(LARGE)
    (condor.work / "job.sub").write_text(description)
    before = set(spool_of(pool).glob("*"))
    process = await asyncio.create_subprocess_exec(
        str(condor.place / "condor_submit"),
        "-spool",
        "job.sub",
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=condor.environ,
        cwd=condor.work,
    )
    try:
        async with asyncio.timeout(PATIENCE_S):
            while not (
                begun := [
                    path for path in spool_of(pool).glob("*/objects/*.part") if path.parents[1] not in before
                ]
            ):
                await asyncio.sleep(0.002)
        process.send_signal(signal.SIGSTOP)
        yield process, int(begun[0].parents[1].name)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def test_a_submission_that_is_killed_runs_nothing(condor: Condor, pool: ThrowawayPool) -> None:
    """
    Its job stays held with the code that clients know, nobody can release it, and removing it removes what had arrived.
    """
    async with sending(condor, pool, SUM) as (process, cluster):
        process.kill()
        await process.wait()
    held = await said(
        condor, cluster, "JobStatus", "HoldReasonCode", "HoldReasonSubCode", "HoldReason", "NumHolds"
    )
    assert [["5", "16", "0", "Spooling input data files", "0"]] == held
    released = await condor("condor_release", f"{cluster}.0")
    assert (1, "", f"Job {cluster}.0 not held to be released\n") == released
    fetched = await condor("condor_transfer_data", f"{cluster}.0")
    assert 1 == fetched.status
    assert f"Job {cluster}.0 was not submitted with -spool, or its files are not all there" in fetched.err
    assert (await condor("condor_rm", f"{cluster}.0")).status == 0
    await gone(spool_of(pool) / f"{cluster}")


@pytest.mark.parametrize("service", ["schedd", "shadow"])
async def test_a_service_that_is_killed_meanwhile_is_waited_for(
    condor: Condor, pool: ThrowawayPool, service: str
) -> None:
    """The submission goes on with the next one, and the job gets its whole input."""
    async with sending(condor, pool, SUM) as (process, cluster):
        killed = pool.kill(service)
        await pool.restarted(service, after=killed)
        assert [["5", "16"]] == await said(condor, cluster, "JobStatus", "HoldReasonCode")
        process.send_signal(signal.SIGCONT)
        async with asyncio.timeout(PATIENCE_S):
            out, err = await process.communicate()
    assert (0, "") == (process.returncode, err.decode())
    assert out.decode().endswith(f"submitted to cluster {cluster}.\n")
    (condor.work / "large").unlink()
    await ended(condor, cluster)
    assert 0 == (await condor("condor_transfer_data", f"{cluster}")).status
    digest = sha256(bytes(LARGE)).hexdigest()
    assert f"{digest}  large\n" == (condor.work / "sum").read_text()


async def test_a_job_that_is_removed_meanwhile_is_no_more(condor: Condor, pool: ThrowawayPool) -> None:
    """The submission ends with a sentence, and leaves nothing."""
    async with sending(condor, pool, SUM) as (process, cluster):
        assert (await condor("condor_rm", f"{cluster}")).status == 0
        await gone(spool_of(pool) / f"{cluster}")
        process.send_signal(signal.SIGCONT)
        async with asyncio.timeout(PATIENCE_S):
            out, err = await process.communicate()
    assert (1, "") == (process.returncode, out.decode())
    assert f"cluster {cluster} is not in the queue" in err.decode()
    await gone(spool_of(pool) / f"{cluster}")


async def test_many_jobs_that_share_an_input_send_it_once(condor: Condor, pool: ThrowawayPool) -> None:
    """It is in the spool once, and each job that runs has it, and results of its own."""
    (condor.work / "shared").write_bytes(os.urandom(1 << 20))
    (condor.work / "job.sub").write_text(
        "executable = /usr/bin/sha256sum\narguments = shared\ntransfer_executable = false\n"
        "transfer_input_files = shared\noutput = sum.$(Process)\nrequest_memory = 16\n"
        "queue 4\nrequirements = false\nqueue 1996\n"
    )
    done = await condor("condor_submit", "-spool", "-terse", "job.sub")
    assert (0, "") == (done.status, done.err)
    cluster = int(done.out.partition(".")[0])
    objects = sorted(path.stat().st_size for path in (spool_of(pool) / f"{cluster}" / "objects").iterdir())
    assert (2, 1 << 20) == (len(objects), objects[-1])  # the other one says whose it is
    digest = sha256((condor.work / "shared").read_bytes()).hexdigest()
    async with asyncio.timeout(PATIENCE_S):
        while 4 != len(
            (
                await condor("condor_q", f"{cluster}", "-af", "ProcId", "-constraint", "JobStatus == 4")
            ).out.split()
        ):
            await asyncio.sleep(0.1)
    assert (
        0
        == (
            await condor("condor_transfer_data", "-constraint", f"ClusterId == {cluster} && JobStatus == 4")
        ).status
    )
    sums = {path.name: path.read_text() for path in condor.work.glob("sum.*")}
    assert {f"sum.{proc}": f"{digest}  shared\n" for proc in range(4)} == sums
    left = (await condor("condor_q", f"{cluster}", "-totals")).out
    assert "1996 jobs" in left
    assert "1996 idle" in left


async def test_other_people_are_refused(condor: Condor, pool: ThrowawayPool, tmp_path: Path) -> None:
    """They can neither send files for a job of somebody else's, nor fetch any."""
    (condor.work / "job.sub").write_text("executable = /bin/echo\narguments = mine\noutput = out\nqueue\n")
    cluster = int((await condor("condor_submit", "-spool", "-terse", "job.sub")).out.partition(".")[0])
    await ended(condor, cluster)
    job = JobId(cluster, 0)
    async with somebody(pool, "eve", tmp_path) as eve:
        for ask in (
            eve.spools.fetch(select(cluster)),
            eve.spools.send([{"ClusterId": cluster, "ProcId": 0, "Cmd": "/bin/true"}]),
        ):
            with pytest.raises(
                CommandRefusedError, match=f"eve may not move files of cluster {cluster}, which is of "
            ):
                await ask
        shadow = await pool.client.spools._shadow(cluster)  # pyright: ignore[reportPrivateUsage]  # eve may know its name
        for endpoint, request in (
            (spooling.SPOOL_PARTS, spooling.SpoolParts(cluster=cluster, parts=[])),
            (spooling.SPOOL_JOBS, spooling.SpoolJobs(cluster=cluster, manifest="0" * 64)),
            (spooling.LIST_SPOOLED, spooling.ListSpooled(job=job)),
            (
                spooling.FETCH_SPOOLED,
                spooling.FetchSpooled(job=job, name="_condor_stdout", offset=0, length=9),
            ),
        ):
            with pytest.raises(CommandRefusedError) as refused:  # she asks the shadow herself
                await eve.requests.ask(endpoint, request, name=shadow)  # type: ignore[misc]
            assert "denied" == refused.value.code
    assert 0 == (await condor("condor_transfer_data", f"{cluster}")).status
    assert "mine\n" == (condor.work / "out").read_text()


async def test_files_of_each_cluster_are_sent(condor: Condor) -> None:
    """Two clusters of one description, and both may run without what they were submitted from."""
    (condor.work / "one").write_text("1\n")
    (condor.work / "two").write_text("2\n")
    each = "transfer_executable = false\nrequest_memory = 16\n"
    first = "executable = /bin/cat\narguments = one\ntransfer_input_files = one\noutput = out.one\nqueue\n"
    second = "executable = /usr/bin/sha256sum\narguments = two\ntransfer_input_files = two\noutput = out.two\nqueue\n"
    done = await condor("condor_submit", "-spool", "-terse", typed=each + first + second)
    assert (0, "") == (done.status, done.err), done
    clusters = [int(line.partition(".")[0]) for line in done.out.splitlines()]
    (condor.work / "one").unlink()
    (condor.work / "two").unlink()
    assert 2 == len(clusters)
    for cluster in clusters:
        await ended(condor, cluster, count=1)
        assert 0 == (await condor("condor_transfer_data", f"{cluster}")).status
    assert "1\n" == (condor.work / "out.one").read_text()
    assert f"{sha256(b'2' + os.linesep.encode()).hexdigest()}  two\n" == (condor.work / "out.two").read_text()


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("should_transfer_files = NO", "should_transfer_files = NO"),
        ("max_idle = 1", "max_materialize or max_idle"),
        ('+SUBMIT_Iwd = "/"', "SUBMIT_"),
    ],
)
async def test_what_cannot_be_spooled_is_refused(condor: Condor, line: str, sentence: str) -> None:
    done = await condor("condor_submit", "-spool", typed=f"executable = /bin/true\n{line}\nqueue 2\n")
    assert (1, "") == (done.status, done.out)
    assert sentence in done.err


async def test_a_scheduler_of_dask_as_an_analysis_facility_submits_it(condor: Condor, tmp_path: Path) -> None:
    """
    The way of dask-remote-jobqueue: from a directory that is deleted at once, with a shell and both streams as one.
    """
    secrets = tmp_path / "facility"
    secrets.mkdir()
    (secrets / "ca.crt").write_text("certificate\n")
    (secrets / "token").write_text("token\n")
    place = condor.work / "tmp"
    place.mkdir()
    (place / "start_scheduler.py").write_text("print('scheduler')\n")
    (place / "entrypoint.sh").write_text(
        '#!/bin/sh\ncat ca.crt token start_scheduler.py && echo "$JHUB_TOKEN $NAME"\n'
    )
    (place / "scheduler.sub").write_text(f"""\
Universe = vanilla
environment = JHUB_TOKEN=secret;NAME=me;
transfer_input_files = {secrets}/ca.crt, {secrets}/token, start_scheduler.py
executable = entrypoint.sh
Error = scheduler.err
Output = scheduler.out
Log = scheduler.log
stream_error = True
stream_output = True
request_memory = 64
queue
""")
    line = f"cd {place}; condor_submit -spool scheduler.sub 2>&1"
    done = await execute(
        ["/bin/sh", "-c", line], condor.work, condor.environ | {"_condor_TOOL_DEBUG": "D_FULLDEBUG"}
    )
    shutil.rmtree(place)
    cluster = int(done.out.split("cluster ")[1].strip().rstrip("."))
    await ended(condor, cluster)
    place.mkdir()
    assert 0 == (await condor("condor_transfer_data", "-all")).status
    assert "certificate\ntoken\nprint('scheduler')\nsecret me\n" == (place / "scheduler.out").read_text()
    assert "" == (place / "scheduler.err").read_text()
    assert "\n005 (" in (place / "scheduler.log").read_text()


async def test_from_python_with_either_version(condor: Condor, pool: ThrowawayPool) -> None:
    """
    The way of CRAB, with the result of the submission, and of lpcjobqueue, with the ads that Submit makes.
    """
    (condor.work / "input").write_text("given\n")
    (condor.work / "program.py").write_text("""
import htcondor2, htcondor, os, time

text = "executable = /bin/cat\\ntransfer_executable = false\\narguments = input\\ntransfer_input_files = input\\n"
for h in (htcondor2, htcondor):
    schedd = h.Schedd()
    sub = h.Submit(text + f"output = out.{h.__name__}.$(Process)\\nqueue 2\\n")
    result = schedd.submit(sub, spool=True)
    cluster = result.cluster()
    mine = f"ClusterId == {cluster}"
    held = [(ad["JobStatus"], ad["HoldReasonCode"]) for ad in schedd.query(mine, ["JobStatus", "HoldReasonCode"])]
    assert [(5, 16)] * 2 == held, held
    schedd.spool(result if h is htcondor2 else list(sub.jobs(clusterid=cluster, count=2)))
    while [4, 4] != [ad["JobStatus"] for ad in schedd.query(mine, ["JobStatus"])]:
        time.sleep(0.05)
    schedd.retrieve(mine if h is htcondor2 else [f"{cluster}.0", f"{cluster}.1"])
    assert [] == list(schedd.query(mine))
    assert ["given\\n"] * 2 == [open(f"out.{h.__name__}.{proc}").read() for proc in range(2)]
    try:
        schedd.retrieve(mine)
    except ValueError as error:
        assert "nothing to be fetched" in str(error)
    else:
        raise AssertionError("there is nothing any more")
print("good")
""")
    variables = {"PYTHONPATH": str(MODULES), "KETTLE_HOME": str(pool.home)}
    ran = await execute([sys.executable, "program.py"], condor.work, condor.environ | variables)
    assert (0, "good\n", "") == ran


async def test_a_job_that_runs_where_the_queue_is(condor: Condor) -> None:
    """Of the local universe: its files are not there either."""
    (condor.work / "input").write_text("given\n")
    (condor.work / "job.sub").write_text(
        "universe = local\nexecutable = /bin/cat\ntransfer_executable = false\narguments = input\n"
        "transfer_input_files = input\noutput = out\nqueue\n"
    )
    said_ = await condor("condor_submit", "-remote", "schedd", "-terse", "job.sub")
    assert (0, "") == (said_.status, said_.err)
    cluster = int(said_.out.partition(".")[0])
    (condor.work / "input").unlink()
    await ended(condor, cluster)
    assert 0 == (await condor("condor_transfer_data", f"{cluster}.0")).status
    assert "given\n" == (condor.work / "out").read_text()


async def test_the_record_is_sound(pool: ThrowawayPool) -> None:
    """After all of this the audit finds nothing, and the spool is empty."""
    audit = await pool.log_check()
    assert audit.clean, audit.said
    async with asyncio.timeout(PATIENCE_S):
        while list(spool_of(pool).iterdir()):
            await asyncio.sleep(0.05)
