"""A pool that is upgraded, and taken back, while people use it."""

import asyncio
import json
import os
from pathlib import Path

import msgspec
import pytest

from kettle.client import Client, select
from kettle.testing.throwaway_pool import ThrowawayPool, throwaway_pool

from .evidence import Evidence
from .previous_release import commit_before, packages_of, packages_of_tree

LONG = "KETTLE_TEST_LONG"
JOBS = int(os.environ.get("KETTLE_TEST_UPGRADE_JOBS", "10000"))
FROM = os.environ.get("KETTLE_TEST_UPGRADE_FROM", "")
AT_ONCE = 20
LASTS_S = 60.0
"""So long jobs come, at least: each new start of the pool falls into it."""
NEW = "99.0.0"
WITHIN_S = 3600.0


async def test_a_pool_is_ready(pool: ThrowawayPool) -> None:
    """The version can serve the pool that it serves, and nothing is left to do after it."""
    said = await pool.kettle("upgrade", "check", "--json")
    found = json.loads(said.out)
    assert (0, True) == (said.status, found["ready"]), said
    assert {"schema", "events", "hosts"} <= {each["check"] for each in found["findings"]}
    finished = await pool.kettle("upgrade", "finish")
    assert (0, "Nothing was left to do.\n") == (finished.status, finished.out)


class Load:
    """People who submit jobs and ask, and how long each of them waited."""

    def __init__(self, pool: ThrowawayPool, evidence: Evidence) -> None:
        self._pool = pool
        self._evidence = evidence
        self.clusters: list[int] = []
        self.waits: dict[str, list[float]] = {"submit": [], "ask": []}
        self.done = asyncio.Event()

    async def submit(self, count: int) -> None:
        """Jobs that each leave one line."""
        place = self._evidence.directory
        description = (
            "executable = /bin/sh\nrequest_memory = 16\n"
            f"arguments = \"-c 'echo x >> {place}/$(Cluster).$(Process)'\"\nqueue {AT_ONCE}\n"
        )
        async with Client.connect(home=self._pool.home, patience=WITHIN_S) as client:
            for _ in range(count // AT_ONCE):
                began = asyncio.get_running_loop().time()
                submitted = await client.submit(description, cwd=self._evidence.work)
                self.waits["submit"].append(asyncio.get_running_loop().time() - began)
                self.clusters.append(submitted.cluster)
                await asyncio.sleep(LASTS_S * AT_ONCE / count)

    async def ask(self) -> None:
        """What everybody asks, again and again, until `done` is set."""
        async with Client.connect(home=self._pool.home, patience=WITHIN_S) as client:
            while not self.done.is_set():
                began = asyncio.get_running_loop().time()
                await client.totals()
                self.waits["ask"].append(asyncio.get_running_loop().time() - began)
                await asyncio.sleep(0.05)

    async def half_way(self, count: int) -> None:
        """Wait until so many clusters are submitted."""
        async with asyncio.timeout(WITHIN_S):
            while len(self.clusters) < count:
                await asyncio.sleep(0.05)


async def restarted(pool: ThrowawayPool, packages: Path, to: Path, version: str) -> float:
    """Have the pool run other packages; how long it took until all of it did."""
    began = asyncio.get_running_loop().time()
    stage = packages.with_name("next")
    stage.symlink_to(to)
    stage.replace(packages)
    said = await pool.kettle("restart", within_s=WITHIN_S)
    assert 0 == said.status, said
    async with asyncio.timeout(WITHIN_S):
        while True:
            try:
                state = pool.state
            except AssertionError:  # the one master has ended, the other has not written yet
                state = None
            if state is not None and state.ready and state.version == version:
                return asyncio.get_running_loop().time() - began
            await asyncio.sleep(0.05)


@pytest.mark.skipif(
    LONG not in os.environ, reason=f"it takes minutes: {JOBS} jobs and two versions ({LONG}=1 runs them)"
)
async def test_upgrade_and_downgrade_under_load(tmp_path: Path, evidence: Evidence) -> None:
    """
    No job is lost or runs twice, no command fails, and the way back is open as long as nothing was finished.
    """
    old = packages_of(FROM or commit_before(), tmp_path / "old")
    new = packages_of_tree(NEW, tmp_path / "new")
    packages = tmp_path / "packages"
    packages.symlink_to(old)
    environ = {"PATH": os.environ["PATH"], "PYTHONPATH": str(packages), "HOME": str(tmp_path)}
    async with throwaway_pool(tmp_path, cpus=16, environ=environ) as pool:
        before = pool.state.version
        assert before != NEW
        load = Load(pool, evidence)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(load.submit(JOBS))
            tasks.create_task(load.ask())
            steps = JOBS // AT_ONCE
            await load.half_way(steps // 4)
            upgraded = await restarted(pool, packages, new, NEW)
            await load.half_way(steps // 2)
            downgraded = await restarted(pool, packages, old, before)
            await load.half_way(3 * steps // 4)
            again = await restarted(pool, packages, new, NEW)
            await load.half_way(steps)
            load.done.set()
        for cluster in load.clusters:
            progress = await pool.client.wait(select(cluster))
            assert progress is not None
        lines = {path.name: path.read_text() for path in evidence.directory.iterdir()}
        assert {f"{cluster}.{proc}" for cluster in load.clusters for proc in range(AT_ONCE)} == set(lines)
        twice = [name for name, text in lines.items() if text != "x\n"]
        audit = await pool.log_check(within_s=WITHIN_S)
        figures = {
            "jobs": JOBS, "began twice": len(twice), "restart_s": [upgraded, downgraded, again],
            **{f"{kind}_max_s": max(waits) for kind, waits in load.waits.items()},
            **{f"{kind}_p99_s": sorted(waits)[int(len(waits) * 0.99)] for kind, waits in load.waits.items()},
        }  # fmt: skip
        (tmp_path / "figures.json").write_bytes(msgspec.json.encode(figures))
        assert audit.clean, audit.said
        assert [] == twice
