"""
How long Dask clusters take on a pool: to begin, to grow, to shrink, and to be whole again after something was killed; and beside them
dask-jobqueue on the same pool, if it is installed, and Dask's own cluster of local processes, which is the lower bound.  `reserve_s`: to
the first worker on a pool that is full of batch jobs, with a reserve for interactive ones; `histogram_of_local`: the rate at which two
workers make a histogram, as a part of that of two local processes.

    python -m tests.performance.dask_clusters
"""

import argparse
import asyncio
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, cast

import distributed
import numpy as np
from tests.scenario.dask_pools import SETTINGS, cluster_in, jobs_left, kill
from tests.scenario.test_interactive_jobs import BATCH, SLEEP
from tests.scenario.test_interactive_jobs import settings as reserve

from kettle.client import prepare, select
from kettle.dask.comm import KettleBackend
from kettle.dask.placement import Placement
from kettle.testing.measurements import say, summary
from kettle.testing.throwaway_pool import ThrowawayPool, merged, throwaway_pool
from kettle_services.cli.facility.analysis import ROWS, histogram, total
from kettle_services.condor import launchers

WITHIN_S: Final = 600.0
FEW: Final = 4
SMALL: Final = {"cores": 1, "memory": "200 MB", "disk": "64 MiB"}
BYTES: Final = 100_000_000
RESERVED: Final = """\
[reserved]
kind = "dask"
python = {python}
memory = 200
head_memory = 200
disk = 64
head_disk = 64
interactive = "all"
"""
client_of: Final = cast("Any", distributed.Client)
"""Dask has no types."""


async def until(holds: Callable[[], object]) -> float:
    """Seconds until something is so."""
    began = time.monotonic()
    async with asyncio.timeout(WITHIN_S):
        while not holds():
            await asyncio.sleep(0.01)
    return time.monotonic() - began


async def one_round(pool: ThrowawayPool, many: int) -> dict[str, float]:
    """Everything once, with a cluster of its own."""
    began = time.monotonic()
    found: dict[str, float] = {}
    cluster: Any = cluster_in(pool, FEW, **SMALL)
    async with cluster:
        client: Any = await client_of(cluster, asynchronous=True)
        await client.wait_for_workers(FEW, timeout=WITHIN_S)
        found[f"begin_{FEW}_s"] = time.monotonic() - began
        began = time.monotonic()
        await cluster.scale(many)
        await client.wait_for_workers(many, timeout=WITHIN_S)
        found[f"scale_{many}_s"] = time.monotonic() - began
        began = time.monotonic()
        await cluster.scale(FEW)
        await until(lambda: len(cluster.scheduler_info["workers"]) == FEW)
        found[f"back_{FEW}_s"] = time.monotonic() - began
        victim = min(each["name"] for each in cluster.scheduler_info["workers"].values())
        began = time.monotonic()
        kill(victim)
        await until(
            lambda: len(names := _names(cluster)) == FEW and victim not in names,
        )
        found["worker_replaced_s"] = time.monotonic() - began
        before = cluster.scheduler_address
        began = time.monotonic()
        kill(cluster.situation.scheduler_job)
        await until(lambda: cluster.situation.state != "ready" or cluster.scheduler_address != before)
        found["scheduler_loss_seen_s"] = time.monotonic() - began
        await until(lambda: cluster.scheduler_address != before and cluster.status.name == "running")
        await client.close()
        async with client_of(cluster, asynchronous=True) as again:
            await again.wait_for_workers(FEW, timeout=WITHIN_S)
        found["scheduler_replaced_s"] = time.monotonic() - began
    while await jobs_left(pool):
        await asyncio.sleep(0.05)
    return found


def _names(cluster: Any) -> set[str]:
    return {each["name"] for each in cluster.scheduler_info["workers"].values()}


async def gathered(pool: ThrowawayPool) -> float:
    """MB/s of a result of 100 MB to a client that gets to the cluster through the gateway alone."""
    from distributed.comm.registry import backends

    from kettle.dask.addresses import SCHEME

    backends[SCHEME] = KettleBackend(Placement())
    try:
        cluster: Any = cluster_in(pool, 1, cores=1, memory="600 MB")
        async with cluster, client_of(cluster, asynchronous=True) as client:
            await client.wait_for_workers(1, timeout=WITHIN_S)
            began = time.monotonic()
            data = await client.submit(np.ones, BYTES // 8)
            took = time.monotonic() - began
            assert BYTES == data.nbytes
            return BYTES / took / 1e6
    finally:
        backends[SCHEME] = KettleBackend()


async def local() -> float:
    """Seconds until Dask's own cluster of local processes has its workers."""
    began = time.monotonic()
    cluster_of = cast("Any", distributed.LocalCluster)
    async with (
        cluster_of(
            n_workers=FEW, threads_per_worker=1, processes=True, asynchronous=True, dashboard_address=":0"
        ) as cluster,
        client_of(cluster, asynchronous=True) as client,
    ):
        await client.wait_for_workers(FEW, timeout=WITHIN_S)
        return time.monotonic() - began


async def jobqueue(pool: ThrowawayPool, directory: Path, many: int) -> float:
    """Seconds from dask-jobqueue's `scale` to the last of its workers, on the same pool."""
    place = launchers.install(directory / "condor")
    os.environ.update(
        pool.environ, KETTLE_HOME=str(pool.home), PATH=f"{place}{os.pathsep}{os.environ['PATH']}"
    )
    cluster_of = import_module("dask_jobqueue").HTCondorCluster
    cluster = cluster_of(
        cores=1,
        memory="200 MB",
        disk="64 MB",
        asynchronous=True,
        python=sys.executable,
        log_directory=str(directory),
        job_extra_directives={"initialdir": str(directory)},
        scheduler_options={"host": "127.0.0.1", "dashboard_address": ":0"},
        worker_extra_args=["--no-dashboard"],
    )
    async with cluster, client_of(cluster, asynchronous=True) as client:
        cluster.scale(FEW)
        await client.wait_for_workers(FEW, timeout=WITHIN_S)
        began = time.monotonic()
        cluster.scale(many)
        await client.wait_for_workers(many, timeout=WITHIN_S)
        return time.monotonic() - began


async def histogram_rate(cluster: Any, parts: int) -> float:
    """Parts a second of which two workers make a histogram."""
    async with client_of(cluster, asynchronous=True) as client:
        await client.wait_for_workers(2, timeout=WITHIN_S)
        await client.gather(client.map(histogram, range(2), pure=False))  # what is imported is imported once
        began = time.monotonic()
        counts = client.map(histogram, range(parts), pure=False)
        await client.submit(total, counts, pure=False)
        return parts / (time.monotonic() - began)


async def histograms(pool: ThrowawayPool, gigabytes: float) -> dict[str, float]:
    """The rate on jobs of the pool, and on processes of this machine."""
    parts = max(4, round(gigabytes * 1e9 / (ROWS * 6 * 8)))
    cluster: Any = cluster_in(pool, 2, cores=1, memory="600 MB")
    async with cluster:
        there = await histogram_rate(cluster, parts)
    cluster_of = cast("Any", distributed.LocalCluster)
    async with cluster_of(
        n_workers=2, threads_per_worker=1, processes=True, asynchronous=True, dashboard_address=":0"
    ) as processes:
        here = await histogram_rate(processes, parts)
    of_part = ROWS * 6 * 8 / 1e6
    return {
        "histogram_mb_per_s": there * of_part,
        "local_histogram_mb_per_s": here * of_part,
        "histogram_of_local": there / here,
    }


async def on_a_full_pool(directory: Path, rounds: int) -> list[float]:
    """
    Seconds to the first worker of a session, beside 200 batch jobs, with the reserve of the page about it.
    """
    directory.mkdir()
    profiles = directory / "profiles.toml"
    profiles.write_text(RESERVED.format(python=json.dumps(sys.executable)))
    own: dict[str, dict[str, Any]] = {"sessions": {"profiles": str(profiles)}}
    settings = merged(merged(SETTINGS, reserve("A reserve")), own)
    found: list[float] = []
    async with throwaway_pool(directory, cpus=8, memory_mib=16 * 1024, settings=settings) as pool:
        batch = (await pool.client.submit(prepare(f"{SLEEP}queue {BATCH}\n"))).cluster
        async with asyncio.timeout(WITHIN_S):
            while sum(ad["JobStatus"] == 2 for ad in await pool.client.jobs(select(batch))) < 6:
                await asyncio.sleep(0.05)
        for _ in range(rounds):
            began = time.monotonic()
            cluster: Any = cluster_in(pool, 1, profile="reserved")
            async with cluster, client_of(cluster, asynchronous=True) as client:
                await client.wait_for_workers(1, timeout=WITHIN_S)
                found.append(time.monotonic() - began)
            while len(await jobs_left(pool)) > BATCH:
                await asyncio.sleep(0.05)
        await pool.client.remove(select(batch))
    return found


async def run(arguments: argparse.Namespace) -> dict[str, Any]:
    """
    In a pool of its own, with more slots than the machine has cores: what the workers do here is little.
    """
    many: int = arguments.workers
    settings = merged(SETTINGS, {"sessions": {"limit": 50}})
    found: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as name:
        async with throwaway_pool(Path(name), cpus=many + 2, memory_mib=64 * 1024, settings=settings) as pool:
            for number in range(arguments.rounds):
                say(f"Dask clusters, round {number + 1}")
                one = {
                    **await one_round(pool, many),
                    "local_begin_s": await local(),
                    "gather_mb_per_s": await gathered(pool),
                    **await histograms(pool, arguments.gigabytes),
                }
                if find_spec("dask_jobqueue") is not None:
                    place = Path(name) / f"jobqueue{number}"
                    place.mkdir()
                    took = one[f"jobqueue_scale_{many}_s"] = await jobqueue(pool, place, many)
                    one[f"scale_{many}_of_jobqueue"] = one[f"scale_{many}_s"] / took
                for what, value in one.items():
                    found.setdefault(what, []).append(value)
        say("a session on a full pool")
        found["reserve_s"] = await on_a_full_pool(Path(name) / "full", arguments.rounds)
    return {what: summary(values) for what, values in found.items()}


def main(words: list[str]) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--workers", type=int, default=50, help="to which a cluster grows")
    parser.add_argument(
        "--gigabytes", type=float, default=10.0, help="of columns of which a histogram is made"
    )
    report = asyncio.run(run(parser.parse_args(words)))
    sys.stdout.write(f"{json.dumps(report, indent=2)}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
