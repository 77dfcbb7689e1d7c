"""
A pool without machines of its own gets jobs: machines come as processes of this host, and go when they are idle, whatever happens
to those who decide about them.
"""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

import pytest
import pytest_asyncio

from kettle.client import JobId, select
from kettle.testing.patience import PATIENCE_S
from kettle.testing.servers import selection
from kettle.testing.throwaway_pool import ThrowawayPool
from kettle_wire.commands.worker_pools import LeaseShown
from kettle_wire.events import decode, tag_of
from kettle_wire.leases import LeaseState

from .elastic_pools import machines, pool_of_machines

SERVICES: Final = [
    "collector", "negotiator", "schedd", "shadow", "accounting", "iam", "scaler", "provisioner"
]  # fmt: skip
SETTINGS: Final[dict[str, dict[str, Any]]] = {
    "master": {"daemon_list": SERVICES},
    "scaler": {
        "min_interval": 0.5,
        "interval": 2.0,
        "renew_interval": 1.0,
        "answer": 10.0,
        "doubt_interval": 1.0,
        "reconcile_interval": 5.0,
    },
    "provisioner": {"call_deadline": 6.0},
}
POOL: Final = """\
name = "lab"
max = 3
idle = "2s"
waits = 0
[[offer]]
name = "small"
provider = "process"
cpus = 2
memory = "1 GB"
price = "0.01 EUR"
boot = "1s"
[[offer]]
name = "large"
provider = "process"
cpus = 8
memory = "4 GB"
price = "0.20 EUR"
boot = "1s"
"""
JOBS: Final = """\
executable = /bin/true
request_memory = 128
queue 6
request_cpus = 6
queue 1
request_cpus = 64
queue 1
"""
"""Procs 0 to 5 fit on small machines, 6 on a large one, and 7 on none."""


pytestmark = [
    pytest.mark.scenario,
    pytest.mark.embedded,
    pytest.mark.skipif(
        not selection.servers_are_ours(),
        reason="who may connect to servers of somebody else is theirs to say",
    ),
]


@pytest_asyncio.fixture
async def pool(tmp_path: Path, template: Path) -> AsyncIterator[ThrowawayPool]:
    async with pool_of_machines(tmp_path, settings=SETTINGS, template=template) as running:
        yield running


async def said(pool: ThrowawayPool, *words: str, status: int = 0) -> str:
    """What a command prints, or complains of."""
    ended, out, err = await pool.kettle("pool", *words)
    assert status == ended, (words, out, err)
    return out + err


async def planned(pool: ThrowawayPool, job: str) -> dict[str, Any]:
    """What the plan says of jobs like one, as soon as there is one that has looked at them."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            status, out, _ = await pool.kettle("pool", "explain", "lab", "--json")
            waiting: list[dict[str, Any]] = json.loads(out)["plan"]["waiting"] if status == 0 else []
            for each in waiting:
                if each["example"] == job:
                    return each
            await asyncio.sleep(0.1)


async def killed(pool: ThrowawayPool, service: str) -> None:
    """A service is killed, and starts again."""
    await pool.restarted(service, after=pool.kill(service))


async def test_a_pool_grows_for_what_waits_and_shrinks_to_nothing(
    pool: ThrowawayPool, tmp_path: Path
) -> None:
    """
    Small jobs share machines, a large one gets one of its size, one that no machine could hold is told why; the scaler and the
    provisioner are killed meanwhile; in the end no machine is left, which the record and the process table say alike.
    """
    (file := tmp_path / "lab.toml").write_text(POOL)
    assert "its providers could make such machines" in await said(pool, "check", str(file))
    assert "the pool lab is new" in await said(pool, "apply", str(file))
    submitted = await pool.client.submit(JOBS, cwd=tmp_path)
    cluster = submitted.cluster
    impossible = await planned(pool, f"{cluster}.7")
    assert {"clause"} == {each["obstacle"] for each in impossible["obstacles"]}
    await killed(pool, "scaler")
    await killed(pool, "provisioner")
    possible = [JobId(cluster, proc) for proc in range(7)]
    async with asyncio.timeout(2 * PATIENCE_S):
        progress = await pool.client.wait(select(*possible))
    assert not progress.bad()
    status, why, err = await pool.kettle("why", f"{cluster}.7")
    assert 0 == status, err
    assert "Pool lab: no machine of its offers could run it" in why
    wished = await over(pool)
    leases = [each for each in wished if each.accepted]  # the others were not asked for any more
    assert {LeaseState.GONE} == {each.state for each in leases}
    assert {"small", "large"} == {each.offer for each in wished}
    assert "large" in {each.offer for each in leases}  # which may have had the small jobs as well
    assert set() == machines(pool)
    history = await pool.client.worker_pools.timeline(leases[0].lease)
    told = [tag_of(decode(each.data)) for each in history.moments]
    assert ("lease.requested/1", "lease.gone/1") == (told[0], told[-1])
    report = json.loads(await said(pool, "report", "lab", "--json"))["figures"]
    assert len(leases) == report["machines"]
    assert 0 < report["used"] < report["provided"]
    audit = await pool.log_check()
    assert audit.clean, audit.said


async def over(pool: ThrowawayPool) -> list[LeaseShown]:
    """The leases, as soon as all of them are over."""
    async with asyncio.timeout(PATIENCE_S):
        while (await pool.client.worker_pools.leases()).leases:
            await asyncio.sleep(0.1)
    return (await pool.client.worker_pools.leases(states=[LeaseState.GONE, LeaseState.FAILED])).leases
