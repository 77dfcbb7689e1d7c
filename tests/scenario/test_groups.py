"""
Accounting groups and concurrency limits in a pool that runs: quotas and limits hold, also when the negotiator is another.
"""

import asyncio
import getpass
import json
from pathlib import Path
from typing import Any, Final

import pytest

from kettle.client import select
from kettle.client.errors import CommandRefusedError
from kettle.testing.patience import PATIENCE_S
from kettle.testing.throwaway_pool import ThrowawayPool
from kettle_wire.commands.negotiator import GroupStanding

from .waiting import explained

ME: Final = getpass.getuser()
SETTINGS: Final[dict[str, dict[str, Any]]] = {
    "negotiator": {
        "charge_interval": 0.2,
        "groups": {"physics": {"quota": 2}, "physics.higgs": {"quota": 1}, "chem": {"quota": 1}},
        "concurrency_limits": {"Matlab": 1},
    },
    "schedd": {
        "accounting_groups": {"physics": [ME], "physics.higgs": ["*"], "chem": ["eve"]},
    },
}
SLEEP: Final = "executable = /bin/sleep\ntransfer_executable = false\narguments = 600\n"


@pytest.fixture(scope="module")
def configuration() -> dict[str, Any]:
    return {"cpus": 4, "settings": SETTINGS}


async def groups(pool: ThrowawayPool) -> dict[str, GroupStanding]:
    return {group.name: group for group in (await pool.client.accountant.priorities([])).groups}


async def running(pool: ThrowawayPool, cluster: int) -> int:
    ads = await pool.client.jobs(select(cluster), projection=["JobStatus"])
    return sum(ad["JobStatus"] == 2 for ad in ads)


async def test_quotas_and_limits_hold_and_say_so(pool: ThrowawayPool, tmp_path: Path) -> None:
    """
    Of four cores, physics has 2 with higgs, which has 1 of these until it wants none; a job for whose limit there is only one runs once, before and after the
    negotiator was killed; `why` names quota and limit; groups that are not mine are refused, and so is somebody else's name.
    """
    for line, says in (
        ("accounting_group = chem", "not for"),
        ("accounting_group = maths", "no accounting group maths"),
        ("accounting_group = physics\naccounting_group_user = eve", "cannot be charged to eve"),
        ('+AccountingGroup = "physics.eve"', "does not end with"),
    ):
        with pytest.raises(CommandRefusedError, match=says):
            await pool.client.submit(f"{SLEEP}{line}\nqueue\n", cwd=tmp_path)

    higgs = await pool.client.submit(f"{SLEEP}accounting_group = physics.higgs\nqueue 3\n", cwd=tmp_path)
    async with asyncio.timeout(PATIENCE_S):
        while 1 != await running(pool, higgs.cluster):
            await asyncio.sleep(0.05)
    physics = await pool.client.submit(f"{SLEEP}accounting_group = physics\nqueue 3\n", cwd=tmp_path)
    licensed = await pool.client.submit(f"{SLEEP}concurrency_limits = matlab\nqueue 3\n", cwd=tmp_path)
    clusters = [physics.cluster, higgs.cluster, licensed.cluster]

    async def so_many_run(*jobs: int) -> None:
        seen: list[int] = []
        try:
            async with asyncio.timeout(PATIENCE_S):
                while list(jobs) != (seen := [await running(pool, cluster) for cluster in clusters]):
                    await asyncio.sleep(0.05)
        except TimeoutError:
            pytest.fail(f"of physics, higgs and licensed {seen} jobs run, and not {list(jobs)}")

    await so_many_run(1, 1, 1)
    await explained(pool, f"{physics.cluster}.2", "quota")
    await explained(pool, f"{licensed.cluster}.2", "concurrency limit is reached: matlab")
    (ad,) = await pool.client.jobs(
        select(f"{higgs.cluster}.0"), projection=["AccountingGroup", "AcctGroupUser"]
    )
    assert (f"physics.higgs.{ME}", ME) == (ad["AccountingGroup"], ad["AcctGroupUser"])

    killed = pool.kill("negotiator")
    await pool.restarted("negotiator", after=killed)
    await pool.client.remove(select(higgs.cluster))  # what it does not use is for the group above
    await so_many_run(2, 0, 1)
    await explained(pool, f"{licensed.cluster}.2", "concurrency limit is reached: matlab")
    assert {"physics.higgs", "chem"} < set(await groups(pool))
    await pool.client.remove(select(f"{licensed.cluster}.0"))  # its licence goes to the next
    await so_many_run(2, 0, 1)

    status, out, _ = await pool.kettle("userprio", "--json")
    shown = json.loads(out)
    names = {one["name"]: one.get("group", "") for one in shown["submitters"]}
    assert (0, "physics") == (status, names[f"physics.{ME}"])
    assert {"<none>", "physics", "physics.higgs", "chem"} == {group["name"] for group in shown["groups"]}
    (group,) = (await pool.client.accountant.priorities(["<physics>"])).submitters
    assert group.weighted_accumulated > 0
    await pool.client.remove(select(*clusters))
    audit = await pool.log_check()
    assert audit.clean, audit.said
