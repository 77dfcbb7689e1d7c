"""Files by list and by URL, in a real pool, with a web server and a plugin of the machine's owner."""

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
from kettle.pool.personal_settings import Tables
from kettle.testing.patience import PATIENCE_S
from kettle.testing.shared_pool import SharedPool
from kettle.testing.throwaway_pool import ThrowawayPool, merged
from kettle.testing.transfer_plugin import install
from kettle_wire.ads import Ad


@pytest.fixture(scope="module")
def place() -> Iterator[Path]:
    """A directory for every account: a job may run as one that cannot enter the test's own."""
    directory = Path(tempfile.mkdtemp(prefix="kettle-transfer-"))
    directory.chmod(0o777)
    try:
        yield directory
    finally:
        shutil.rmtree(directory)


@pytest.fixture(scope="module")
def configuration(place: Path) -> dict[str, Any]:
    # A job that is asked to end has all the time that a busy machine may need for it, and so has a plugin.
    startd: Tables = {"startd": {"transfer_plugins": [str(install(place))], "machine_max_vacate_time": 600.0}}
    return {"settings": startd}


@asynccontextmanager
async def server() -> AsyncGenerator[tuple[str, dict[str, bytes], list[str]]]:
    """
    The address of a web server, its files, and what it was asked.  Its first answer for `/cut` ends early.
    """
    files: dict[str, bytes] = {}
    asked: list[str] = []

    async def get(request: web.Request) -> web.StreamResponse:
        asked.append(f"{request.path} {request.headers.get('Range', '')}".strip())
        data = files[request.path]
        start = request.http_range.start or 0
        headers = {"ETag": '"1"', "Content-Length": str(len(data) - start)}
        if start:
            headers["Content-Range"] = f"bytes {start}-{len(data) - 1}/{len(data)}"
        response = web.StreamResponse(status=206 if start else 200, headers=headers)
        await response.prepare(request)
        if request.path == "/cut" and not start:
            await response.write(data[: len(data) // 2])
            assert request.transport is not None
            request.transport.close()
            return response
        await response.write(data[start:])
        return response

    async def put(request: web.Request) -> web.Response:
        files[request.path] = await request.read()
        return web.Response(status=201)

    app = web.Application(client_max_size=1 << 26)
    app.add_routes([web.get("/{name:.*}", get), web.put("/{name:.*}", put)])
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}", files, asked
    finally:
        await runner.cleanup()


async def status(pool: ThrowawayPool, cluster: int, wanted: int) -> Ad:
    """Wait until the job of a cluster has a status; its ad."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            (ad,) = await pool.client.jobs(select(cluster)) or [{"JobStatus": 4}]
            if ad["JobStatus"] == wanted:
                return ad
            assert ad["JobStatus"] != 5 or wanted == 5, ad.get("HoldReason")
            await asyncio.sleep(0.05)


def script(directory: Path, text: str) -> str:
    path = directory / "run.sh"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return "executable = run.sh\noutput = out\nerror = err\n"


async def test_lists_remaps_and_relative_paths(pool: ThrowawayPool, tmp_path: Path) -> None:
    """
    Directories with and without their contents' name go in; what is listed comes back where it was asked to.
    """
    for name in ("d/one", "e/two", "f/g/three"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text(name)
    head = script(
        tmp_path,
        "find . -type f | sort | grep -v '/[._]'; mkdir -p r/s; echo 1 > r/s/x; echo 2 > y; echo 3 > z",
    )
    submitted = await pool.client.submit(
        f"{head}transfer_input_files = d, e/, f/g/three\npreserve_relative_paths = true\n"
        'transfer_output_files = r, y\ntransfer_output_remaps = "r/s = results ; y=deep/er/y\\;2"\nqueue\n',
        cwd=tmp_path,
    )
    await status(pool, submitted.cluster, 4)

    assert ["./d/one", "./f/g/three", "./run.sh", "./two"] == (tmp_path / "out").read_text().split()
    assert "1\n" == (tmp_path / "results/x").read_text()
    assert "2\n" == (tmp_path / "deep/er/y;2").read_text()
    assert not (tmp_path / "z").exists()


async def test_empty_directories_go_along_and_come_back(pool: ThrowawayPool, tmp_path: Path) -> None:
    """
    The listed ones and those below them, by their names: HTMap needs them for a rerun, and programs write into them.
    """
    work = tmp_path / "empty"
    (work / "in" / "x" / "y").mkdir(parents=True)
    submitted = await pool.client.submit(
        "executable = /bin/sh\ntransfer_executable = false\nrequest_disk = 1M\n"
        "arguments = \"-c 'find in > in/x/y/found; mkdir -p a/b c/d c/e; touch c/e/f; cp in/x/y/found c/e/f'\"\n"
        "transfer_input_files = in\n"
        "transfer_output_files = a/b, c\nqueue\n",
        cwd=work,
    )
    await status(pool, submitted.cluster, 4)
    assert ["b", "c", "c/d", "c/e", "c/e/f", "in", "in/x", "in/x/y"] == sorted(
        str(path.relative_to(work)) for path in work.rglob("*")
    )
    assert ["in", "in/x", "in/x/y", "in/x/y/found"] == sorted((work / "c/e/f").read_text().split())


async def test_a_job_has_the_proxy_of_its_submitter(pool: ThrowawayPool, tmp_path: Path) -> None:
    """
    Its own copy, closed to others, under the name of the file; what it makes of that does not come back, not even if it
    is listed.  Whatever the submitter's environment says of another place does not count.
    """
    proxy = tmp_path / "x509up"
    proxy.write_text("certificate\n")
    proxy.chmod(0o644)
    head = script(
        tmp_path,
        'stat -c "%a %u" "$X509_USER_PROXY"; id -u; cat "$X509_USER_PROXY"\n'
        '[ "$X509_USER_PROXY" = "$PWD/x509up" ] && echo changed >> "$X509_USER_PROXY" && echo done > made',
    )
    head += 'x509userproxy = x509up\nenvironment = "X509_USER_PROXY=/elsewhere"\n'
    for listed in ("", "transfer_output_files = made, x509up\n"):
        submitted = await pool.client.submit(f"{head}{listed}queue\n", cwd=tmp_path)
        await status(pool, submitted.cluster, 4)
        mode, owner, account, text = (tmp_path / "out").read_text().split()
        assert ("600", account, "certificate") == (mode, owner, text)
        assert "done\n" == (tmp_path / "made").read_text()
        assert "certificate\n" == proxy.read_text()
        (tmp_path / "made").unlink()


async def test_where_files_are_shared_the_proxy_is_where_it_was(pool: ThrowawayPool, place: Path) -> None:
    """Nothing is moved, and the variable names the submitter's file."""
    (place / "x509up").write_text("certificate\n")
    text = "executable = /bin/sh\narguments = \"-c 'echo $X509_USER_PROXY > said'\"\nx509userproxy = x509up\n"
    submitted = await pool.client.submit(f"{text}should_transfer_files = NO\nqueue\n", cwd=place)
    await status(pool, submitted.cluster, 4)
    assert f"{place}/x509up\n" == (place / "said").read_text()


async def test_standard_input_that_is_not_sent_is_the_machines(pool: ThrowawayPool, tmp_path: Path) -> None:
    """As `transfer_input = False` says; it need not be there where the job is submitted."""
    text = (
        "executable = /bin/cat\ntransfer_executable = false\ninput = /proc/sys/kernel/ostype\noutput = out\n"
    )
    submitted = await pool.client.submit(f"{text}transfer_input = False\nqueue\n", cwd=tmp_path)
    await status(pool, submitted.cluster, 4)
    assert Path("/proc/sys/kernel/ostype").read_text() == (tmp_path / "out").read_text()


async def test_what_is_excluded_stays_where_it_is(pool: ThrowawayPool, tmp_path: Path) -> None:
    """Of directories both ways, and of new files; what is listed itself moves whatever the pattern says."""
    for name in ("d/keep", "d/x.tmp", "d/build/y", "own.tmp"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    head = script(tmp_path, "find . -type f | sort | grep -v '/[._]'; echo 1 > new; echo 2 > new.tmp")
    rules = "transfer_exclude_files = *.tmp, build/\n"
    first = await pool.client.submit(f"{head}{rules}transfer_input_files = d, own.tmp\nqueue\n", cwd=tmp_path)
    await status(pool, first.cluster, 4)
    assert ["./d/keep", "./own.tmp", "./run.sh"] == (tmp_path / "out").read_text().split()
    assert (True, False) == ((tmp_path / "new").exists(), (tmp_path / "new.tmp").exists())

    head = script(tmp_path, "mkdir -p r/build; touch r/a r/b.tmp r/build/c named.tmp")
    second = await pool.client.submit(
        f"{head}{rules}transfer_output_files = r, named.tmp\nqueue\n", cwd=tmp_path
    )
    await status(pool, second.cluster, 4)
    assert ["r/a"] == [
        str(path.relative_to(tmp_path)) for path in (tmp_path / "r").rglob("*") if path.is_file()
    ]
    assert (tmp_path / "named.tmp").exists()


async def test_a_missing_result_holds_the_job_and_the_others_come(
    pool: ThrowawayPool, tmp_path: Path
) -> None:
    """Code 12 with subcode 2, and the standard output is there to look at."""
    head = script(tmp_path, "echo said; echo 1 > made")
    submitted = await pool.client.submit(f"{head}transfer_output_files = made, absent\nqueue\n", cwd=tmp_path)
    ad = await status(pool, submitted.cluster, 5)

    assert (12, 2) == (ad["HoldReasonCode"], ad["HoldReasonSubCode"])
    assert "absent" in str(ad["HoldReason"])
    assert ("said\n", "1\n") == ((tmp_path / "out").read_text(), (tmp_path / "made").read_text())
    await pool.client.remove(select(submitted.cluster))


async def test_urls_in_and_out(pool: ThrowawayPool, tmp_path: Path, place: Path) -> None:
    """By the machine itself: with a break in the middle, by the owner's plugin, and back to the web."""
    (place / "site").write_text("from the site\n")
    async with server() as (url, files, asked):
        files["/cut"] = b"0123456789" * 100_000
        head = script(tmp_path, "wc -c < cut; cat site; cut -c 1-5 cut > five; echo local > local")
        submitted = await pool.client.submit(
            f"{head}transfer_input_files = {url}/cut, good://{place}/site\n"
            f'transfer_output_remaps = "five = {url}/up/five"\nqueue\n',
            cwd=tmp_path,
        )
        await status(pool, submitted.cluster, 4)

    assert "1000000\nfrom the site\n" == (tmp_path / "out").read_text()
    assert b"01234\n" == files["/up/five"]
    assert ("local\n", False) == ((tmp_path / "local").read_text(), (tmp_path / "five").exists())
    first, second = asked
    assert "/cut" == first
    assert second.startswith("/cut bytes=")


@pytest.mark.parametrize(("behaviour", "words"), [("fail", "on strike"), ("lie", "no such file")])
async def test_a_bad_plugin_holds_the_job(
    pool: ThrowawayPool, tmp_path: Path, place: Path, behaviour: str, words: str
) -> None:
    """Code 13, the sentence says what was fetched and why it failed, and nothing stays behind."""
    await held_by_plugin(pool, tmp_path, place, behaviour, words)


async def test_a_plugin_that_does_not_come_back_holds_the_job(
    shared_pool: SharedPool, configuration: dict[str, Any], tmp_path: Path, place: Path
) -> None:
    """When its time is over it is ended, and the job is held as for another failure."""
    settings = merged(configuration["settings"], {"startd": {"transfer_plugin_lifetime": 2.0}})
    async with shared_pool.lent(settings=settings) as pool:
        await held_by_plugin(pool, tmp_path, place, "hang", "after 2 seconds")


async def held_by_plugin(
    pool: ThrowawayPool, tmp_path: Path, place: Path, behaviour: str, words: str
) -> None:
    """Run a job with a plugin that behaves so."""
    (place / "f").touch()
    head = script(tmp_path, "true")
    submitted = await pool.client.submit(
        f"{head}transfer_input_files = good://{place}/f?{behaviour}\nqueue\n", cwd=tmp_path
    )
    ad = await status(pool, submitted.cluster, 5)

    assert 13 == ad["HoldReasonCode"]
    assert words in str(ad["HoldReason"])
    assert f"fetching good://{place}/f:" in str(ad["HoldReason"])
    assert not pool.sandboxes
    await pool.client.remove(select(submitted.cluster))


async def test_limits(pool: ThrowawayPool, tmp_path: Path) -> None:
    """Of what goes in, code 32; of what comes back, code 33."""
    with (tmp_path / "big").open("wb") as file:
        file.truncate(3 << 20)
    head = script(tmp_path, "head -c 3000000 /dev/zero > large")
    for line, code in (
        ("transfer_input_files = big\nmax_transfer_input_mb = 2", 32),
        ("max_transfer_output_mb = 2", 33),
    ):
        submitted = await pool.client.submit(f"{head}{line}\nqueue\n", cwd=tmp_path)
        ad = await status(pool, submitted.cluster, 5)
        assert code == ad["HoldReasonCode"], ad["HoldReason"]
        assert "2 MiB" in str(ad["HoldReason"])
        await pool.client.remove(select(submitted.cluster))


async def test_a_url_that_no_machine_moves_waits(pool: ThrowawayPool, tmp_path: Path) -> None:
    """The job is accepted, and `kettle why` names the clause."""
    head = script(tmp_path, "true")
    submitted = await pool.client.submit(f"{head}transfer_input_files = gopher://x/f\nqueue\n", cwd=tmp_path)
    async with asyncio.timeout(PATIENCE_S):
        while True:
            _, said, _ = await pool.kettle("why", f"{submitted.cluster}.0")
            if "gopher" in said:
                break
            await asyncio.sleep(0.2)

    assert 1 == (await pool.client.jobs(select(submitted.cluster)))[0]["JobStatus"]
    await pool.client.remove(select(submitted.cluster))


async def test_an_evicted_job_goes_on_where_it_was(pool: ThrowawayPool, tmp_path: Path) -> None:
    """
    With ON_EXIT_OR_EVICT, what it had written when it was held is there when it is released; in the end it is a result.
    """
    head = script(
        tmp_path,
        "if [ -e state ]; then echo again with $(cat state); exit 0; fi\n"
        "trap 'echo step-1 > state; exit 1' TERM\necho ready > ready\nwhile :; do sleep 0.1; done",
    )
    submitted = await pool.client.submit(
        f"{head}should_transfer_files = YES\nwhen_to_transfer_output = ON_EXIT_OR_EVICT\nqueue\n",
        cwd=tmp_path,
    )
    cluster = select(submitted.cluster)
    await status(pool, submitted.cluster, 2)
    async with asyncio.timeout(PATIENCE_S):
        while not any((box / "ready").exists() for box in pool.sandboxes):
            await asyncio.sleep(0.05)
    await pool.client.hold(cluster, "a pause")
    await status(pool, submitted.cluster, 5)
    async with asyncio.timeout(PATIENCE_S):
        while pool.sandboxes:
            await asyncio.sleep(0.05)
    await pool.client.release(cluster)
    await status(pool, submitted.cluster, 4)

    assert "again with step-1\n" == (tmp_path / "out").read_text()
    assert ("step-1\n", "ready\n") == ((tmp_path / "state").read_text(), (tmp_path / "ready").read_text())
    async with asyncio.timeout(PATIENCE_S):  # what was saved goes when the end is recorded
        while list((pool.home / "state" / "spool").iterdir()):
            await asyncio.sleep(0.05)
