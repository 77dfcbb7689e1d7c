"""Checkpoints at a URL, in a real pool, with a web server and a directory that all accounts share."""

import asyncio
import shutil
import tempfile
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from kettle.client import select
from kettle.testing.patience import PATIENCE_S
from kettle.testing.throwaway_pool import ThrowawayPool
from kettle_wire.ads import Ad
from kettle_wire.events import JobCheckpointed, JobCompleted, JobHeld, JobVacated
from kettle_wire.jobs import JobId

from .evidence import Evidence
from .waiting import happened, the_machine

COUNTER = """\
#!/bin/sh
# counter DIRECTORY: count to 5, note each number in DIRECTORY, save after every second one, wait at 3 for a sign
mkdir -p state/deep
read -r done <state/deep/count || done=0
while [ "$done" -lt 5 ]; do
    while [ "$done" = 3 ] && [ ! -e "$1/go" ]; do sleep 0.05; done
    done=$((done + 1))
    echo "$done" >>"$1/steps"
    echo "step $done"
    echo "$done" >state/deep/count
    [ -e "state/large file" ] || head -c 3000000 /dev/urandom >"state/large file"
    [ $((done % 2)) = 0 ] && exit 85
done
sha256sum <"state/large file" >result
"""


@pytest.fixture(scope="module")
def configuration() -> dict[str, Any]:
    return {"settings": {"startd": {"checkpoint_pause": 0.01}}}


@pytest.fixture
def shared() -> Iterator[Path]:
    """A directory that is reached by everybody, as on a shared file system."""
    directory = Path(tempfile.mkdtemp(prefix="kettle-shared-"))
    directory.chmod(0o777)
    try:
        yield directory
    finally:
        shutil.rmtree(directory)


@asynccontextmanager
async def server() -> AsyncGenerator[tuple[str, dict[str, bytes], list[str]]]:
    """The address of a web server, its files, and what it was asked."""
    files: dict[str, bytes] = {}
    asked: list[str] = []

    async def handle(request: web.Request) -> web.Response:
        asked.append(f"{request.method} {request.path}")
        match request.method:
            case "PUT":
                files[request.path] = await request.read()
                return web.Response(status=201)
            case "DELETE":
                return web.Response(status=204 if files.pop(request.path, None) is not None else 404)
            case _ if request.path not in files:
                return web.Response(status=404)
            case _:
                tag = {"ETag": '"1"'}
                same = request.headers.get("If-None-Match") == '"1"'
                asked[-1] = asked[-1] if same else f"sent {asked[-1]}"
                return web.Response(
                    status=304 if same else 200, body=None if same else files[request.path], headers=tag
                )

    app = web.Application(client_max_size=1 << 26)
    app.add_routes([web.route("*", "/{name:.*}", handle)])
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}", files, asked
    finally:
        await runner.cleanup()


async def until_gone(there: dict[str, bytes] | Path) -> None:
    """Wait until nothing is left."""
    async with asyncio.timeout(PATIENCE_S):
        while there if isinstance(there, dict) else any(there.iterdir()):
            await asyncio.sleep(0.05)


async def counting(pool: ThrowawayPool, evidence: Evidence, destination: str) -> JobId:
    """A job that waits behind its first checkpoint, which is saved."""
    path = evidence.work / "counter.sh"
    path.write_text(COUNTER)
    path.chmod(0o755)
    submitted = await pool.client.submit(
        f"""\
executable = counter.sh
arguments = {evidence.directory}
output = out
error = err
checkpoint_exit_code = 85
transfer_checkpoint_files = state
checkpoint_destination = {destination}
transfer_output_files = result
request_memory = 16
request_disk = 10240
queue
""",
        cwd=evidence.work,
    )
    job = JobId(submitted.cluster, 0)
    await happened(pool.client, job, JobCheckpointed)
    async with asyncio.timeout(PATIENCE_S):
        while (evidence.directory / "steps").read_text() != "1\n2\n3\n":
            await asyncio.sleep(0.05)
    return job


async def drain(pool: ThrowawayPool) -> None:
    """Have all jobs leave the machine, which takes the next ones afterwards."""
    machine = await the_machine(pool)
    status, _, said = await pool.kettle("drain", "--quick", "--resume-on-completion", machine)
    assert 0 == status, said


async def test_a_job_goes_on_from_a_web_server(pool: ThrowawayPool, evidence: Evidence) -> None:
    """
    A drained job finds its checkpoint again, of which the access point had the manifest only; a checkpoint that has a
    successor is removed, and the last one when the job is done.
    """
    async with server() as (url, files, asked):
        job = await counting(pool, evidence, f"{url}/ckpt/")
        first = dict(files)
        spool = [
            path.name for path in (pool.home / "state" / "spool" / str(job)).rglob("*") if path.is_file()
        ]
        await drain(pool)
        await happened(pool.client, job, JobVacated)
        (evidence.directory / "go").touch()
        completed = await happened(pool.client, job, JobCompleted)
        await until_gone(files)
        puts = [line for line in asked if line.startswith("PUT")]

    (ad,) = await history(pool, job)
    prefix = f"/ckpt/{str(ad['GlobalJobId']).replace('#', '_')}"
    names = ["state/deep/count", "state/large file", "MANIFEST.0000"]
    assert {f"{prefix}/0000/{name}" for name in names} == first.keys()
    assert {"_condor_stdout", "_condor_stderr", "MANIFEST.0000", "URL"} == set(spool)
    assert (2, 0, 2) == (completed.attempt, completed.exit.code, ad["NumCkpts"])
    assert "1\n2\n3\n3\n4\n5\n" == (evidence.directory / "steps").read_text()
    assert "step 1\nstep 2\nstep 3\nstep 4\nstep 5\n" == (evidence.work / "out").read_text()
    assert [f"PUT {prefix}/{number}/MANIFEST.{number}" for number in ("0000", "0001")] == puts[2::3]
    assert 6 == len(puts)


async def history(pool: ThrowawayPool, job: JobId) -> list[Ad]:
    """The ad of a job that has left the queue, as soon as accounting knows it."""
    async with asyncio.timeout(PATIENCE_S):
        while not (found := await pool.client.history(select(job))):
            await asyncio.sleep(0.05)
    return found


async def test_what_is_not_what_was_saved_is_not_used(
    pool: ThrowawayPool, evidence: Evidence, shared: Path
) -> None:
    """The job is held with a sentence that names the file; nothing stays behind when it is removed."""
    job = await counting(pool, evidence, f"file://{shared}")
    (count,) = shared.glob("*/0000/state/deep/count")
    count.unlink()
    count.write_text("9\n")
    count.chmod(0o644)
    await drain(pool)
    held = await happened(pool.client, job, JobHeld)
    await pool.client.remove(select(job))
    await until_gone(shared)

    assert 13 == held.code
    assert "state/deep/count is not what was saved" in held.reason


async def test_a_checkpoint_that_cannot_be_sent_holds_the_job(
    pool: ThrowawayPool, evidence: Evidence, shared: Path
) -> None:
    """With code 36 and the reason: going on would lose what the owner wanted kept."""
    (shared / "file").write_text("in the way")
    path = evidence.work / "saves.sh"
    path.write_text("#!/bin/sh\necho 1 >state\nexit 85\n")
    path.chmod(0o755)
    submitted = await pool.client.submit(
        f"""\
executable = saves.sh
checkpoint_exit_code = 85
transfer_checkpoint_files = state
checkpoint_destination = file://{shared}/file
request_memory = 16
request_disk = 10240
queue
""",
        cwd=evidence.work,
    )
    job = JobId(submitted.cluster, 0)
    held = await happened(pool.client, job, JobHeld)
    await pool.client.remove(select(job))

    assert 36 == held.code
    assert "the job's checkpoint cannot be saved" in held.reason


async def test_what_many_jobs_fetch_by_url_moves_once(pool: ThrowawayPool, evidence: Evidence) -> None:
    """
    Each job asks the server whether it is still the same, also those that begin while the first is fetching it.
    """
    path = evidence.work / "look.sh"
    path.write_text("#!/bin/sh\n[ $(wc -c <shared.dat) = 1000000 ]\n")
    path.chmod(0o755)
    async with server() as (url, files, asked):
        files["/shared.dat"] = b"x" * 1_000_000
        submitted = await pool.client.submit(
            f"""\
executable = look.sh
transfer_input_files = {url}/shared.dat
request_memory = 16
request_disk = 10240
queue 10
""",
            cwd=evidence.work,
        )
        async with asyncio.timeout(PATIENCE_S):
            progress = await pool.client.wait(select(submitted.cluster), through_hold=False)

    assert not progress.bad(), progress
    assert ["sent GET /shared.dat", *["GET /shared.dat"] * 9] == asked
