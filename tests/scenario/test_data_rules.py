"""
Files through the caches of a site, with a real XRootD server and a real XCache, and what is recorded of each.
"""

import asyncio
import json
import os
import shutil
import tempfile
from collections.abc import AsyncGenerator, Iterator
from contextlib import ExitStack, asynccontextmanager
from html import unescape
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import pytest

from kettle.client import select
from kettle.client.explanations.moved_files import files_of
from kettle.testing.patience import PATIENCE_S
from kettle.testing.servers.files import FileServer, forwarding_cache, no_xrootd, s3, xrootd
from kettle.testing.servers.held_port import held_port
from kettle.testing.throwaway_pool import ThrowawayPool
from kettle_wire.events import JobCompleted, JobHeld, JobVacated
from kettle_wire.jobs import JobId
from kettle_wire.moved_files import MovedFiles
from kettle_wire.rest.past import Transfers

from .asking import patiently

pytestmark = pytest.mark.skipif(bool(no_xrootd()), reason=no_xrootd())


@pytest.fixture(scope="module")
def servers() -> Iterator[dict[str, FileServer]]:
    """The origin, the cache before it, and one of objects."""
    with ExitStack() as stack:
        place = Path(tempfile.mkdtemp(prefix="kettle-rules-"))
        stack.callback(shutil.rmtree, place)
        origin, cache = stack.enter_context(xrootd())
        forwarding = stack.enter_context(forwarding_cache())
        yield {
            "origin": origin,
            "cache": cache,
            "forwarding": forwarding,
            "s3": stack.enter_context(s3(place)),
        }


@pytest.fixture(scope="module")
def dead() -> int:
    """A port at which nobody answers."""
    return held_port()


@pytest.fixture(scope="module")
def configuration(servers: dict[str, FileServer], dead: int) -> dict[str, Any]:
    rules = [
        f"root://localhost:*: cache=root://127.0.0.1:{dead}",
        f"root://127.0.0.1:*/only/*: cache=root://127.0.0.1:{dead}, fallback=none",
        f"root://127.0.0.1:*: cache=root://127.0.0.1:{servers['cache'].port}, fallback=origin",
        "root://own.site.org/*: cache=none",
        f"root://*: cache=root://127.0.0.1:{servers['forwarding'].port}, form=url, programs=yes",
    ]
    return {"settings": {"startd": {"data": rules}, "gateway": {"rest": True}}}


@asynccontextmanager
async def asking_rest(pool: ThrowawayPool) -> AsyncGenerator[aiohttp.ClientSession]:
    """The REST interface, with the private token of the pool."""
    token = (pool.home / "gateway" / "token").read_text().strip()
    address = f"http://127.0.0.1:{(pool.home / 'gateway' / 'port').read_text()}"
    headers = {"Authorization": f"Bearer {token}"}
    async with aiohttp.ClientSession(address, headers=headers, middlewares=(patiently,)) as session:
        yield session


async def moved(pool: ThrowawayPool, directory: Path, description: str) -> tuple[JobId, MovedFiles, str]:
    """Run a job with these commands; what is recorded of its files, and why it was held."""
    text = f"executable = /bin/true\ntransfer_executable = false\n{description}\nqueue\n"
    job = JobId((await pool.client.submit(text, cwd=directory)).cluster, 0)
    record: MovedFiles | None = None
    async with asyncio.timeout(PATIENCE_S):
        async for each in pool.client.follow(job):
            match each.event:
                case JobCompleted(usage=usage):
                    assert usage.moved is not None
                    return job, usage.moved, ""
                case JobVacated(usage=usage):
                    record = usage.moved
                case JobHeld(reason=reason):
                    assert record is not None
                    return job, record, reason
                case _:
                    pass
    raise AssertionError


async def test_the_cache_of_the_site_serves_what_is_at_the_origin(
    pool: ThrowawayPool, servers: dict[str, FileServer], tmp_path: Path
) -> None:
    """
    The first job has the cache fetch it, for the second one it is there already; the job names the origin alone.
    """
    data = os.urandom(1 << 20)
    servers["origin"].write("in.dat", data)
    text = f"transfer_input_files = {servers['origin'].url('in.dat')}"
    seen = [(await moved(pool, tmp_path, text))[1] for _ in range(2)]

    assert [False, True] == [record.files[0].hit for record in seen]
    (file,) = seen[1].files
    assert ("cache", f"127.0.0.1:{servers['cache'].port}", len(data)) == (
        file.source,
        file.server,
        file.bytes,
    )
    assert (servers["origin"].url("in.dat"), "size", "same") == (file.url, file.checksum, file.verdict)
    total = seen[1].totals["cache"]
    assert (1, len(data), 1) == (total.files, total.bytes, total.hits)


async def test_a_cache_that_is_down_is_passed_by(
    pool: ThrowawayPool, servers: dict[str, FileServer], tmp_path: Path, dead: int
) -> None:
    """The origin serves, and it is said why; it is asked once for all files."""
    for name in ("a", "b"):
        servers["origin"].write(name, b"x" * 10)
    urls = [servers["origin"].url(name).replace("127.0.0.1", "localhost") for name in ("a", "b")]
    _, record, _ = await moved(pool, tmp_path, f"transfer_input_files = {', '.join(urls)}")

    assert {"origin"} == {file.source for file in record.files}
    assert [("cache", f"127.0.0.1:{dead}", "Contact")] * 2 == [
        (each.source, each.server, each.error) for file in record.files for each in file.tries
    ]
    assert {"adler32"} == {file.checksum for file in record.files}
    assert (2, 20) == (record.totals["origin"].files, record.totals["origin"].bytes)


async def test_without_another_source_the_job_is_held(
    pool: ThrowawayPool, servers: dict[str, FileServer], tmp_path: Path
) -> None:
    """Code 13, with the cache, and the record says the same in HTCondor's words."""
    url = servers["origin"].url("only/a")
    job, record, reason = await moved(pool, tmp_path, f"transfer_input_files = {url}")

    assert "besides which the site allows no source" in reason
    assert (1, "Contact", "") == (record.failed, record.files[0].error, record.files[0].source)
    await pool.client.remove(select(job.cluster))


async def test_a_cache_that_forwards_is_asked_for_the_whole_url(
    pool: ThrowawayPool, servers: dict[str, FileServer], tmp_path: Path
) -> None:
    """
    By Kettle for files that the job names, and by the programs of the job, which are told of it in their environment.
    """
    servers["origin"].write("named", b"y" * 100)
    servers["origin"].write("read", b"z" * 100)
    named = servers["origin"].url("named").replace("127.0.0.1", "127.0.0.2")
    script = tmp_path / "job.sh"
    script.write_text(
        f"#!/bin/sh\nset -e\nenv | grep -E '^(XRD_PLUGIN|XROOT)' | sort\ncat $XRD_PLUGINCONFDIR/*.conf\n"
        f"xrdcp -s {servers['origin'].url('read')} got\n"
    )
    script.chmod(0o755)
    description = f"executable = job.sh\noutput = out\nerror = err\ntransfer_input_files = {named}\nqueue\n"
    job = JobId((await pool.client.submit(description, cwd=tmp_path)).cluster, 0)
    async with asyncio.timeout(PATIENCE_S):
        await pool.client.wait(select(job.cluster))
    (attempt,) = files_of(each.event for each in await pool.client.events(job))
    out = (tmp_path / "out").read_text()

    assert [("cache", named, 100)] == [(each.source, each.url, each.bytes) for each in attempt.moved.files]
    # What came, and not what the cache has of it: that writes it down later, and reads ahead by itself.
    assert b"z" * 100 == (tmp_path / "got").read_bytes(), (tmp_path / "err").read_text()
    for name in ("named", "read"):
        assert servers["forwarding"].read(name) is not None
    assert f"XROOT_PROXY=root://127.0.0.1:{servers['forwarding'].port}//\n" in out
    assert "XROOT_PROXY_EXCL_DOMAINS=localhost,own.site.org\n" in out
    assert "lib = libXrdClProxyPlugin.so" in out
    assert ["err", "got", "job.sh", "out"] == sorted(
        path.name for path in tmp_path.iterdir() if path.is_file()
    )


async def test_objects_are_kept_on_the_machine(
    pool: ThrowawayPool, servers: dict[str, FileServer], tmp_path: Path
) -> None:
    """By their name, whatever signature is in the address; the server is asked whether they are the same."""
    server = servers["s3"]
    server.write("object", b"first")
    text = f"{server.commands()}transfer_input_files = {server.url('object')}"
    seen = [(await moved(pool, tmp_path, text))[1].files[0] for _ in range(2)]
    server.write("object", b"second one")
    seen.append((await moved(pool, tmp_path, text))[1].files[0])

    assert ["origin", "machine", "origin"] == [file.source for file in seen]
    assert {"s3://bucket/object"} == {file.url for file in seen}
    assert ["size", "sha256", "size"] == [file.checksum for file in seen]


async def test_the_record_is_told_everywhere(
    pool: ThrowawayPool, servers: dict[str, FileServer], tmp_path: Path, dead: int
) -> None:
    """`kettle why`, the ad in the history, and the REST interface say what the events do."""
    servers["origin"].write("told", b"x" * 10)
    url = servers["origin"].url("told").replace("127.0.0.1", "localhost")
    job, record, _ = await moved(pool, tmp_path, f"transfer_input_files = {url}")

    out = ""
    async with asyncio.timeout(PATIENCE_S):
        while "Its files by URL" not in out:
            _, out, _ = await pool.kettle("why", f"{job}")
    words = " ".join(out.split())
    assert "Its files by URL: 1 file (10 B) from where their URLs say." in words
    assert f"The cache at 127.0.0.1:{dead} did not serve 1 file, which came from the origin (10 B)" in words
    async with asyncio.timeout(PATIENCE_S):
        while "TransferInputStats" not in out:
            _, out, _ = await pool.kettle("history", f"{job}", "--long")
    assert "OriginSizeBytesLastRun = 10" in out
    (attempt,) = files_of(each.event for each in await pool.client.events(job))
    assert (1, record) == (attempt.attempt, attempt.moved)
    async with asking_rest(pool) as session:
        async with session.get(f"/v2/jobs/{job}/transfers") as answer:
            told = msgspec.convert(await answer.json(), Transfers)
        assert [record] == [each.moved for each in told.attempts]
        assert f"The cache at 127.0.0.1:{dead} did not serve 1 file" in told.attempts[0].said[1]
        async with session.get(f"/jobs/{job}") as answer:
            page = " ".join(unescape(await answer.text()).split())
        assert "Files by URL" in page
        assert f"<code>{url}</code>" in page
        assert f"cache 127.0.0.1:{dead}: Contact:" in page


async def test_files_are_looked_at_before_jobs_wait_for_them(
    pool: ThrowawayPool, servers: dict[str, FileServer], dead: int
) -> None:
    """
    From here without fetching, and by a job in a slot with the rules of its site; what cannot be had is the exit status.
    """
    servers["origin"].write("checked", b"x" * 2048)
    url = servers["origin"].url("checked")
    status, out, err = await pool.kettle("data", "check", url, "--json")
    assert (0, "") == (status, err), out
    (file,) = json.loads(out)["files"]
    assert (2048, f"127.0.0.1:{servers['origin'].port}") == (file["bytes"], file["server"])

    status, out, _ = await pool.kettle(
        "data", "check", f"root://127.0.0.1:{dead}//a", url.replace("checked", "no")
    )
    assert 1 == status
    words = " ".join(out.split())
    assert f"Contact at 127.0.0.1:{dead}" in words
    assert f"Specification at 127.0.0.1:{servers['origin'].port}" in words

    status, out, err = await pool.kettle("data", "check", "--as-job", url)
    assert 0 == status, out + err
    assert f"cache 127.0.0.1:{servers['cache'].port}" in out
    assert "size: same" in out
    status, out, _ = await pool.kettle("data", "check", "--as-job", url.replace("checked", "no"), "--json")
    told = json.loads(out)
    assert (1, "Specification") == (status, told["files"][0]["error"])
    assert "Transfer input files failure" in told["held"]
    assert [] == await pool.client.jobs(select(int(told["job"].partition(".")[0])))
