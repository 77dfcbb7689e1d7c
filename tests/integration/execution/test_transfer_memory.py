"""
However large a file is, what moves it holds no more of it in memory; KETTLE_TEST_TRANSFER_MIB=1024 moves a GiB.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import msgspec
import pytest

from kettle.testing.servers.files import no_xrootd, s3, webdav, xrootd
from kettle.transfer.plugin import Move, Order
from kettle.transfer.plugins import MODULES, own_plugins
from kettle.transfer.s3_signatures import Key, place, signed

SMALL = 40
LARGE = int(os.environ.get("KETTLE_TEST_TRANSFER_MIB", "96"))
BOUND_KIB = {"root": 40 << 10, "cache": 40 << 10}
"""
How much more the larger file may take; `xrdcp` has four buffers of 8 MiB, of which a short transfer may not need all.
"""
OWN_BOUND_KIB = 16 << 10

_RUN = """
import sys, resource, msgspec
from kettle.transfer.plugin import Order
from kettle.transfer.plugin_runs import carry_out
moved = carry_out(msgspec.msgpack.decode(sys.stdin.buffer.read(), type=Order))
assert moved.ending is None, moved.ending
print(max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)))
"""


@pytest.fixture(scope="module")
def urls() -> Iterator[dict[str, str]]:
    """Where files go and come from, by method."""
    with ExitStack() as stack:
        there = Path(tempfile.mkdtemp(prefix="kettle-memory-"))
        stack.callback(shutil.rmtree, there)
        dav = stack.enter_context(webdav(there))
        found = {
            "dav": dav.url("f"),
            "http": f"http://127.0.0.1:{dav.port}/g",
            "s3": f"http://127.0.0.1:{stack.enter_context(s3(there)).port}",
        }
        if not no_xrootd():
            origin, cache = stack.enter_context(xrootd())
            found |= {"root": origin.url("f"), "cache": cache.url("f")}
        yield found


def address(urls: dict[str, str], method: str, *, upload: bool) -> str:
    """Of a file; that of an object in S3 is signed as the submit side does it."""
    if method == "cache" and upload:
        return urls["root"]
    if method != "s3":
        return urls[method]
    there = place("s3://bucket/f", endpoint=urls["s3"])
    return signed(there, "PUT" if upload else "GET", Key("me", "hush"), at=time.time(), lifetime=3600)


def peak_kib(url: str, path: Path, *, upload: bool) -> int:
    """The largest resident set of all processes that move a file."""
    order = Order(
        upload=upload,
        moves=[Move(url, str(path))],
        plugins=own_plugins(tuple(MODULES)),
        lifetime=600.0,
        scratch=str(path.parent),
        environment={"PATH": os.environ["PATH"]},
    )
    said = subprocess.run(
        [sys.executable, "-c", _RUN], input=msgspec.msgpack.encode(order), stdout=subprocess.PIPE, check=True
    )
    return int(said.stdout)


@pytest.mark.parametrize(
    "method",
    [
        "http",
        "dav",
        "s3",
        *(
            pytest.param(name, marks=pytest.mark.skipif(bool(no_xrootd()), reason=no_xrootd()))
            for name in ("root", "cache")
        ),
    ],
)
def test_memory_does_not_grow_with_the_file(urls: dict[str, str], tmp_path: Path, method: str) -> None:
    """To the server and back again, in both sizes; what comes back has the size that went."""
    peaks: dict[bool, list[int]] = {True: [], False: []}
    for mib in (SMALL, LARGE):
        there, back = tmp_path / "there", tmp_path / "back"
        piece = os.urandom(1 << 20)
        with there.open("wb") as file:
            for _ in range(mib):
                file.write(piece)
        if method == "cache":  # it has the file of before, and rightly so
            urls = {**urls, **{name: f"{urls[name]}-{mib}" for name in ("root", "cache")}}
        for upload, path in ((True, there), (False, back)):
            peaks[upload].append(peak_kib(address(urls, method, upload=upload), path, upload=upload))
        assert mib << 20 == back.stat().st_size
        back.unlink()

    for small, large in peaks.values():
        assert large - small < BOUND_KIB.get(method, OWN_BOUND_KIB)
