"""
Machines of leases, with a scaler and a provisioner that are killed at every step between the wish and the proof.
"""

import asyncio
from pathlib import Path
from typing import Any, Final

import pytest

from kettle.client import ClientError
from kettle.testing.patience import PATIENCE_S
from kettle.testing.servers import selection
from kettle.testing.throwaway_pool import ThrowawayPool
from kettle_wire.commands.worker_pools import LeaseShown
from kettle_wire.leases import LeaseState

from .elastic_pools import machines, pool_of_machines

pytestmark = [
    pytest.mark.scenario,
    pytest.mark.embedded,
    pytest.mark.skipif(
        not selection.servers_are_ours(),
        reason="who may connect to servers of somebody else is theirs to say",
    ),
]

STEPS: Final = {
    "scaler": ("lease.submitting", "lease.answered", "lease.removing"),
    "provisioner": ("machine.ordered", "machine.made", "machine.removed"),
}
POOL: Final = """\
name = "crowd"
max = 8
min = {least}
life = "1h"
[[offer]]
name = "small"
provider = "process"
cpus = 1
memory = "512 MB"
boot = "1s"
"""
QUICK: Final[dict[str, Any]] = {
    "scaler": {
        "answer": 3.0,
        "reconcile_interval": 1.0,
        "doubt_interval": 0.5,
        "removal_interval": 0.5,
        "renew_interval": 2.0,
    },
    "provisioner": {"call_deadline": 2.0, "providers": {"process": {"kind": "process", "grace": 1.0}}},
}
_LOOK_S: Final = 0.5


def faulty(remembered: Path) -> dict[str, Any]:
    """Settings with which each step is the last one of a process, once."""
    environment = {
        role: {
            "KETTLE_FAULT_POINTS": ",".join(f"{step}=kill" for step in steps),
            "KETTLE_FAULT_ONCE": str(remembered),
        }
        for role, steps in STEPS.items()
    }
    daemons = ["collector", "negotiator", "iam", "scaler", "provisioner"]
    return {"master": {"daemon_list": daemons, "environment": environment}, **QUICK}


async def leases(pool: ThrowawayPool) -> list[LeaseShown]:
    """Those that are not over, as soon as the scaler is there."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            try:
                return (await pool.client.worker_pools.leases()).leases
            except ClientError:
                await asyncio.sleep(_LOOK_S)


async def applied(pool: ThrowawayPool, directory: Path, *, least: int) -> None:
    """A pool that wants so many machines, whatever waits; who is killed meanwhile is asked again."""
    file = directory / "crowd.toml"
    file.write_text(POOL.format(least=least))
    async with asyncio.timeout(PATIENCE_S):
        while (await pool.kettle("pool", "apply", str(file))).status != 0:
            await asyncio.sleep(_LOOK_S)


async def given_up(pool: ThrowawayPool, lease: str) -> None:
    """
    A lease is drained by force; a scaler that is killed meanwhile says nothing, and the lease may be over when it is asked again.
    """
    async with asyncio.timeout(PATIENCE_S):
        while (await pool.kettle("pool", "drain", "--lease", lease, "--force")).status != 0:
            if lease not in {each.lease for each in await leases(pool)}:
                return
            await asyncio.sleep(_LOOK_S)


async def test_machines_are_leases_whoever_dies_in_between(tmp_path: Path, template: Path) -> None:
    """
    Killed once in each of the six steps, scaler and provisioner come to one machine for each lease that is wanted, and to none when
    none is wanted; nothing is asked for twice.
    """
    remembered = tmp_path / "faults"
    remembered.mkdir()
    async with pool_of_machines(tmp_path, settings=faulty(remembered), template=template) as pool:
        await applied(pool, tmp_path, least=3)
        async with asyncio.timeout(2 * PATIENCE_S):
            while True:
                held = await leases(pool)
                ready = sorted(each.lease for each in held if each.state is LeaseState.READY)
                names = sorted(Path(mark).name.rpartition(".")[0] for mark in machines(pool))
                if ready == names and len(ready) == len(held) >= 3:
                    break
                await asyncio.sleep(_LOOK_S)

        await applied(pool, tmp_path, least=0)
        for lease in ready:
            await given_up(pool, lease)
        async with asyncio.timeout(2 * PATIENCE_S):
            while await leases(pool) or machines(pool):
                await asyncio.sleep(_LOOK_S)
        met = {path.name for path in remembered.iterdir()}
        assert {step for steps in STEPS.values() for step in steps} <= met
        audit = await pool.log_check()
        assert audit.clean, audit.said
