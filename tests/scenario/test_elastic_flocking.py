"""Jobs that another pool takes, in a pool that could have machines made for them."""

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

import pytest
import pytest_asyncio

from kettle.client import select
from kettle.pool.personal_settings import Tables
from kettle.testing.patience import PATIENCE_S
from kettle.testing.servers import selection
from kettle.testing.throwaway_pool import ThrowawayPool, throwaway_pool
from kettle_wire.leases import LeaseState

from .elastic_pools import pool_of_machines

VISITOR: Final = "schedd@home.example"
SERVICES: Final = [
    "collector",
    "negotiator",
    "schedd",
    "shadow",
    "accounting",
    "iam",
    "scaler",
    "provisioner",
]
OVER: Final = [LeaseState.GONE, LeaseState.FAILED]
POOL: Final = """\
name = "lab"
max = 2
idle = "2s"
waits = "{waits}"
[[offer]]
name = "small"
provider = "process"
cpus = 2
memory = "1 GB"
boot = "1s"
"""
pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.writes_credentials,
    pytest.mark.scenario,
    pytest.mark.embedded,
    pytest.mark.skipif(
        not selection.servers_are_ours(),
        reason="who may connect to servers of somebody else is theirs to say",
    ),
    pytest.mark.skipif(
        "KETTLE_TEST_LONG" not in os.environ, reason="it takes minutes: KETTLE_TEST_LONG=1 runs it"
    ),
]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def host(tmp_path_factory: pytest.TempPathFactory, template: Path) -> AsyncIterator[ThrowawayPool]:
    """The pool that is visited."""
    settings: Tables = {"master": {"flock_from": [VISITOR]}}
    directory = tmp_path_factory.mktemp("host")
    async with throwaway_pool(directory, cpus=2, template=template, settings=settings) as running:
        yield running


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def home(
    tmp_path_factory: pytest.TempPathFactory, template: Path, host: ThrowawayPool
) -> AsyncIterator[ThrowawayPool]:
    """A pool that has no machine of its own, and may have some made."""
    settings: Tables = {
        "master": {"daemon_list": SERVICES},
        "schedd": {"flock_to": ["there"], "flock_patience": 0.5},
        "scaler": {"min_interval": 0.3, "interval": 1.0, "renew_interval": 1.0, "reconcile_interval": 2.0},
    }
    directory = tmp_path_factory.mktemp("home")
    async with pool_of_machines(directory, template=template, settings=settings) as running:
        status, made, err = await host.kettle("flock", "pass", VISITOR)
        assert 0 == status, err
        (file := directory / "there.pass").write_text(made)
        status, _, err = await running.kettle("flock", "use", str(file), "--as", "there")
        assert 0 == status, err
        yield running
        audit = await running.log_check()
        assert audit.clean, audit.said


async def applied(home: ThrowawayPool, place: Path, waits: str) -> None:
    (file := place / "lab.toml").write_text(POOL.format(waits=waits))
    status, _, err = await home.kettle("pool", "apply", str(file))
    assert 0 == status, err


async def ran(home: ThrowawayPool, place: Path, count: int, *lines: str) -> set[str | None]:
    """In which pools jobs have run; None: at home."""
    text = "\n".join(("executable = /bin/true", "request_memory = 64", *lines, f"queue {count}\n"))
    submitted = await home.client.submit(text, cwd=place)
    async with asyncio.timeout(3 * PATIENCE_S):
        progress = await home.client.wait(select(submitted.cluster))
        assert not progress.bad()
        while len(done := await home.client.history(select(submitted.cluster))) < count:
            await asyncio.sleep(0.1)
    return {None if (pool := ad.get("LastRemotePool")) is None else str(pool) for ad in done}


async def test_what_another_pool_takes_is_no_reason_for_machines(home: ThrowawayPool, tmp_path: Path) -> None:
    """
    Jobs wait long enough to be taken elsewhere: they run there, and no machine is ordered.  One that may not go gets a machine here.
    """
    await applied(home, tmp_path, f"{PATIENCE_S:.0f}s")
    for _ in range(3):
        assert {"there"} == await ran(home, tmp_path, 4)
    pools = home.client.worker_pools
    assert [] == (await pools.leases("lab")).leases + (await pools.leases("lab", states=OVER)).leases
    await applied(home, tmp_path, "1s")
    assert {None} == await ran(home, tmp_path, 1, "+WantFlocking = false")
    async with asyncio.timeout(2 * PATIENCE_S):
        while (await pools.leases("lab")).leases:
            await asyncio.sleep(0.2)
    assert {LeaseState.GONE} == {each.state for each in (await pools.leases("lab", states=OVER)).leases}
