"""
A static pool whose machines sleep while nothing waits for them: a job wakes one of them, runs, and it sleeps again; if services are killed
meanwhile, no machine is put to sleep or woken twice. The machines have masters of their own, as on other hosts; one is switched off
when it sleeps, the other one is frozen.
"""

import asyncio
import json
import os
import signal
import sys
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

import pytest
import pytest_asyncio

from kettle import pool as pools
from kettle.client import JobId, select
from kettle.testing.patience import PATIENCE_S
from kettle.testing.servers import selection
from kettle.testing.throwaway_pool import ThrowawayPool, throwaway_pool

from .waiting import explained

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
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

DESKS: Final = ("desk1", "desk2")
STEPS: Final = {
    "scaler": ("host.fencing", "host.switching", "host.switched"),
    "provisioner": ("machine.switched", "machine.was_switched"),
}
SWITCH: Final = '''
"""sleep NAME | wake NAME: what a site does to its machines; one is switched off, the other one is frozen."""
import os, signal, sys, time
from pathlib import Path
from kettle import pool as pools

to, name = sys.argv[1:]
place = Path(__file__).parent
home, asleep = place / name / "home", place / f"{name}.asleep"
broken = (place / f"{name}.broken").exists()
how = "refused" if broken else "twice" if asleep.exists() == (to == "sleep") else "once"
with (place / "told").open("a") as told:
    told.write(f"{to} {name} {how}\\n")
if broken:
    sys.exit("no route to " + name)
if name == "desk1":
    pools.down(home) if to == "sleep" else pools.up(home)
else:
    frozen = signal.SIGSTOP if to == "sleep" else signal.SIGCONT
    state = pools.state(home)
    for pid in (state.pid, *(each.pid for each in state.daemons if each.pid)):
        os.kill(pid, frozen)
asleep.touch() if to == "sleep" else asleep.unlink()
'''
POOL: Final = """\
name = "desks"
kind = "static"
hibernate = "S3"
idle = "3s"
waits = 0
"""
OFFER: Final = """\
[[offer]]
name = "{name}"
provider = "lab"
cpus = 2
memory = "1 GB"
boot = "60s"
machines = [{machines}]
"""
ONE: Final = '{ name = "desk1" }'
OTHER: Final = '{ name = "desk2", mac = "52-54-00-12-34-56" }'
TOGETHER: Final = POOL + OFFER.format(name="desk", machines=f"{ONE}, {OTHER}")
APART: Final = POOL + OFFER.format(name="desk", machines=ONE) + OFFER.format(name="other", machines=OTHER)
JOB: Final = """\
executable = /bin/true
request_memory = 64
queue {count}
"""
OF_A_MACHINE: Final = """
[startd]
num_cpus = 2
memory = 1024
update_interval = 1.0
polling_interval = 0.5
report_repeat = 0.5
container_runtimes = []
discover_gpus = false
can_hibernate = true
"""
SERVICES: Final = [
    "collector", "negotiator", "schedd", "shadow", "accounting", "iam", "gateway", "scaler", "provisioner"
]  # fmt: skip


def settings(place: Path) -> dict[str, Any]:
    """With which each step is the last one of a process, once."""
    remembered = place / "faults"
    remembered.mkdir()
    environment = {
        role: {
            "KETTLE_FAULT_POINTS": ",".join(f"{step}=kill" for step in steps),
            "KETTLE_FAULT_ONCE": str(remembered),
        }
        for role, steps in STEPS.items()
    }
    switch = [sys.executable, str(place / "switch.py")]
    power = {"kind": "power", "hibernate": [*switch, "sleep", "{name}"], "wake": [*switch, "wake", "{name}"]}
    return {
        "master": {"daemon_list": SERVICES, "environment": environment},
        "scaler": {
            "min_interval": 0.5,
            "interval": 2.0,
            "sleep_deadline": 20.0,
            "wake_pause": 1.0,
            "shortest_boot": 40.0,
        },
        "provisioner": {"providers": {"lab": power}},
        "telemetry": {"metrics": True},
    }


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("desks")
    (made / "switch.py").write_text(SWITCH)
    return made


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def pool(place: Path, template: Path) -> AsyncIterator[ThrowawayPool]:
    """A pool without machines of its own, and two that have joined."""
    async with throwaway_pool(place, settings=settings(place), template=template) as made:
        try:
            for name in DESKS:
                await joined(made, place / name / "home", name)
            yield made
        finally:
            for name in DESKS:
                await ended(place / name / "home")


async def joined(pool: ThrowawayPool, home: Path, name: str) -> None:
    home.parent.mkdir(mode=0o700)
    secret = home.parent / "token"
    await said(pool, "worker", "token", "create", "--lifetime", "10m", "--into", str(secret))
    url = f"http://127.0.0.1:{(pool.home / 'iam' / 'port').read_text()}"
    words = ("--token-file", str(secret), "--home", str(home), "--name", name)
    await said(pool, "worker", "join", url, *words)
    file = home / "kettle.toml"
    file.write_text(file.read_text().replace("\n[startd]\n", OF_A_MACHINE, 1))
    await asyncio.to_thread(pools.up, home, environ=pool.environ)


async def ended(home: Path) -> None:
    """What is frozen goes on first, to be able to end."""
    state = await asyncio.to_thread(pools.state, home)
    if state is None:
        return
    for pid in (state.pid, *(each.pid for each in state.daemons if each.pid)):
        os.kill(pid, signal.SIGCONT)
    await asyncio.to_thread(pools.down, home)


async def said(pool: ThrowawayPool, *words: str, status: int = 0) -> str:
    code, out, err = await pool.kettle(*words)
    assert status == code, out + err
    return out + err


async def hosts(pool: ThrowawayPool) -> dict[str, dict[str, Any]]:
    """The machines, as soon as there is a scaler to tell."""
    async with asyncio.timeout(PATIENCE_S):
        while (told := await pool.kettle("pool", "show", "desks", "--json")).status != 0:
            await asyncio.sleep(0.2)
    return {each["machine"]: each for each in json.loads(told.out)["hosts"]}


async def until(pool: ThrowawayPool, **states: str) -> dict[str, dict[str, Any]]:
    """Wait until machines are so."""
    async with asyncio.timeout(3 * PATIENCE_S):
        while True:
            shown = await hosts(pool)
            if states == {name: shown[name]["state"] for name in states if name in shown}:
                return shown
            await asyncio.sleep(0.2)


async def applied(pool: ThrowawayPool, place: Path, text: str) -> None:
    (file := place / "desks.toml").write_text(text)
    async with asyncio.timeout(PATIENCE_S):
        while (await pool.kettle("pool", "apply", str(file))).status != 0:
            await asyncio.sleep(0.2)


def told(place: Path) -> list[str]:
    return (place / "told").read_text().splitlines()


async def test_machines_sleep_and_a_job_wakes_one_if_services_die(pool: ThrowawayPool, place: Path) -> None:
    """
    Both sleep, seen by people and programs; a job that waits wakes exactly one, which runs it and sleeps again.  Each step is the last
    one of a scaler or a provisioner, once; no machine is switched twice.
    """
    assert "desks" not in await said(pool, "pool", "list")
    await applied(pool, place, TOGETHER)
    assert "its providers could put its machines to sleep and wake them" in await said(
        pool, "pool", "check", str(place / "desks.toml")
    )
    await until(pool, desk1="asleep", desk2="asleep")
    async with asyncio.timeout(PATIENCE_S):
        while 2 != len(shown := await pool.client.ads("Machine", constraint="Offline =?= true")):
            await asyncio.sleep(0.2)
    assert {("S3", "asleep")} == {(each["HibernationState"], each["KettlePower"]) for each in shown}
    before = Counter(told(place))
    submitted = await pool.client.submit(JOB.format(count=1), cwd=place)
    await explained(pool, f"{submitted.cluster}.0", "was asleep and is being woken for it since")
    async with asyncio.timeout(3 * PATIENCE_S):
        progress = await pool.client.wait(select(JobId(submitted.cluster, 0)))
    assert not progress.bad()
    woken = [line for line in (Counter(told(place)) - before).elements() if line.startswith("wake")]
    assert 1 == len(woken)
    await until(pool, desk1="asleep", desk2="asleep")
    met = {path.name for path in (place / "faults").iterdir()}
    assert {step for steps in STEPS.values() for step in steps} == met
    assert {"once"} == {line.split()[2] for line in told(place)}
    audit = await pool.log_check()
    assert audit.clean, audit.said
    text = await said(pool, "pool", "show", "desks")
    assert "2 asleep" in text
    assert "goes to sleep (S3)" in text


async def test_a_machine_that_does_not_wake_is_given_up_and_mended(pool: ThrowawayPool, place: Path) -> None:
    """
    It fails three times; then it is broken, with its reason, and the job that waits for it is told so.  It is mended, somebody resumes the
    pool, and the job runs there.
    """
    await until(pool, desk1="asleep", desk2="asleep")
    await applied(pool, place, APART)
    (place / "desk2.broken").touch()
    text = JOB.format(count=1).replace("queue", 'requirements = TARGET.Machine == "desk2"\nqueue')
    submitted = await pool.client.submit(text, cwd=place)
    shown = await until(pool, desk1="asleep", desk2="broken")
    assert "no route to desk2" in shown["desk2"]["words"]
    await explained(
        pool, f"{submitted.cluster}.0", "none of its machines is asleep any more that could be woken"
    )
    assert 3 == told(place).count("wake desk2 refused")
    (place / "desk2.broken").unlink()
    await said(pool, "pool", "resume", "desks")
    async with asyncio.timeout(3 * PATIENCE_S):
        progress = await pool.client.wait(select(submitted.cluster))
    assert not progress.bad()
    await until(pool, desk1="asleep", desk2="asleep")
    assert "twice" not in " ".join(told(place))


async def test_a_pool_that_stops_hibernating_lets_its_machines_be(pool: ThrowawayPool, place: Path) -> None:
    """They are forgotten, and nothing is done about one that is switched on."""
    await until(pool, desk1="asleep", desk2="asleep")
    file = place / "desks.toml"
    file.write_text(file.read_text().replace('hibernate = "S3"\n', ""))
    assert "hibernate: S3 -> NONE" in await said(pool, "pool", "apply", str(file))
    async with asyncio.timeout(PATIENCE_S):
        while await pool.client.ads("Machine", constraint="Offline =?= true") or await hosts(pool):
            await asyncio.sleep(0.2)
