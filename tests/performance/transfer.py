"""
How fast files move, and what the processes hold of them meanwhile.

    python -m tests.performance.bench --part transfer
    python -m tests.performance.transfer [--mib 1024] [--shared-jobs 500] [--shared-mib 100] [--rounds 3]

Prints JSON.  `store` is the object store alone: a shadow's part that puts a file, a startd's that gets it, a NATS server.
`job` is a job with one input and one output of that size, through everything.  `shared` are many jobs with one input.
"""

import argparse
import asyncio
import hashlib
import json
import os
import tempfile
import time
from pathlib import Path
from typing import Any, Final

from kettle.bus.nats import NatsBus
from kettle.bus.ports import Served
from kettle.client import select
from kettle.embedded import EmbeddedNats
from kettle.execution.input_files.download import Fetcher
from kettle.pool.personal_settings import Tables
from kettle.testing.servers.embedded import EVERYTHING
from kettle.testing.throwaway_pool import ThrowawayPool, throwaway_pool
from kettle_services.shadow.file_transfer.input_files import Source
from kettle_services.shadow.file_transfer.object_store import Objects
from kettle_services.shadow.files.access import FileAccess
from kettle_services.shadow.settings import ShadowSettings
from kettle_wire.commands.shadow import OFFER_INPUT, Offered, OfferInput
from kettle_wire.commands.startd import Activation, ClaimKey, InputFile
from kettle_wire.events import JobAssigned, JobCompleted, JobStarted
from kettle_wire.identity import Identity, daemon
from kettle_wire.jobs import JobId
from kettle_wire.subjects import Subjects

MIB: Final = 1 << 20
SUBJECTS: Final = Subjects("bench")
SHARED: Final = """\
executable = /bin/true
transfer_executable = false
transfer_input_files = {name}
transfer_output_files = ""
request_memory = 16
request_disk = {kib}
queue {jobs}
"""
BOTH_WAYS: Final = """\
executable = {script}
transfer_input_files = {name}
transfer_output_files = result
request_memory = 64
request_disk = {kib}
queue
"""


def make_file(path: Path, mib: int) -> str:
    """Random bytes; their SHA-256."""
    total = hashlib.sha256()
    with path.open("wb") as file:
        for _ in range(mib):
            data = os.urandom(MIB)
            total.update(data)
            file.write(data)
    return total.hexdigest()


def peak_mib(pid: int) -> float:
    """The most memory that a process ever had."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return round(int(line.split()[1]) / 1024, 1)
    return 0.0


async def store(directory: Path, source: Path, digest: str) -> dict[str, float]:
    """MiB per second into the object store, and out of it, each by one process."""
    size, settings = source.stat().st_size, ShadowSettings(object_store="always", object_store_mib=4096)
    keys = directory / "keys"
    async with EmbeddedNats(directory / "nats", credentials=keys, permissions=EVERYTHING) as server:
        seed = str(server.credentials("test"))
        ours = {
            role: NatsBus.connect(server.url, subjects=SUBJECTS, identity=daemon(role), credentials=seed)
            for role in ("shadow", "startd")
        }
        async with ours["shadow"] as shadow, ours["startd"] as startd, asyncio.TaskGroup() as tasks:
            objects = Objects(shadow, SUBJECTS, settings, tasks)
            file = InputFile(name="large", mode=0o644, size=size, sha256=digest)
            offered = Source(file, source, FileAccess(directory / "home"))

            async def offer(request: OfferInput, caller: Identity) -> Offered:
                return Offered(piece=await objects.offer(offered, "machine") or 0)

            began = time.perf_counter()
            while await objects.offer(offered, "machine") is None:
                pass
            put = time.perf_counter() - began
            await shadow.serve("shadow", "shadow", [Served(OFFER_INPUT, offer)], version="0.1.0")
            job = Activation(
                key=ClaimKey("c", "s"), job=JobId(1, 0), attempt=1, ad={}, inputs=[file], shadow="shadow"
            )
            fetcher = Fetcher(startd, SUBJECTS, patience=1.0)
            with (directory / "copy").open("wb") as sink:
                began = time.perf_counter()
                await fetcher.fetch(job, file, sink.fileno())
                got = time.perf_counter() - began
            if fetcher.stored_bytes != size:
                raise SystemExit("what came out of the store is not what went in")
    return {"put": round(size / MIB / put, 1), "get": round(size / MIB / got, 1)}


async def both_ways(pool: ThrowawayPool, source: Path) -> dict[str, float]:
    """
    MiB per second of one job's input, from its assignment to its start, and of its output, from there to its end.
    """
    mib = source.stat().st_size // MIB
    script = source.with_name("copy.sh")
    script.write_text(f"#!/bin/sh\nmv {source.name} result\n")
    script.chmod(0o755)
    description = BOTH_WAYS.format(script=script.name, name=source.name, kib=mib * 2048)
    submitted = await pool.client.submit(description, cwd=source.parent)
    progress = await pool.client.wait(select(submitted.cluster), through_hold=False)
    if progress.bad() or progress.stuck:
        raise SystemExit(f"the job did not succeed: {progress}")
    at: dict[type, float] = {}
    for each in await pool.client.events(JobId(submitted.cluster, 0)):
        at[type(each.event)] = each.at
    source.with_name("result").unlink()
    inputs, outputs = at[JobStarted] - at[JobAssigned], at[JobCompleted] - at[JobStarted]
    return {"input": round(mib / inputs, 1), "output": round(mib / outputs, 1)}


async def shared(pool: ThrowawayPool, source: Path, jobs: int) -> dict[str, Any]:
    """Jobs per second with one input, and how often it moved."""
    kib = source.stat().st_size // 1024 + 1024
    began = time.perf_counter()
    submitted = await pool.client.submit(
        SHARED.format(name=source.name, kib=kib, jobs=jobs), cwd=source.parent
    )
    progress = await pool.client.wait(select(submitted.cluster), through_hold=False)
    took = time.perf_counter() - began
    if progress.bad() or progress.stuck:
        raise SystemExit(f"not all jobs succeeded: {progress}")
    await asyncio.sleep(2 * 1.0)  # the startd's ad goes out each second
    (ad,) = await pool.client.ads("StartDaemon")
    return {
        "jobs": jobs,
        "mib": source.stat().st_size // MIB,
        "seconds": round(took, 1),
        "jobs_per_second": round(jobs / took, 1),
        "moved": ad["InputFilesFetched"],
        "moved_mib": int(str(ad["InputBytesFetched"])) // MIB,
    }


async def transfer(directory: Path, arguments: argparse.Namespace) -> dict[str, Any]:
    """All figures."""
    work = directory / "work"
    work.mkdir()
    large, common = work / "large", work / "common"
    digest = make_file(large, arguments.mib)
    make_file(common, arguments.shared_mib)
    rates: list[dict[str, float]] = []
    for number in range(arguments.rounds):
        place = directory / f"store{number}"
        place.mkdir()
        rates.append(await store(place, large, digest))
    report: dict[str, Any] = {"mib": arguments.mib, "store_mib_per_second": rates}
    always: Tables = {
        "shadow": {"object_store": "always", "object_store_mib": 4096},
        "startd": {"input_cache_mib": 4 * arguments.mib},
    }
    async with throwaway_pool(directory, cpus=8, settings=always) as pool:
        report["job_mib_per_second"] = await both_ways(pool, large)
        peaks = {d.name: peak_mib(d.pid) for d in pool.state.daemons if d.pid}
        report["job_peak_memory_mib"] = {name: peaks[name] for name in ("nats", "schedd", "shadow", "startd")}
    async with throwaway_pool(directory, cpus=8) as pool:
        report["shared"] = await shared(pool, common, arguments.shared_jobs)
    return report


def options(parser: argparse.ArgumentParser) -> None:
    """What can be chosen."""
    parser.add_argument("--mib", type=int, default=1024, help="of the one large file")
    parser.add_argument(
        "--shared-jobs", type=int, default=500, help="that have one input; 10000 takes its time"
    )
    parser.add_argument("--shared-mib", type=int, default=100)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    options(parser)
    with tempfile.TemporaryDirectory(prefix="kettle-bench-") as directory:
        print(json.dumps(asyncio.run(transfer(Path(directory), parser.parse_args())), indent=2))


if __name__ == "__main__":
    main()
