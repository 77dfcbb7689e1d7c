"""
Priorities, factors and usage in a pool that runs: what is charged, what administrators set, and what is kept.
"""

import asyncio
import getpass
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

import pytest
import pytest_asyncio

from kettle.client import select
from kettle.client.errors import CommandRefusedError
from kettle.testing.patience import PATIENCE_S
from kettle.testing.throwaway_pool import ThrowawayPool, throwaway_pool
from kettle_wire.commands.negotiator import Priority

SETTINGS: Final[dict[str, dict[str, Any]]] = {
    "negotiator": {"charge_interval": 0.2, "priority_halflife": 20.0},
    "schedd": {"lease": 30.0},
}
LONG: Final = "executable = /bin/sleep\ntransfer_executable = false\narguments = 600\nqueue 4\n"

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def pool(tmp_path_factory: pytest.TempPathFactory, template: Path) -> AsyncIterator[ThrowawayPool]:
    directory = tmp_path_factory.mktemp("shares")
    async with throwaway_pool(directory, cpus=2, template=template, settings=SETTINGS) as running:
        yield running
    assert [] == running.left


async def standing(pool: ThrowawayPool, name: str) -> Priority:
    (found,) = (await pool.client.accountant.priorities([name])).submitters
    return found


async def test_what_runs_is_charged_and_ceilings_hold(pool: ThrowawayPool, tmp_path: Path) -> None:
    """
    With a ceiling of one core one of four jobs runs on two cores; the priority gets worse while it does; usage survives the
    negotiator, can be set to nothing, and the log agrees with the working set in the end.
    """
    me, accountant = getpass.getuser(), pool.client.accountant
    await accountant.set(me, "ceiling", 1)
    await accountant.set(me, "factor", 10)
    cluster = (await pool.client.submit(LONG, cwd=tmp_path)).cluster
    async with asyncio.timeout(PATIENCE_S):
        while (now := await standing(pool, me)).priority < 0.52:
            assert now.weight <= 1
            await asyncio.sleep(0.05)
    assert (10.0, 1.0, 1.0) == (now.factor, now.weight, now.ceiling)
    assert now.weighted_accumulated > 0
    assert now.effective == pytest.approx(now.priority * 10)
    async with asyncio.timeout(PATIENCE_S):
        while "ceiling" not in (await pool.kettle("why", f"{cluster}.3"))[1]:
            await asyncio.sleep(0.05)

    killed = pool.kill("negotiator")
    await pool.restarted("negotiator", after=killed)
    again = await standing(pool, me)
    assert (10.0, 1.0) == (again.factor, again.ceiling)
    assert again.weighted_accumulated > 0

    await accountant.set(me, "ceiling", -1)
    async with asyncio.timeout(PATIENCE_S):
        while (await standing(pool, me)).weight < 2:
            await asyncio.sleep(0.05)
    done = await accountant.reset_usage(me)
    assert (1, "negotiator") == (done.submitters, done.position.shard)

    status, out, _ = await pool.kettle("userprio", me, "--json")
    (shown,) = json.loads(out)["submitters"]
    assert (0, me, 10.0) == (status, shown["name"], shown["factor"])
    status, out, err = await pool.kettle(
        "fairshare", me, "--since", "5m", "--output", str(tmp_path / "s.svg"), "--json"
    )
    assert (0, "") == (status, err)
    shares = json.loads(out)
    (shown,) = shares["submitters"]
    assert (1.0, 1.0, 2.0) == (shown["share"], shown["part"], shown["used"])
    assert 1.0 in shares["past"]["usage"][me]
    assert "<polyline" in (tmp_path / "s.svg").read_text()
    status, _, err = await pool.kettle("userprio", "--setfactor", me, "0.5")
    assert status == 1
    assert "1 or more" in err
    with pytest.raises(CommandRefusedError, match="knows no nobody"):
        await accountant.delete("nobody")
    await pool.client.remove(select(cluster))
    async with asyncio.timeout(PATIENCE_S):
        await pool.client.wait(select(cluster))
    audit = await pool.log_check()
    assert audit.clean, audit.said
