"""
Interactive sessions on a pool: what becomes of their jobs, what their programs are told, and what people ask of them.
"""

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, TypeVar

import aiohttp
import pytest
import pytest_asyncio

from kettle.client import Client, CommandRefusedError, select
from kettle.pki.certificates import make_request
from kettle.testing.patience import PATIENCE_S
from kettle.testing.shared_pool import SharedPool
from kettle.testing.throwaway_pool import ThrowawayPool, merged
from kettle_wire.commands.sessions import NewSession, SessionView
from kettle_wire.events import decode
from kettle_wire.events.interactive import InteractiveWorkersRetired
from kettle_wire.sessions import SessionSize

from .persons import somebody
from .test_interactive_jobs import BATCH, SLEEP, submitted, until_running
from .test_interactive_jobs import running as running_of
from .test_interactive_jobs import settings as reserve

EventT = TypeVar("EventT")
AGENT = """
import asyncio, os
from kettle.bus.ports import BusError
from kettle.client.sessions import OwnSession
from kettle_wire.commands.sessions import AgentReport, AgentWorker

async def main():
    own, retired = OwnSession.of_job(), set()
    while True:
        said = [AgentWorker(name=each, state="retired") for each in retired]
        try:
            orders = await own.agent(AgentReport(workers=said, contact=f"test://{os.getpid()}", wait=0.5))
        except BusError:
            await asyncio.sleep(0.1)
        else:
            retired |= set(orders.retire)

asyncio.run(main())
"""
SMALL = SessionSize(cpus=1, memory=16)
PROFILES = """
[small]
kind = "dask"
python = "{python}"
command = ["{{python}}", "-c", {agent}]
worker_command = ["/bin/sleep", "1000"]
head_memory = 16
memory = 16
grace = "10m"

[at-once]
kind = "dask"
python = "{python}"
command = ["{{python}}", "-c", {agent}]
worker_command = ["/bin/sleep", "1000"]
head_memory = 16
memory = 16
interactive = "all"

[program]
kind = "process"
memory = 16
cpus_allowed = [1, 1000]
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("sessions")
    text = PROFILES.format(python=sys.executable, agent=json.dumps(AGENT))
    (made / "profiles.toml").write_text(text)
    return made


@pytest.fixture(scope="module")
def configuration(place: Path) -> dict[str, Any]:
    return {
        "settings": {
            "sessions": {"profiles": str(place / "profiles.toml"), "limit": 5, "profiles_interval": 0.2},
            "gateway": {"rest": True},
            # Jobs run this Python, which an account of a slot may not reach.
            "startd": {"num_cpus": 6, "memory": 2000, "job_account": "own"},
        }
    }


@pytest_asyncio.fixture
async def client(pool: ThrowawayPool) -> AsyncIterator[Client]:
    yield pool.client
    for each in await pool.client.sessions.list():
        await pool.client.sessions.stop(each.id)
    async with asyncio.timeout(PATIENCE_S):
        while await pool.client.sessions.list():
            await asyncio.sleep(0.05)


async def until(client: Client, session: str, is_so: Callable[[SessionView], object]) -> SessionView:
    """The session as soon as it is so."""
    async with asyncio.timeout(PATIENCE_S):
        shown = await client.sessions.show(session)
        while not is_so(shown):
            shown = (await client.sessions.news(shown.id, shown.events, wait=1.0)).session
        return shown


async def happened(client: Client, session: str, kind: type[EventT]) -> AsyncIterator[EventT]:
    """What was recorded of one kind."""
    for recorded in (await client.sessions.news(session, 0, wait=0.0)).events:
        event = decode(bytes(recorded.data))
        if isinstance(event, kind):
            yield event


def running(count: int) -> Callable[[SessionView], object]:
    return lambda shown: shown.state == "ready" and shown.running == count and len(shown.members) == count + 1


async def test_a_program_begins_has_its_files_and_ends(client: Client) -> None:
    """What it is given is there for its job alone, and its end is the session's."""
    script = 'test "$(cat $_CONDOR_CREDS/key.use)" = top && test "$A" = "b c" && exit 7'
    new = NewSession(
        kind="process", files={"key": "top"}, environment={"A": "b c"}, command=["/bin/sh", "-c", script]
    )
    made = await client.sessions.create(new)
    ended = await until(client, made.id, lambda shown: shown.state == "ended")
    assert ("failed", "its program has ended with code 7") == (ended.outcome, ended.reason)
    assert "top" not in str(ended)


async def test_a_cluster_has_as_many_workers_as_are_wanted(client: Client, pool: ThrowawayPool) -> None:
    """Also when one is killed, when it is scaled, and when the service is killed meanwhile."""
    new = NewSession(kind="dask", profile="small", name="fits", size=SessionSize(workers=2))
    made = await client.sessions.create(new)
    shown = await until(client, "fits", running(2))
    assert shown.scheduler.contact.startswith("test://")
    ads = await client.jobs(select(constraint=f'KettleSessionId == "{made.id}"'))
    assert {1, 2, 3} == {ad["KettleSessionMember"] for ad in ads}
    assert {"fits"} == {ad["JobBatchName"] for ad in ads}

    os.kill(int(shown.scheduler.contact.removeprefix("test://")), signal.SIGKILL)
    await until(client, "fits", lambda now: now.state == "degraded")
    again = await until(client, "fits", running(2))
    assert again.scheduler.contact != shown.scheduler.contact

    worker = next(each.job for each in again.members if each.role == "worker")
    await client.remove(select(worker), "by hand")
    await until(client, "fits", lambda now: now.lost == 1)
    await until(client, "fits", running(2))

    pool.kill("sessions")
    await client.sessions.scale("fits", 4)
    await until(client, "fits", running(4))
    await client.sessions.scale("fits", 1)
    await until(client, "fits", running(1))
    retired = [each async for each in happened(client, made.id, InteractiveWorkersRetired)]
    assert 3 == sum(len(each.numbers) for each in retired), "each held nothing before it was ended"

    await client.sessions.stop("fits")
    await until(client, made.id, lambda now: now.state == "ended")
    assert [] == await client.jobs(select(constraint=f'KettleSessionId == "{made.id}"'))


async def test_who_waits_is_told_why_and_what_is_not_possible(client: Client) -> None:
    """In the words of the pool, and nothing is left of what is refused."""
    sleep = ["/bin/sleep", "1000"]
    size = SessionSize(cpus=999)
    made = await client.sessions.create(NewSession(kind="process", name="big", size=size, command=sleep))
    shown = await until(client, made.id, lambda now: now.state == "queued")
    async with asyncio.timeout(PATIENCE_S):
        while "RequestCpus" not in shown.reason:
            await asyncio.sleep(0.05)
            shown = await client.sessions.show("big")
    assert shown.waits
    for new, why in (
        (NewSession(kind="process", profile="prograam"), "did you mean program?"),
        (NewSession(kind="process", command=sleep, size=SessionSize(memory=10**6)), "nobody chooses another"),
        (NewSession(kind="process", command=sleep, size=SessionSize(workers=3)), "has no workers"),
        (NewSession(kind="process", name="big", command=sleep), "already"),
    ):
        with pytest.raises(CommandRefusedError, match=why.replace("?", r"\?")):
            await client.sessions.create(new)
    for _ in range(4):
        await client.sessions.create(NewSession(kind="process", size=size, command=sleep))
    with pytest.raises(CommandRefusedError, match="which is the most: stop one of them"):
        await client.sessions.create(NewSession(kind="process", size=size, command=sleep))


async def test_nobody_makes_jobs_of_a_session_by_hand(client: Client, tmp_path: Path) -> None:
    description = tmp_path / "job.sub"
    description.write_text('executable = /bin/true\n+KettleSessionId = "0123456789ab"\nqueue\n')
    with pytest.raises(CommandRefusedError, match="interactive sessions alone"):
        await client.submit(description)


async def test_profiles_that_are_wrong_are_told_with_their_lines(client: Client, place: Path) -> None:
    """Those before stay in force."""
    file = place / "profiles.toml"
    good = file.read_text()
    draft = place / "profiles.draft"  # as editors do: nobody reads half of it
    draft.write_text(good + "\n[other]\nkind = 'process'\ncores = 2\n")
    draft.replace(file)
    try:
        async with asyncio.timeout(PATIENCE_S):
            while not (found := await client.sessions.profiles()).problems:
                await asyncio.sleep(0.05)
    finally:
        file.write_text(good)
    line = good.count("\n") + 4
    assert [f"{file}:{line}: a profile has no 'cores'; did you mean 'cpus'?"] == found.problems
    assert ["at-once", "program", "small"] == [each.name for each in found.profiles]
    async with asyncio.timeout(PATIENCE_S):
        while (await client.sessions.profiles()).problems:
            await asyncio.sleep(0.05)


async def test_over_http(client: Client, pool: ThrowawayPool) -> None:
    """Once, although it is asked for twice; followed to its end."""
    home = pool.home / "gateway"
    headers = {"Authorization": f"Bearer {(home / 'token').read_text().strip()}", "Idempotency-Key": "one"}
    address = f"http://127.0.0.1:{(home / 'port').read_text().strip()}/v2/sessions"
    new = {"kind": "process", "name": "http", "command": ["/bin/sleep", "1000"]}
    async with aiohttp.ClientSession() as http:
        first, second = [await (await http.post(address, json=new, headers=headers)).json() for _ in range(2)]
        assert first["id"] == second["id"]
        del headers["Idempotency-Key"]
        await until(client, "http", lambda now: now.state == "ready")
        response = await http.get(f"{address}/http", headers=headers)
        assert ("ready", "running") == (
            (shown := await response.json())["state"],
            shown["members"][0]["status"],
        )
        response = await http.post(address, json=new, headers=headers)
        assert (409, "session.exists") == (response.status, (await response.json())["code"])
        response = await http.get(f"{address}/nothing", headers=headers)
        assert 404 == response.status
        response = await http.delete(f"{address}/http", headers=headers)
        assert 200 == response.status
        response = await http.get(f"{address}/{first['id']}/events", params={"after": "0"}, headers=headers)
        async with asyncio.timeout(PATIENCE_S):
            told = (await response.content.read()).decode()
        assert ["created", "ended"] == [
            word for word in ("created", "ended") if f'"event":"interactive.{word}"' in told
        ]


async def test_a_certificate_is_of_the_session(client: Client) -> None:
    """Asked for with a request; the key stays where it was made."""
    made = await client.sessions.create(NewSession(kind="process", command=["/bin/sleep", "1000"]))
    _, request = make_request("ann")
    signed = await client.sessions.certificate(made.id, request)
    assert signed.certificate.startswith(b"-----BEGIN CERTIFICATE-----")
    assert signed.authority.startswith(b"-----BEGIN CERTIFICATE-----")


async def test_a_session_begins_on_a_pool_that_is_full_of_batch_jobs(
    shared_pool: SharedPool, configuration: dict[str, Any], tmp_path: Path
) -> None:
    """
    Beside 200 jobs of another person: where the profile has all jobs be interactive, workers begin in the room that is kept for such jobs;
    where it has only the head be so, that runs and says why its worker waits.  No batch job is ended for it.
    """
    own = merged(configuration["settings"], {"startd": {"num_cpus": 7}})
    settings = merged(own, reserve("A reserve"))
    async with (
        shared_pool.lent(cpus=7, settings=settings) as pool,
        somebody(pool, "ada", tmp_path) as ada,
    ):
        await submitted(ada, f"{SLEEP}queue {BATCH}\n", tmp_path)
        await until_running(pool.client, "ada", 5)
        made = NewSession(kind="dask", profile="at-once", name="at-once", size=SessionSize(workers=1))
        await pool.client.sessions.create(made)
        await until(pool.client, "at-once", lambda now: (now.state, now.running) == ("ready", 1))
        assert 5 == await running_of(pool.client, "ada")
        await pool.client.sessions.stop("at-once")
        await until(pool.client, "at-once", lambda now: now.ended)
        made = NewSession(kind="dask", profile="small", name="patient", size=SessionSize(workers=1))
        await pool.client.sessions.create(made)
        waits = await until(pool.client, "patient", lambda now: now.state == "ready" and now.waits)
        assert (0, 1) == (waits.running, waits.waiting)
        assert 5 == await running_of(pool.client, "ada")
        await pool.client.sessions.stop("patient")
        await until(pool.client, "patient", lambda now: now.ended)
