"""
Files by URL in a real pool, from and to real servers: what comes, what goes, what is missing, what breaks.
"""

import asyncio
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from kettle.client import select
from kettle.testing.patience import PATIENCE_S
from kettle.testing.servers.files import FileServer, cutter, no_xrootd, s3, webdav, xrootd
from kettle.testing.throwaway_pool import ThrowawayPool
from kettle.userlog import Disconnected, Executing, FileTransfer, ImageSize, Reconnected, Terminated
from kettle_wire.ads import Ad

from .job_log import logged, written

LARGE = bytes(range(256)) * (16 << 10)
"""4 MiB."""

XROOTD = pytest.mark.skipif(bool(no_xrootd()), reason=no_xrootd())
SCHEMES = ["s3", "dav", pytest.param("root", marks=XROOTD), pytest.param("cache", marks=XROOTD)]
WRITABLE = SCHEMES[:3]


@pytest.fixture(scope="module")
def servers() -> Iterator[dict[str, FileServer]]:
    """By the parameter of the tests."""
    with ExitStack() as stack:
        place = Path(tempfile.mkdtemp(prefix="kettle-urls-"))
        stack.callback(shutil.rmtree, place)
        found: dict[str, FileServer] = {
            "s3": stack.enter_context(s3(place)),
            "dav": stack.enter_context(webdav(place)),
        }
        if not no_xrootd():
            found["root"], found["cache"] = stack.enter_context(xrootd())
        yield found


async def run(pool: ThrowawayPool, directory: Path, script: str, description: str, wanted: int) -> Ad:
    """Have a job run to its end, or until it is held; its ad."""
    path = directory / "run.sh"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    submitted = await pool.client.submit(
        f"executable = run.sh\noutput = out\nerror = err\nlog = log\n{description}queue\n", cwd=directory
    )
    async with asyncio.timeout(PATIENCE_S):
        while True:
            (ad,) = await pool.client.jobs(select(submitted.cluster)) or [{"JobStatus": 4}]
            assert ad["JobStatus"] != 5 or wanted == 5, ad.get("HoldReason")
            if ad["JobStatus"] == wanted:
                if wanted == 5:
                    await pool.client.remove(select(submitted.cluster))
                return ad
            await asyncio.sleep(0.05)


@pytest.mark.parametrize("scheme", WRITABLE)
async def test_in_and_out(
    pool: ThrowawayPool, servers: dict[str, FileServer], tmp_path: Path, scheme: str
) -> None:
    """
    One file in; one out by its own URL, and a directory with what is in it, whose place there did not exist.
    """
    server = servers[scheme]
    server.write("in.dat", b"what goes in\n")
    await run(
        pool,
        tmp_path,
        "cat in.dat; mkdir -p tree/inner; cp in.dat tree/a; cp in.dat tree/inner/b; echo one > one; echo home > home",
        f"{server.commands()}transfer_input_files = {server.url('in.dat')}\n"
        "transfer_output_files = one, tree, home\n"
        f'transfer_output_remaps = "one = {server.url("up/other")}; tree = {server.url("deep/er/tree")}"\n',
        4,
    )

    assert "what goes in\n" == (tmp_path / "out").read_text()
    assert b"one\n" == server.read("up/other")
    assert b"what goes in\n" == server.read("deep/er/tree/a") == server.read("deep/er/tree/inner/b")
    assert ("home\n", False) == ((tmp_path / "home").read_text(), (tmp_path / "tree").exists())


async def test_the_log_tells_of_transfers(
    pool: ThrowawayPool, servers: dict[str, FileServer], tmp_path: Path
) -> None:
    """Event 040 before the start and before the end: queued, started with the wait and the host, finished."""
    server = servers["dav"]
    server.write("in.dat", b"x")
    (tmp_path / "large").write_bytes(LARGE)
    await run(
        pool,
        tmp_path,
        "cp large result",
        f"transfer_input_files = large, {server.url('in.dat')}\n"
        f'transfer_output_files = in.dat, result\ntransfer_output_remaps = "in.dat = {server.url("logged")}"\n',
        4,
    )

    told = await logged(tmp_path / "log", Terminated)
    events = [event for event in told if not isinstance(event, ImageSize | Disconnected | Reconnected)]
    moved = [event for event in events if isinstance(event, FileTransfer)]
    assert [0, 40, 40, 40, 1, 40, 40, 40, 5] == [event.number for event in events]
    assert [1, 2, 3, 4, 5, 6] == [event.kind for event in moved]
    executing = next(event for event in events if isinstance(event, Executing))
    assert (executing.host, True) == (moved[1].host, moved[1].queued is not None)


@pytest.mark.parametrize("scheme", WRITABLE)
async def test_everything_to_one_place(
    pool: ThrowawayPool, servers: dict[str, FileServer], tmp_path: Path, scheme: str
) -> None:
    """`output_destination` gets all results but the standard streams."""
    server = servers[scheme]
    await run(
        pool,
        tmp_path,
        "echo 1 > first; echo 2 > second; echo said",
        f"{server.commands()}output_destination = {server.url('run7')}\n",
        4,
    )

    assert (b"1\n", b"2\n") == (server.read("run7/first"), server.read("run7/second"))
    assert "said\n" == (tmp_path / "out").read_text()


@pytest.mark.parametrize("scheme", SCHEMES)
async def test_a_missing_file_holds_the_job(
    pool: ThrowawayPool, servers: dict[str, FileServer], tmp_path: Path, scheme: str
) -> None:
    """Code 13, and the reason names the file."""
    server = servers[scheme]
    ad = await run(
        pool,
        tmp_path,
        "true",
        f"{server.commands()}transfer_input_files = {server.url('not-there.dat')}\n",
        5,
    )

    assert 13 == ad["HoldReasonCode"]
    assert "not-there.dat" in str(ad["HoldReason"])


@pytest.mark.parametrize("scheme", WRITABLE)
async def test_a_place_that_takes_nothing_holds_the_job(
    pool: ThrowawayPool, servers: dict[str, FileServer], tmp_path: Path, scheme: str
) -> None:
    """Code 12, the reason names the file, and the standard output comes home."""
    server = servers[scheme]
    server.write("plain", b"no directory")
    there = server.url("plain/result") if scheme != "s3" else "s3://no-such-bucket/result"
    ad = await run(
        pool,
        tmp_path,
        "echo said; echo 1 > result",
        f'{server.commands()}transfer_output_remaps = "result = {there}"\n',
        5,
    )

    assert 12 == ad["HoldReasonCode"]
    assert "result" in str(ad["HoldReason"])
    assert "said\n" == (tmp_path / "out").read_text()


@pytest.mark.parametrize("scheme", SCHEMES)
async def test_a_break_in_the_middle_of_what_comes(
    pool: ThrowawayPool, servers: dict[str, FileServer], tmp_path: Path, scheme: str
) -> None:
    """The connection is cut half way, and the file is whole in the end."""
    server = servers[scheme]
    server.write(f"large-{scheme}", LARGE)
    async with cutter(server.port, len(LARGE) // 2) as between:
        await run(
            pool,
            tmp_path,
            f"cp large-{scheme} back",
            f"{server.commands(port=between.port)}"
            f"transfer_input_files = {server.url(f'large-{scheme}', port=between.port)}\n",
            4,
        )

    assert between.cut
    assert (tmp_path / "back").read_bytes() == LARGE


@pytest.mark.parametrize("scheme", WRITABLE)
async def test_a_break_in_the_middle_of_what_goes(
    pool: ThrowawayPool, servers: dict[str, FileServer], tmp_path: Path, scheme: str
) -> None:
    """The connection is cut half way, and the server has the whole file in the end."""
    server = servers[scheme]
    (tmp_path / "made").write_bytes(LARGE)
    async with cutter(server.port, len(LARGE) // 2) as between:
        await run(
            pool,
            tmp_path,
            "cp made result",
            f"{server.commands(port=between.port)}transfer_input_files = made\ntransfer_output_files = result\n"
            f'transfer_output_remaps = "result = {server.url("broken", port=between.port)}"\n',
            4,
        )

    assert between.cut
    assert LARGE == server.read("broken")


def texts_below(directory: Path) -> Iterator[tuple[Path, bytes]]:
    """
    Log files and files without a suffix, with what is in them; a pool that runs may remove some meanwhile.
    """
    for place, _, names in os.walk(directory):
        for path in (Path(place, name) for name in names):
            with suppress(FileNotFoundError):
                if path.suffix in {".log", ""} and path.is_file():
                    yield path, path.read_bytes()


async def test_the_key_stays_on_the_submit_side(
    pool: ThrowawayPool, servers: dict[str, FileServer], tmp_path: Path
) -> None:
    """
    Neither the machine nor its job, nor a log or an ad, has the secret; a key that cannot be read holds the job.
    """
    server = servers["s3"]
    server.write("in.dat", b"x")
    given = f"{server.commands()}transfer_input_files = {server.url('in.dat')}\n"
    await run(
        pool,
        tmp_path,
        "cat .job.ad .machine.ad; env; grep -r --exclude=run.sh the-secret . || echo none",
        given,
        4,
    )

    assert "none" == (tmp_path / "out").read_text().splitlines()[-1]
    log = await written(tmp_path / "log", "\n005 (")
    assert "the-secret" not in (tmp_path / "out").read_text() + log
    texts = dict(texts_below(pool.home))
    assert any(path.name == "shadow.log" for path in texts)
    assert not [path for path, text in texts.items() if b"the-secret" in text or b"X-Amz-Signature" in text]

    (tmp_path / "key").write_text("two words")
    spoilt = given.replace("aws_secret_access_key_file = ", f"aws_secret_access_key_file = {tmp_path}/key #")
    ad = await run(pool, tmp_path, "true", spoilt.replace("#", "\n# "), 5)
    assert 13 == ad["HoldReasonCode"]
    assert f"{tmp_path}/key does not hold one word" in str(ad["HoldReason"])
