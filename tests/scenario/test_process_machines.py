"""Machines that are processes of an ordinary account; `test_ordinary_user` runs this as one."""

import asyncio
import os
import shlex
import sys
from pathlib import Path
from typing import Any, Final

import pytest

from kettle.client import select
from kettle.testing.commands.running import KETTLE
from kettle.testing.patience import PATIENCE_S
from kettle.testing.servers import selection
from kettle.testing.throwaway_pool import ThrowawayPool
from kettle.worker_pools.reading import read_pool
from kettle_services.provisioner.providers.processes import kill_tree, marked
from kettle_wire.leases import LeaseState

from .elastic_pools import machines

SERVICES: Final = [
    "collector", "negotiator", "schedd", "shadow", "startd", "accounting", "iam", "scaler", "provisioner"
]  # fmt: skip
POOL: Final = """\
name = "own"
max = 1
waits = 0
[[offer]]
name = "small"
provider = "process"
cpus = 1
memory = "512 MB"
boot = "1s"
"""
JOBS: Final = """\
executable = /bin/true
requirements = TARGET.KettlePool == "own"
request_memory = 128
queue 2
"""

pytestmark = [
    pytest.mark.scenario,
    pytest.mark.embedded,
    pytest.mark.skipif(
        not selection.servers_are_ours(),
        reason="who may connect to servers of somebody else is theirs to say",
    ),
    pytest.mark.skipif(os.geteuid() == 0, reason="the other elastic pools are root's already"),
]


@pytest.fixture(scope="module")
def configuration(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    # The account may have Kettle by its Python's path only, and no command of that name.
    program = tmp_path_factory.mktemp("program") / "kettle"
    program.write_text(f'#!/bin/sh\nexec {shlex.join([sys.executable, *KETTLE])} "$@"\n')
    program.chmod(0o700)
    return {
        "settings": {
            "provisioner": {"providers": {"process": {"kind": "process", "program": str(program)}}},
            "master": {"daemon_list": SERVICES},
            "scaler": {"min_interval": 0.5, "reconcile_interval": 1.0, "renew_interval": 1.0},
        }
    }


async def test_an_ordinary_account_has_machines_of_its_own(pool: ThrowawayPool, tmp_path: Path) -> None:
    """
    A machine comes, runs jobs, and is killed from outside: its lease is over as soon as its provider is asked, and nobody waits to be
    sure.
    """
    workers = pool.client.worker_pools
    await workers.apply(read_pool(POOL, "own.toml"))
    submitted = await pool.client.submit(JOBS, cwd=tmp_path)
    async with asyncio.timeout(2 * PATIENCE_S):
        progress = await pool.client.wait(select(submitted.cluster))
    assert not progress.bad()
    await workers.pause("own")
    (lease,) = (await workers.leases("own")).leases
    (mark,) = marked(f"{pool.home}/machines/")
    kill_tree(mark, None)
    async with asyncio.timeout(PATIENCE_S):
        while (await workers.leases("own")).leases:
            await asyncio.sleep(0.1)
    (over,) = (await workers.leases("own", states=[LeaseState.GONE])).leases
    assert lease.lease == over.lease
    assert set() == machines(pool)
    await workers.retire("own")
