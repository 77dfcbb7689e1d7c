"""The files of jobs over HTTP: of those that run, of those that have ended, and what nobody gets that way."""

import asyncio
import base64
import hashlib
import io
import os
import tarfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

import aiohttp
import pytest
import pytest_asyncio
from yarl import URL

from kettle.client import select
from kettle.testing.patience import PATIENCE_S
from kettle.testing.throwaway_pool import ThrowawayPool
from kettle_wire.jobs import JobId

from .asking import patiently
from .evidence import Evidence
from .test_rest import Rest, address

pytestmark = [pytest.mark.scenario, pytest.mark.embedded]

LARGE: Final = bytes(range(256)) * (5 << 12)
"""5 MiB: more than one message has."""
PROGRAM: Final = """#!/bin/sh
cat large >result
mkdir deep && echo below >deep/below
printf '<script>alert(1)</script>\\n'
echo trouble >&2
"""
LEAVES: Final = """
executable = program
transfer_input_files = large
transfer_output_files = result, deep
output = out
error = err
queue
"""


@pytest.fixture(scope="module")
def configuration() -> dict[str, Any]:
    return {"settings": {"gateway": {"rest": True, "request_burst": 1e6, "requests_per_second": 1e6}}}


@pytest_asyncio.fixture
async def rest(pool: ThrowawayPool) -> AsyncIterator[Rest]:
    token = (pool.home / "gateway" / "token").read_text().strip()
    headers = {"Authorization": f"Bearer {token}"}
    async with aiohttp.ClientSession(address(pool), headers=headers, middlewares=(patiently,)) as session:
        yield Rest(session)


class Got:
    """An answer with a file."""

    def __init__(self, response: aiohttp.ClientResponse, data: bytes) -> None:
        self.status = response.status
        self.headers = response.headers
        self.data = data


async def got(rest: Rest, path: str, *, headers: dict[str, str] | None = None, **query: Any) -> Got:
    async with rest.session.get(URL(path, encoded=True).with_query(query), headers=headers) as response:
        return Got(response, await response.read())


def prepared(work: Path) -> str:
    (work / "program").write_text(PROGRAM)
    (work / "program").chmod(0o755)
    (work / "large").write_bytes(LARGE)
    return LEAVES


async def shown(rest: Rest, pool: ThrowawayPool, job: JobId, frame: int) -> str:
    """The path of a job, once the tables have it."""
    await rest.get(f"/v2/jobs/{job}", at_least=f"schedd.{pool.client.pool.schedd}:{frame}")
    return f"/v2/jobs/{job}"


async def test_what_a_job_has_left_is_listed_and_read_in_parts(
    rest: Rest, pool: ThrowawayPool, tmp_path: Path
) -> None:
    """
    The streams and named results of a job that has ended are listed, read whole, in parts, with a digest, and as one archive.
    """
    made = await pool.client.submit(prepared(tmp_path), cwd=tmp_path)
    job = await shown(rest, pool, JobId(made.cluster, 0), made.position.frame)
    await pool.client.wait(select(made.cluster))
    listed = await rest.get(f"{job}/files")
    sizes = {file["path"]: file["size"] for file in listed["files"]}
    assert {
        "_condor_stderr": 8,
        "_condor_stdout": 26,
        "deep/below": 6,
        "result": len(LARGE),
    } == sizes
    assert not listed["running"]
    whole = await got(rest, f"{job}/files/result", headers={"Want-Repr-Digest": "sha-256=1"})
    assert LARGE == whole.data
    digest = base64.b64encode(hashlib.sha256(LARGE).digest()).decode()
    assert f"sha-256=:{digest}:" == whole.headers["Repr-Digest"]
    assert "attachment" in whole.headers["Content-Disposition"]
    assert "nosniff" == whole.headers["X-Content-Type-Options"]
    assert "application/octet-stream" == whole.headers["Content-Type"]
    for asked, first, end in (
        ("bytes=10-19", 10, 20),
        ("bytes=-7", len(LARGE) - 7, len(LARGE)),
        (f"bytes={len(LARGE) - 3}-", len(LARGE) - 3, len(LARGE)),
        ("bytes=3000000-4999999", 3_000_000, 5_000_000),
    ):
        part = await got(rest, f"{job}/files/result", headers={"Range": asked})
        assert (206, LARGE[first:end]) == (part.status, part.data), asked
        assert f"bytes {first}-{end - 1}/{len(LARGE)}" == part.headers["Content-Range"]
    beyond = await got(rest, f"{job}/files/result", headers={"Range": f"bytes={len(LARGE)}-"})
    assert (416, f"bytes */{len(LARGE)}") == (beyond.status, beyond.headers["Content-Range"])
    other = {"Range": "bytes=0-0", "If-Range": '"another"'}
    assert 200 == (await got(rest, f"{job}/files/result", headers=other)).status
    same = {"Range": "bytes=0-0", "If-Range": whole.headers["ETag"]}
    assert 206 == (await got(rest, f"{job}/files/result", headers=same)).status
    stdout = await got(rest, f"{job}/stdout", offset=-10)
    assert (b"</script>\n", "text/plain; charset=utf-8") == (stdout.data, stdout.headers["Content-Type"])
    tail = await rest.get(f"{job}/tail", bytes=10)
    assert ("</script>\n", 16, 26, 26) == (tail["text"], tail["offset"], tail["end"], tail["size"])
    assert b"trouble\n" == (await got(rest, f"{job}/stderr", follow=1)).data
    data = io.BytesIO((await got(rest, f"{job}/archive")).data)
    with tarfile.open(fileobj=data) as archive:
        members = {each.name: archive.extractfile(each) for each in archive}
        assert sizes == {name: len(file.read()) for name, file in members.items() if file is not None}


async def test_no_name_leads_to_another_file(rest: Rest, pool: ThrowawayPool, tmp_path: Path) -> None:
    """
    What a job does not name, what lies elsewhere, the pool's own files, devices and what the kernel makes up are refused, whatever
    the name, and whatever takes the place of a result.
    """
    (tmp_path / "secret").write_text("canary")
    made = await pool.client.submit(prepared(tmp_path), cwd=tmp_path)
    job = await shown(rest, pool, JobId(made.cluster, 0), made.position.frame)
    await pool.client.wait(select(made.cluster))
    for name in (
        "secret",
        "%2e%2e/secret",
        "..%2fsecret",
        "deep/..%2fsecret",
        "deep%2f..%2f..%2f..%2fetc%2fpasswd",
        "%2fetc%2fpasswd",
        "/etc/passwd",
        "result%00",
        "result/",
        "deep",
        "deep//below",
        "%ff",
        ".",
        "x" * 5000,
    ):
        answer = await got(rest, f"{job}/files/{name}")
        assert answer.status in {400, 404, 422}, (name, answer.status, answer.data[:200])
        assert b"canary" not in answer.data
    result = tmp_path / "result"
    for target in (pool.home / "gateway" / "token", Path("/proc/self/environ"), Path("/dev/zero")):
        result.unlink()
        result.symlink_to(target)
        answer = await got(rest, f"{job}/files/result")
        assert answer.status in {403, 404, 422}, (target, answer.status)
        assert "result" not in {file["path"] for file in (await rest.get(f"{job}/files"))["files"]}
    result.unlink()
    os.mkfifo(result)
    assert 422 == (await got(rest, f"{job}/files/result")).status
    result.unlink()
    assert 404 == (await got(rest, f"{job}/files/result")).status


async def test_output_is_followed_while_a_job_runs(
    rest: Rest, pool: ThrowawayPool, tmp_path: Path, evidence: Evidence
) -> None:
    """
    Who follows has what was written so far, then what is added, and the answer ends with the run; a job that waits is not followed.
    """
    go = evidence.directory / "go"
    script = f"echo begin; until test -e {go}; do sleep 0.1; done; echo end"
    text = f"executable = /bin/sh\narguments = \"-c '{script}'\"\noutput = out\nqueue\n"
    made = await pool.client.submit(text, cwd=tmp_path)
    job = await shown(rest, pool, JobId(made.cluster, 0), made.position.frame)
    async with asyncio.timeout(PATIENCE_S):
        while (await rest.get(f"{job}/files"))["running"] is False:
            await asyncio.sleep(0.1)
        while b"begin\n" != (await got(rest, f"{job}/stdout")).data:
            await asyncio.sleep(0.1)
        async with rest.session.get(f"{job}/stdout", params={"follow": "1", "offset": "2"}) as response:
            assert b"gin\n" == await response.content.readline()
            go.touch()
            assert b"end\n" == await response.content.read()
    held = await pool.client.submit("executable = /bin/true\nhold = true\nqueue\n", cwd=tmp_path)
    job = await shown(rest, pool, JobId(held.cluster, 0), held.position.frame)
    assert 404 == (await got(rest, f"{job}/stdout")).status
    refused = await rest.get(f"{job}/stdout", 423, follow=1)
    assert "held" == refused["code"]


async def test_files_that_were_sent_are_kept_as_long_as_the_job_is_in_the_queue(
    rest: Rest, pool: ThrowawayPool, tmp_path: Path
) -> None:
    """
    What a job has left whose files were sent to the access point is read there; when it has left the queue, they are gone.
    """
    made = await pool.client.submit(prepared(tmp_path), cwd=tmp_path, spool=True)
    await pool.client.spools.send(await pool.client.jobs(select(made.cluster)))
    job = await shown(rest, pool, JobId(made.cluster, 0), made.position.frame)
    async with asyncio.timeout(PATIENCE_S):
        while "completed" != (await rest.get(job))["state"]:
            await asyncio.sleep(0.1)
    sizes = {file["path"]: file["size"] for file in (await rest.get(f"{job}/files"))["files"]}
    assert {"_condor_stderr", "_condor_stdout", "deep/below", "result"} == sizes.keys()
    assert LARGE == (await got(rest, f"{job}/files/result")).data
    gone = await pool.client.remove(select(made.cluster))
    await shown(rest, pool, JobId(made.cluster, 0), gone.position.frame)
    async with asyncio.timeout(PATIENCE_S):  # what the access point was told is believed for a moment
        while 410 != (answer := await got(rest, f"{job}/files")).status:
            assert answer.status in {200, 404}
            await asyncio.sleep(0.2)
    assert b'"gone"' in answer.data
