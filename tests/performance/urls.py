"""
One large file by URL, in and out, from and to real servers: how fast it goes, and that nobody holds it in memory.

    python -m tests.performance.urls [--mib 1024] [--scheme s3]

HTTP and WebDAV (wsgidav), S3 (moto), XRootD and XRootD through a cache, where they are installed.  A job in a whole pool gets
the file, says its SHA-256 and gives it back under another name; both sums are compared.  Meanwhile the most that each process
of the pool has ever had in memory is noted, by what it is.  Prints JSON.
"""

import argparse
import asyncio
import hashlib
import json
import os
import shutil
import tempfile
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, Final

from kettle.client import select
from kettle.pool import processes
from kettle.testing.measurements import say
from kettle.testing.servers.files import Directory, FileServer, no_xrootd, s3, webdav, xrootd
from kettle.testing.throwaway_pool import ThrowawayPool, throwaway_pool

SCRIPT: Final = "#!/bin/sh\nsha256sum large.dat | cut -c1-64\nmv large.dat back.dat\n"
JOB: Final = (
    "executable = run.sh\noutput = out\nerror = err\nlog = log\nrequest_disk = {disk}\n"
    "transfer_input_files = {source}\ntransfer_output_files = back.dat\n"
    'transfer_output_remaps = "back.dat = {target}"\n{commands}queue\n'
)
WITHIN_S: Final = 600.0
_LOOK_S: Final = 0.05
_COMPLETED: Final = 4
_HELD: Final = 5


def kind(pid: int) -> str:
    """What a process of the pool is: the module that it runs, or the name of its program."""
    words = Path(f"/proc/{pid}/cmdline").read_bytes().decode().split("\0")
    if "-m" in words:
        return words[words.index("-m") + 1]
    return Path(words[0]).name


def note(pool: ThrowawayPool, peaks: dict[str, int]) -> None:
    """The most memory that each kind of process has had by now, KiB."""
    for each in processes.of_pool(pool.state.pool_id, pool.home / "execute"):
        with suppress(OSError, IndexError, ValueError):
            lines = Path(f"/proc/{each.pid}/status").read_text().splitlines()
            most = next((int(line.split()[1]) for line in lines if line.startswith("VmHWM")), 0)
            name = kind(each.pid)
            peaks[name] = max(peaks.get(name, 0), most)


async def through(pool: ThrowawayPool, source: FileServer, target: FileServer, data: bytes) -> dict[str, Any]:
    """There and back again."""
    source.write("large.dat", data)
    place = Path(tempfile.mkdtemp(dir=pool.home.parent))
    (place / "run.sh").write_text(SCRIPT)
    (place / "run.sh").chmod(0o755)
    text = JOB.format(
        source=source.url("large.dat"),
        target=target.url("back/large.dat"),
        commands=source.commands(),
        disk=3 * len(data) // 1024,
    )
    peaks: dict[str, int] = {}
    began = time.perf_counter()
    cluster = (await pool.client.submit(text, cwd=place)).cluster
    async with asyncio.timeout(WITHIN_S):
        while True:
            note(pool, peaks)
            (ad,) = await pool.client.jobs(select(cluster)) or [{"JobStatus": _COMPLETED}]
            if ad["JobStatus"] == _COMPLETED:
                break
            if ad["JobStatus"] == _HELD:
                raise SystemExit(f"the job was held: {ad['HoldReason']}")
            await asyncio.sleep(_LOOK_S)
    took = time.perf_counter() - began
    wanted = hashlib.sha256(data).hexdigest()
    if (said := (place / "out").read_text().strip()) != wanted:
        raise SystemExit(f"the job has got a file with the sum {said}, not {wanted}")
    if (back := hashlib.sha256(target.read("back/large.dat") or b"").hexdigest()) != wanted:
        raise SystemExit(f"the server has got a file with the sum {back}, not {wanted}")
    return {
        "seconds": round(took, 1),
        "mib_per_second": round(2 * len(data) / (1 << 20) / took),
        "peak_mib": {name: round(kib / 1024, 1) for name, kib in sorted(peaks.items())},
    }


def servers(stack: ExitStack, place: Path) -> dict[str, tuple[FileServer, FileServer]]:
    """Where the file comes from, and where it goes to, by scheme."""
    dav = stack.enter_context(webdav(place))
    web = Directory(dav.port, "http", place / "dav")
    found: dict[str, tuple[FileServer, FileServer]] = {"http": (web, web), "dav": (dav, dav)}
    bucket = stack.enter_context(s3(place))
    found["s3"] = (bucket, bucket)
    if why := no_xrootd():
        say(f"no XRootD: {why}")
    else:
        origin, cache = stack.enter_context(xrootd())
        found |= {"root": (origin, origin), "cache": (cache, origin)}
    return found


async def measure(directory: Path, mib: int, chosen: list[str]) -> dict[str, Any]:
    """All schemes, one after the other, with one pool."""
    report: dict[str, Any] = {"mib": mib}
    data = os.urandom(mib << 20)
    with ExitStack() as stack:
        place = Path(tempfile.mkdtemp(prefix="kettle-urls-"))
        stack.callback(shutil.rmtree, place)
        found = servers(stack, place)
        (place / "dav" / "back").mkdir()  # HTTP has no way to make directories
        async with throwaway_pool(directory, cpus=1) as pool:
            for name in chosen or found:
                say(f"{mib} MiB by {name}")
                report[name] = await through(pool, *found[name], data)
                say(f"  {report[name]}")
    return report


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--mib", type=int, default=1024)
    parser.add_argument(
        "--scheme", action="append", default=[], choices=("http", "dav", "s3", "root", "cache")
    )
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="kettle-bench-") as directory:
        print(
            json.dumps(asyncio.run(measure(Path(directory), arguments.mib, arguments.scheme or [])), indent=2)
        )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
