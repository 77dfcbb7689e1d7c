"""
Whatever servers a site has: the contracts hold on all kinds of them, and a cluster loses no job when a server dies.
"""

import asyncio
import math
import os
import re
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from pathlib import Path

import pytest

from kettle.client import Progress, select
from kettle.embedded import EmbeddedPostgres
from kettle.embedded.binaries import nats_server, setpriv
from kettle.embedded.ports import listens
from kettle.pool.personal_settings import Value
from kettle.testing.servers import selection
from kettle.testing.servers.docker import docker_is_missing
from kettle.testing.servers.embedded import EVERYTHING, server_directory
from kettle.testing.servers.held_port import held_port
from kettle.testing.servers.nats_cluster import NODES, NatsCluster
from kettle.testing.throwaway_pool import ThrowawayPool, throwaway_pool
from kettle_wire.subjects import Subjects

from .evidence import Evidence

_TOP = Path(__file__).parents[2]
SUITE_S = 1200.0
"""For a pass of the contract tests, which takes well under a minute on an idle machine."""
JOBS = 20
WITHIN_S = float(os.environ.get("KETTLE_TEST_WITHIN_S", "300"))

once = pytest.mark.skipif(not selection.servers_are_ours(), reason="starts every lane itself")


OF_SERVERS = ("buckets", "commands", "leases", "nats_client", "streams", "together")
"""The contracts of NATS."""
OF_THE_DATABASE = ("log", "working_set")
OF_OURS = ("access_points", "deeds", "deputies", "every_credential", "forwarder_permissions", "hostile_headers",
           "joined_account", "large_commands", "limits", "monitoring_permissions", "nats_returns",
           "permissions", "raw_subjects", "visitor_permissions")  # fmt: skip
"""What no other server changes: our services' own checks, and contracts that start servers of their own."""


async def contracts_hold(lane: str, contracts: Sequence[str], **environ: str) -> None:
    """
    The contracts of tests/contract pass in one lane, over the servers that this has, and none of it is skipped.
    """
    chosen = ("-k", "not memory", *(f"tests/contract/test_{name}.py" for name in contracts))
    clean = {name: value for name, value in os.environ.items() if name != "PYTEST_CURRENT_TEST"}
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "pytest", "-v", "-x", "-p", "no:cacheprovider", *chosen),
        cwd=_TOP,
        env={**clean, **environ, selection.VARIABLE: lane},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    said = ""
    try:
        assert process.stdout is not None
        async with asyncio.timeout(SUITE_S):
            async for line in process.stdout:
                said += line.decode(errors="replace")
            await process.wait()
    except TimeoutError:
        pytest.fail(f"not over within {SUITE_S:g} s:\n{said[-6000:]}")
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert process.returncode == 0, said[-6000:]
    assert re.search(r"\b[1-9]\d* passed, \d+ deselected in ", said, re.MULTILINE), said[-2000:]


@once
async def test_the_contracts_hold_on_a_cluster() -> None:
    """Bus, buckets and leases keep their promises on three NATS servers with replicated streams."""
    await contracts_hold("cluster", OF_SERVERS)


@pytest.fixture
async def by_hand(tmp_path: Path) -> AsyncIterator[Mapping[str, str]]:
    """Servers as somebody else runs them: their own configuration, and no credentials for NATS."""
    with server_directory() as directory:
        port = held_port()
        config = tmp_path / "nats.conf"
        config.write_text(
            f'listen: "127.0.0.1:{port}"\nmax_payload: 8MB\n'
            f'jetstream {{ store_dir: "{directory / "jetstream"}", max_file_store: 64GB }}\n'
        )
        nats = await asyncio.create_subprocess_exec(
            *(setpriv(), "--pdeathsig=TERM", "--", str(nats_server()), "--config", str(config)),
            stderr=asyncio.subprocess.DEVNULL,
        )
        try:
            async with EmbeddedPostgres(directory / "postgres", throwaway=True, database="site") as postgres:
                async with asyncio.timeout(WITHIN_S):
                    while not listens(port):
                        await asyncio.sleep(0.01)
                yield {"KETTLE_NATS_URL": f"nats://127.0.0.1:{port}", "KETTLE_DATABASE_URL": postgres.dsn}
        finally:
            nats.terminate()
            await nats.wait()


@once
async def test_the_contracts_hold_on_servers_of_somebody_else(by_hand: Mapping[str, str]) -> None:
    """All that is needed is where they are."""
    await contracts_hold("external", OF_SERVERS + OF_THE_DATABASE, **by_hand)


@once
async def test_the_contracts_hold_in_containers() -> None:
    """With the images that most people use, through Docker."""
    if why := await asyncio.to_thread(docker_is_missing):
        pytest.skip(why)
    await contracts_hold("containers", OF_SERVERS + OF_THE_DATABASE)


def test_each_contract_is_of_something() -> None:
    """A new file of contracts is for all lanes, or says that it is not."""
    there = {path.stem.removeprefix("test_") for path in (_TOP / "tests" / "contract").glob("test_*.py")}
    assert {*OF_SERVERS, *OF_THE_DATABASE, *OF_OURS} == there


@pytest.fixture
async def cluster() -> AsyncIterator[NatsCluster]:
    with server_directory() as directory:
        async with NatsCluster(directory, permissions=EVERYTHING) as running:
            yield running


class Following:
    """The jobs of one cluster of jobs, seen to their end while something else happens."""

    def __init__(self) -> None:
        self.progress = Progress({})
        self._changed = asyncio.Event()

    async def follow(self, pool: ThrowawayPool, number: int) -> None:
        async with asyncio.timeout(WITHIN_S), aclosing(pool.client.watch(select(number))) as watched:
            async for progress in watched:
                self.progress = progress
                self._changed.set()

    async def completed(self, number: int) -> None:
        while self.progress.counts["completed"] < number:
            self._changed.clear()
            await self._changed.wait()


@pytest.fixture
def portions(evidence: Evidence) -> list[Evidence]:
    """
    A portion of jobs for each server: however fast the machine is, some are left when the next server is killed.
    """
    portions = [
        Evidence(evidence.directory / f"of-{node}", evidence.work / f"of-{node}") for node in range(NODES)
    ]
    for portion in portions:
        portion.directory.mkdir()
        portion.directory.chmod(evidence.directory.stat().st_mode)
        portion.work.mkdir()
    return portions


async def test_every_server_of_a_cluster_is_killed_in_turn(
    tmp_path: Path, template: Path, portions: list[Evidence], cluster: NatsCluster
) -> None:
    """
    Jobs complete, once each, although each NATS server is killed, that which leads the log's stream first.
    """
    bus: dict[str, Value] = {
        "nats_url": cluster.url,
        "nats_credentials": str(cluster.credentials("test")),
        "nats_replicas": NODES,
        "pool": "personal",
    }
    async with throwaway_pool(tmp_path, cpus=4, template=template, settings={"kettle": bus}) as pool:
        log_stream = Subjects("personal").event_stream("schedd.schedd")
        first = 0
        async with asyncio.TaskGroup() as group:
            for step, witnesses in enumerate(portions):
                lives = [0.5] * (JOBS - 1) + [math.inf]  # however late it is noticed, one is not over
                submitted = await pool.client.submit(witnesses.sweep(lives), cwd=witnesses.work)
                following = Following()
                group.create_task(following.follow(pool, submitted.cluster))
                await following.completed(2)
                if step == 0:
                    first = (await cluster.leaders())[log_stream]
                node = (first + step) % NODES
                done = following.progress.counts["completed"]
                await cluster.kill(node)
                witnesses.let_go()
                await following.completed(done + 1)  # the other two are enough
                await cluster.restart(node)
        for witnesses in portions:
            assert {} == witnesses.overlaps()
            assert [] == witnesses.wrong_results(JOBS)
            assert set(range(JOBS)) == set(witnesses.runs())
        audit = await pool.log_check()
        assert audit.clean, audit.said
    assert [] == pool.left
