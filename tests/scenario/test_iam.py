"""A pool with an iam: it records what administrators do and who is refused, and no daemon needs it."""

import asyncio
import json
import os
import signal
import time
from pathlib import Path
from typing import Any, Final

import pytest

from kettle.client import CommandRefusedError, select
from kettle.client.connections.pool_file import login_name
from kettle.testing.chaos import bus_server
from kettle.testing.patience import PATIENCE_S
from kettle.testing.throwaway_pool import ThrowawayPool

from .persons import somebody

SERVICES: Final = ["collector", "negotiator", "schedd", "shadow", "startd", "accounting"]
DESCRIPTION: Final = "executable = /bin/true\nrequirements = false\nqueue 2\n"


@pytest.fixture(scope="module")
def configuration() -> dict[str, Any]:
    own = {"master": {"daemon_list": [*SERVICES, "iam"]}, "schedd": {"queue_super_users": [login_name()]}}
    return {"cpus": 1, "settings": own}


async def said(pool: ThrowawayPool, *words: str) -> str:
    status, out, err = await pool.kettle(*words)
    assert 0 == status, (words, out, err)
    return out


async def recorded(pool: ThrowawayPool, *words: str, number: int, since: float = 0.0) -> list[dict[str, Any]]:
    """What `kettle audit` says of the time since then, as soon as it has so many entries."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            status, out, _ = await pool.kettle("audit", "--json", *words)  # iam may be away
            found = [each for line in out.splitlines() if (each := json.loads(line))["at"] >= since]
            if status == 0 and len(found) >= number:
                return found
            await asyncio.sleep(0.1)


async def test_what_administrators_do_is_recorded_wherever_they_do_it(
    pool: ThrowawayPool, another: str, tmp_path: Path
) -> None:
    """
    Of every service: who, what, where and with which words; also what was done while iam was away and its service was killed
    before it came back; what is done to one's own jobs is nobody's business.
    """
    me, host = login_name(), str((await pool.client.ads("Machine"))[0]["Machine"])
    began = time.time()  # to have this pool as it is wanted was a deed, too
    async with somebody(pool, another, tmp_path) as bob:
        his = (await bob.submit(DESCRIPTION, cwd=tmp_path)).cluster
        mine = (await pool.client.submit(DESCRIPTION, cwd=tmp_path)).cluster
        await said(pool, "hold", str(his), "--reason", "looks wrong")
        await said(pool, "hold", str(mine))
        denied = await bob.release(select(mine))
        assert {"denied"} == {each.outcome for each in denied.outcomes}
        await said(pool, "userprio", "--setfactor", another, "7")
        await said(pool, "reconfig", "--daemon", "schedd")
        await said(pool, "ban", "user:eve", "--reason", "mines coins")

        killed = pool.kill("iam", signal.SIGSTOP)
        await said(pool, "drain", host, "--reason", "smoke")
        await said(pool, "drain", "--cancel", host)
        startd = pool.kill("startd", signal.SIGKILL)
        os.kill(killed, signal.SIGKILL)
        await pool.restarted("startd", after=startd)
        await pool.restarted("iam", after=killed)

        acts = await recorded(pool, "--what", "administrator", number=5, since=began)
        schedd = str((await pool.client.ads("Scheduler"))[0]["Name"])
        assert [
            ("schedd.act", schedd, f"hold: 2 jobs of {another}"),
            ("negotiator.set_principal", "negotiator", f'name="{another}", setting="factor", value=7.0'),
            ("master.control", host, 'action="reconfig", daemons=["schedd"]'),
            ("startd.drain", host, 'reason="smoke"'),
            ("startd.cancel_drain", host, "as usual"),
        ] == [
            (what, act["whom"], words)
            for act in acts
            for what, _, words in [act["sentence"].partition(f" at {act['whom']}: ")]
        ]
        assert {me} == {act["who"] for act in acts}
        assert [act["at"] for act in acts] == sorted(act["at"] for act in acts)
        (ban,) = await recorded(pool, "--what", "ban", number=1, since=began)
        assert (me, "user:eve") == (ban["who"], ban["whom"])
        (refused,) = await recorded(pool, "--who", another, "--what", "access.denied", number=1, since=began)
        assert refused["alarm"]
        assert f"schedd.act at {schedd}: may not release: 2 jobs of {me}" == refused["sentence"]
        await said(pool, "rm", str(mine))


async def test_who_is_refused_by_a_service_is_in_the_record(pool: ThrowawayPool, tmp_path: Path) -> None:
    """A person who looks into the job of another, and one who changes its pace."""
    mine = (await pool.client.submit(DESCRIPTION, cwd=tmp_path)).cluster
    async with somebody(pool, "carol", tmp_path) as carol:
        with pytest.raises(CommandRefusedError):
            await carol.edit(mine, {"JobMaterializeLimit": 3})
        (refused,) = await recorded(pool, "--who", "carol", number=1)
        assert "access.denied" == refused["what"]
        assert f"carol may not edit cluster {mine}, which is of " in refused["sentence"]
    await said(pool, "rm", str(mine))


async def connections(pool: ThrowawayPool) -> dict[int, str]:
    """
    The connections of daemons, by the number that the server gave each; those of commands are short, and who has only connected has
    no name yet.
    """
    held = (await bus_server.holdings(pool.home, pool.state.nats_url)).open
    return {number: name for number, name in held.items() if name.partition(" ")[0] in {*SERVICES, "master"}}


async def test_no_daemon_needs_an_iam(pool: ThrowawayPool, tmp_path: Path) -> None:
    """
    While it is stopped and after it was killed no connection of a daemon ends, daemons that are restarted are let in, and
    jobs run.
    """
    before = await connections(pool)
    assert {*SERVICES, "master"} == {name.split()[0] for name in before.values()}
    stopped = pool.kill("iam", signal.SIGSTOP)
    try:
        schedd = pool.kill("schedd", signal.SIGKILL)
        startd = pool.kill("startd", signal.SIGKILL)
        await pool.restarted("schedd", after=schedd)
        await pool.restarted("startd", after=startd)
        done = await pool.client.submit(
            "executable = /bin/true\ntransfer_executable = false\nqueue\n", cwd=tmp_path
        )
        async with asyncio.timeout(PATIENCE_S):
            await pool.client.wait(select(done.cluster))
        assert pool.pid("iam") == stopped
    finally:
        os.kill(stopped, signal.SIGKILL)
    await pool.restarted("iam", after=stopped)
    after = await connections(pool)
    lost = {name.split()[0] for number, name in before.items() if number not in after}
    assert {"schedd", "startd"} == lost
    assert {*before.values()} == {*after.values()}
