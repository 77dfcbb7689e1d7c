"""
The program of a machine of a lease, as providers start it, on a pool whose scaler is the test: it joins, examines itself, takes
jobs, and ends, no matter who says so and what has died.
"""

import asyncio
import json
import os
import secrets
import signal
import sys
import time
from asyncio.subprocess import DEVNULL, Process
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Final

import pytest
import pytest_asyncio
from msgspec.structs import replace

from kettle import pool as pools
from kettle.bus.nats import NatsBus
from kettle.bus.ports import RefusedError, Served
from kettle.client import select
from kettle.pool import processes
from kettle.testing.commands.running import KETTLE
from kettle.testing.patience import PATIENCE_S
from kettle.testing.servers import selection
from kettle.testing.throwaway_pool import ThrowawayPool
from kettle_wire.ads import Ad
from kettle_wire.commands.scaler import RENEW, Phase, Renew, Renewed
from kettle_wire.commands.startd import DRAIN, Drain
from kettle_wire.identity import Identity, daemon
from kettle_wire.subjects import Subjects

pytestmark = [
    pytest.mark.scenario,
    pytest.mark.embedded,
    pytest.mark.skipif(
        not selection.servers_are_ours(),
        reason="who may connect to servers of somebody else is theirs to say",
    ),
]

SERVICES: Final = ["collector", "negotiator", "schedd", "shadow", "startd", "accounting", "iam", "scaler"]
STARTD: Final[dict[str, Any]] = {
    "num_cpus": 2,
    "update_interval": 1.0,
    "report_repeat": 0.3,
    "polling_interval": 0.2,
    "container_runtimes": [],
    "mount_under_scratch": [],
    "discover_gpus": False,
}
UNFIT: Final = 3
KILLED: Final = 4


@pytest.fixture(scope="module")
def configuration() -> dict[str, Any]:
    return {"settings": {"master": {"daemon_list": SERVICES}, "schedd": {"shortest_job_lease": 1.0}}}


class Scaler:
    """Answers machines as the test wants."""

    def __init__(self, bus: NatsBus) -> None:
        self.bus = bus
        self.answer = Renewed(life=3600.0, again=0.2, now=0.0)
        """With the time of day at which it is given."""
        self.deaf = False
        """It refuses whatever it is asked."""
        self._said: dict[str, list[Renew]] = {}
        self._heard = asyncio.Condition()

    async def renew(self, request: Renew, caller: Identity) -> Renewed:
        async with self._heard:
            self._said.setdefault(caller.name, []).append(request)
            self._heard.notify_all()
        if self.deaf:
            raise RefusedError("not_found", "there is no such lease")
        return replace(self.answer, now=time.time())

    async def heard(self, lease: str, what: Callable[[Renew], bool]) -> Renew:
        """The first that a machine has said, or says yet, of which this holds."""
        async with self._heard, asyncio.timeout(PATIENCE_S):
            while True:
                for said in self._said.get(lease, ()):
                    if what(said):
                        return said
                await self._heard.wait()

    async def told(self, lease: str, answer: Renewed) -> None:
        """Answer so from now on, and wait until a machine has taken it in: it asks again when it has."""
        self.answer, before = answer, len(self._said[lease])
        async with self._heard, asyncio.timeout(PATIENCE_S):
            await self._heard.wait_for(lambda: len(self._said[lease]) >= before + 2)

    def phases(self, lease: str) -> list[Phase]:
        """The phases of a machine, each once, in the order in which it said them."""
        return list(dict.fromkeys(said.phase for said in self._said[lease]))


@pytest_asyncio.fixture
async def scaler(pool: ThrowawayPool) -> AsyncIterator[Scaler]:
    """In place of the pool's own, which is switched off meanwhile."""
    await switched(pool, "off")
    async with NatsBus.connect(
        pool.state.nats_url,
        subjects=Subjects(pool.client.pool.pool),
        identity=daemon("scaler"),
        credentials=str(pool.home / "credentials" / "scaler.creds"),
        patience=PATIENCE_S,
    ) as bus:
        made = Scaler(bus)
        await bus.serve("scaler", "scaler", [Served(RENEW, made.renew)], version="1.0.0")
        yield made
    await switched(pool, "on")


async def switched(pool: ThrowawayPool, how: str) -> None:
    said = await pool.kettle(how, "scaler")
    assert 0 == said.status, said


class Leased:
    """One machine."""

    def __init__(self, name: str, place: Path, process: Process) -> None:
        self.name = name
        self.home = place / "home"
        self.bootstrap = place / "bootstrap.json"
        self.process = process

    async def ended(self) -> int:
        """Its exit status, when nothing of it is left."""
        async with asyncio.timeout(PATIENCE_S):
            status = await self.process.wait()
        assert [] == self.left()
        return status

    def left(self) -> list[str]:
        """What still runs of it, and what it could show to the bus."""
        found = pools.Home(self.home.resolve())
        running = processes.of_pool(found.pool_id(), found.execute) if found.pool_id() else []
        return [each.command for each in running] + [str(path) for path in found.credentials.glob("*.creds")]

    def tells(self, secret: str) -> list[str]:
        """Processes of it that show something in their command line or environment, which others may read."""
        home = pools.Home(self.home.resolve())
        pids = [self.process.pid, *self.agents()]
        pids += [each.pid for each in processes.of_pool(home.pool_id(), home.execute)]
        places = [Path(f"/proc/{pid}/{what}") for pid in pids for what in ("cmdline", "environ")]
        return [str(place) for place in places if secret.encode() in shown(place)]

    def agents(self) -> list[int]:
        """The process id of the agent, the child of the guard, as soon as there is one."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        return [int(pid) for pid in children.read_text().split()]

    async def signal_agent(self, number: signal.Signals) -> None:
        """Send it a signal, once it is there."""
        async with asyncio.timeout(PATIENCE_S):
            while not (agents := self.agents()):
                await asyncio.sleep(0.02)
        os.kill(agents[0], number)


def shown(place: Path) -> bytes:
    """What a file of a process says; nothing if the process has ended."""
    try:
        return place.read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return b""


@asynccontextmanager
async def leased(
    pool: ThrowawayPool, place: Path, *, startd: dict[str, Any] | None = None, **told: Any
) -> AsyncGenerator[Leased]:
    """A machine of a lease of its own, with what it is told besides; it is gone at the end."""
    name = f"p-{secrets.token_hex(4)}-1"
    (own := place / name).mkdir(mode=0o700)
    said = await pool.kettle("worker", "token", "create", "--json")
    made = json.loads(said.out)
    bootstrap: dict[str, Any] = {
        "url": made["url"],
        "token": made["token"],
        "lease": name,
        "deployment": "test",
        "pool": "p",
        "life": 3600.0,
        "hurry": PATIENCE_S,
        "settings": {**STARTD, **(startd or {})},
        **told,
    }
    (own / "bootstrap.json").touch(mode=0o600)
    (own / "bootstrap.json").write_text(json.dumps(bootstrap))
    words = ["worker", "run", "--bootstrap", str(own / "bootstrap.json"), "--home", str(own / "home")]
    with (own / "console").open("wb") as console:
        process = await asyncio.create_subprocess_exec(
            sys.executable, *KETTLE, *words, env={**pool.environ}, stdin=DEVNULL, stderr=console
        )
    machine = Leased(name, own, process)
    try:
        yield machine
    finally:
        if process.returncode is None:  # the test has failed
            for pid in machine.agents():
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            process.kill()
            await process.wait()
        await asyncio.to_thread(pools.down, machine.home)


def description(machine: Leased, program: str, *more: str) -> str:
    """Of jobs that run on this machine alone."""
    lines = [
        f"executable = {program}",
        "transfer_executable = false",
        f'requirements = TARGET.Machine == "{machine.name}"',
        *more,
    ]
    return "\n".join(lines) + "\n"


async def running(pool: ThrowawayPool, place: Path, machine: Leased, script: str, *more: str) -> int:
    """The cluster of a shell job on this machine, which has begun."""
    lines = [f"arguments = \"-c '{script}'\"", "output = out.$(ProcId)", *more, "queue"]
    shell = description(machine, "/bin/sh", *lines)
    submitted = await pool.client.submit(shell, cwd=place)
    async with asyncio.timeout(PATIENCE_S), aclosing(pool.client.watch(select(submitted.cluster))) as watched:
        async for progress in watched:
            if progress.counts["running"]:
                break
    return submitted.cluster


async def finished(pool: ThrowawayPool, cluster: int) -> dict[str, Any]:
    """The ad of the only job of a cluster, when it is over."""
    async with asyncio.timeout(PATIENCE_S):
        await pool.client.wait(select(cluster))
    (ad,) = await pool.client.history(select(cluster))
    return ad


async def test_a_machine_lives_from_its_bootstrap_to_its_lease(
    pool: ThrowawayPool, scaler: Scaler, tmp_path: Path
) -> None:
    """
    It says how far it is, runs jobs that see nothing of how it came here and none that may outlive it, and is drained when it is
    idle and not before; told to stop it ends, is out of the pool, and its credential is worth nothing.
    """
    async with leased(pool, tmp_path) as machine:
        await scaler.heard(machine.name, lambda said: said.phase is Phase.READY)
        assert not machine.bootstrap.exists()
        long = description(machine, "/bin/true", "allowed_execute_duration = 7200", "queue")
        waits = (await pool.client.submit(long, cwd=tmp_path)).cluster
        secret = machine.home / "credentials" / "worker.creds"
        look = f"cat {secret} || echo closed; while test ! -e end; do sleep 0.05; done"
        cluster = await running(pool, tmp_path, machine, look)
        await scaler.heard(machine.name, lambda said: (said.claims, said.running) == (1, 1))
        (ad,) = await slots(pool, machine, "PartitionableSlot")
        assert (machine.name, "p") == (ad["KettleLease"], ad["KettlePool"])
        assert 0 < int(str(ad["TimeToLive"])) <= 3600
        drain = Drain(id="scale-down", idle=True)
        with pytest.raises(RefusedError, match=r"has 1 claim\(s\)"):
            await scaler.bus.call(DRAIN, machine.name, drain, deadline=PATIENCE_S)
        assert [] == machine.tells("kettle-join-1")
        (await sandbox(machine) / "end").touch()
        assert 0 == (await finished(pool, cluster))["ExitCode"]
        if os.geteuid() == 0:  # else the job has the account of the machine, which is that of its owner
            assert "closed" == (tmp_path / "out.0").read_text().strip()
        (ad,) = await pool.client.jobs(select(waits))
        assert 0 == ad.get("NumJobStarts", 0)
        await pool.client.remove(select(waits))
        await won(scaler, machine.name, drain)
        scaler.answer = Renewed(order="stop", life=3600.0, again=0.2, now=0.0)
        assert 0 == await machine.ended()
        assert Phase.ENDED == scaler.phases(machine.name)[-1]
        assert machine.name not in (await pool.kettle("worker", "list")).out


async def slots(pool: ThrowawayPool, machine: Leased, also: str = "true") -> list[Ad]:
    """Its ads."""
    return await pool.client.ads("Machine", constraint=f'Machine == "{machine.name}" && {also}')


async def sandbox(machine: Leased) -> Path:
    """The sandbox of its only job."""
    places = (
        machine.home / "execute",
        machine.home / "startd" / "execute",
    )  # root's jobs cannot reach the first
    async with asyncio.timeout(PATIENCE_S):
        while True:
            found = [path for place in places if place.exists() for path in place.glob("dir_*")]
            if len(found) == 1:
                return found[0]
            await asyncio.sleep(0.02)


async def won(scaler: Scaler, machine: str, drain: Drain) -> None:
    """The claim stays for a moment after its job, and so do the results until they are recorded."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            try:
                await scaler.bus.call(DRAIN, machine, drain, deadline=PATIENCE_S)
            except RefusedError:
                await asyncio.sleep(0.05)
            else:
                return


async def test_a_machine_that_is_not_fit_is_never_seen(
    pool: ThrowawayPool, scaler: Scaler, tmp_path: Path
) -> None:
    """It says what is wrong, stays for its pause, which a signal ends, and was never in the pool."""
    wrong = {"disk": 2**40}
    async with leased(pool, tmp_path, examination=wrong, back_off=PATIENCE_S) as machine:
        failed = await scaler.heard(machine.name, lambda said: said.phase is Phase.FAILED)
        assert "have to be" in failed.progress
        assert [] == await slots(pool, machine)
        machine.process.terminate()
        assert UNFIT == await machine.ended()
        assert Phase.READY not in scaler.phases(machine.name)


async def test_an_agent_that_hangs_ends_with_the_life_of_the_machine(
    pool: ThrowawayPool, scaler: Scaler, tmp_path: Path
) -> None:
    """Its guard kills it, and takes away what it could show to the bus."""
    wrong = {"disk": 2**40}
    async with leased(pool, tmp_path, examination=wrong, back_off=3600.0, hurry=0.5) as machine:
        await scaler.heard(machine.name, lambda said: said.phase is Phase.FAILED)
        await scaler.told(machine.name, Renewed(life=7.0, again=0.2, now=0.0))
        await machine.signal_agent(signal.SIGSTOP)
        assert KILLED == await machine.ended()


async def test_without_renewals_a_machine_ends(pool: ThrowawayPool, scaler: Scaler, tmp_path: Path) -> None:
    """After its grace it takes no more jobs, and the one that runs may finish, but not without end."""
    async with leased(pool, tmp_path, orphan_grace=8.0, finish=1.0, renewal=0.2) as machine:
        await scaler.heard(machine.name, lambda said: said.phase is Phase.READY)
        cluster = await running(pool, tmp_path, machine, "sleep 600")
        scaler.deaf = True
        orphan = await scaler.heard(machine.name, lambda said: said.phase is Phase.DRAINING)
        assert "was not renewed for 8 s" in orphan.progress
        assert 0 == await machine.ended()
        await requeued(pool, cluster)


async def requeued(pool: ThrowawayPool, cluster: int) -> None:
    """Its job waits again, and nobody counts the end of the machine against it; then it is removed."""
    async with asyncio.timeout(PATIENCE_S), aclosing(pool.client.watch(select(cluster))) as watched:
        async for progress in watched:
            if progress.counts["idle"]:
                break
    (ad,) = await pool.client.jobs(select(cluster))
    assert 0 == ad.get("NumJobCompletions", 0)
    await pool.client.remove(select(cluster))


async def test_a_killed_master_costs_no_job_and_failing_jobs_the_machine(
    pool: ThrowawayPool, scaler: Scaler, tmp_path: Path
) -> None:
    """
    It is started again, and its startd takes the job over that runs; jobs that end badly at once have the machine take no more and
    end, and what has not begun stays where it is.
    """
    told = {"num_cpus": 1, "quarantine_within": 3600.0}
    async with leased(pool, tmp_path, quarantine_after=2, startd=told) as machine:
        await scaler.heard(machine.name, lambda said: said.phase is Phase.READY)
        cluster = await running(pool, tmp_path, machine, "while test ! -e end; do sleep 0.05; done")
        inside = await sandbox(machine)
        state = pools.state(machine.home)
        assert state is not None
        os.kill(state.pid, signal.SIGKILL)
        async with asyncio.timeout(PATIENCE_S):
            while (now := pools.state(machine.home)) is None or now.pid == state.pid or not now.ready:
                await asyncio.sleep(0.05)
        (inside / "end").touch()
        ad = await finished(pool, cluster)
        assert (1, 0) == (ad["NumJobStarts"], ad["ExitCode"])
        bad = (await pool.client.submit(description(machine, "/bin/false", "queue 20"), cwd=tmp_path)).cluster
        said = await scaler.heard(machine.name, lambda said: said.phase is Phase.QUARANTINED)
        assert "8 different jobs in a row failed here" in said.progress
        assert 0 == await machine.ended()
        assert 12 == len(await pool.client.jobs(select(bad)))
        await pool.client.remove(select(bad))


async def test_nothing_outlives_the_agent(pool: ThrowawayPool, scaler: Scaler, tmp_path: Path) -> None:
    """Killed, it is the end of its services and of the job that runs."""
    async with leased(pool, tmp_path) as machine:
        await scaler.heard(machine.name, lambda said: said.phase is Phase.READY)
        cluster = await running(pool, tmp_path, machine, "sleep 600", "+JobLeaseDuration = 5")
        await machine.signal_agent(signal.SIGKILL)
        assert KILLED == await machine.ended()
        await requeued(pool, cluster)
