"""Who may read what the gateway publishes, as a real server enforces it."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, aclosing

import pytest

from kettle.auth.bus_permissions import MONITOR
from kettle.bus.nats import NatsBus
from kettle.bus.ports import Bus, Post, RefusedError
from kettle.embedded import EmbeddedNats
from kettle.testing.patience import PATIENCE_S
from kettle.testing.servers.embedded import server_directory
from kettle.testing.servers.members import Members
from kettle_services.collector.readers import Readers
from kettle_services.gateway.event_stream import stream_spec
from kettle_services.gateway.settings import GatewaySettings
from kettle_wire.identity import Identity, daemon, user, worker
from kettle_wire.subjects import Subjects

SUBJECTS = Subjects("pool")
SPEC = stream_spec(SUBJECTS, GatewaySettings())
WHO: dict[str, tuple[str, Identity]] = {
    "gateway": ("gateway", daemon("gateway")),
    "collector": ("collector", daemon("collector")),
    "monitor": (MONITOR, daemon(MONITOR)),
    "alice": ("user", user("alice")),
    "bob": ("user", user("bob")),
    "startd": ("startd", worker("host")),
    "schedd": ("schedd", daemon("schedd")),
}
Connect = Callable[[str], Awaitable[NatsBus]]


@pytest.fixture
async def connect() -> AsyncIterator[Connect]:
    """
    Connections by the name of their holder; alice's and bob's jobs and a machine have had an event each.
    """
    async with AsyncExitStack() as stack:
        directory = stack.enter_context(server_directory())
        nats = EmbeddedNats(directory / "nats", trust=Members(directory / "keys", SUBJECTS, WHO))
        await stack.enter_async_context(nats)

        async def connected(name: str) -> NatsBus:
            return await stack.enter_async_context(
                NatsBus.connect(
                    nats.url,
                    subjects=SUBJECTS,
                    identity=WHO[name][1],
                    credentials=str(nats.credentials(name)),
                    patience=PATIENCE_S,
                    deadline=PATIENCE_S,
                )
            )

        collector = await connected("collector")
        readers = Readers(collector, SUBJECTS, time.monotonic)
        await collector.answer(SUBJECTS.readers(">"), readers.answer)
        gateway = await connected("gateway")
        last = await gateway.ensure_stream(SPEC)
        await tell(gateway, last)
        yield connected


async def tell(gateway: Bus, last: int) -> None:
    said = [
        SUBJECTS.tail("alice", 1, 0, "job.held"),
        SUBJECTS.tail("bob", 2, 0, "job.held"),
        SUBJECTS.tail_pool("machine.left"),
    ]
    await gateway.append_together([Post(s, s.encode()) for s in said], expect_last=last, note="n")


async def heard(bus: Bus, subject: str) -> list[str]:
    async with asyncio.timeout(PATIENCE_S), aclosing(bus.read(SPEC.name, subject=subject)) as messages:
        return [message.subject async for message in messages]


async def test_the_gateway_may_do_its_work(connect: Connect) -> None:
    """It made the stream, filled it and reads all of it; it reads its own note, and finds the shards."""
    gateway = await connect("gateway")
    assert 3 == len(await heard(gateway, ">"))
    assert (3, "n") == await gateway.last_note(SPEC.name)
    assert [] == await gateway.stored_subjects(SUBJECTS.events_all)


async def test_a_person_reads_the_events_of_their_own_jobs(connect: Connect) -> None:
    """Stored and live alike; those of others, those of the pool and all of them are refused."""
    alice = await connect("alice")
    assert [SUBJECTS.monitor("alice", "job.held")] == await heard(alice, SUBJECTS.monitor("alice"))
    for subject in (SUBJECTS.monitor("bob"), SUBJECTS.monitor(None), SUBJECTS.tail_pool("*.*"), ">"):
        with pytest.raises(RefusedError):
            await heard(alice, subject)


async def test_a_person_hears_the_events_of_their_own_jobs(connect: Connect) -> None:
    """What the person may not hear does not come, although it was asked for."""
    gateway, alice = await connect("gateway"), await connect("alice")
    live: list[str] = []
    mine = asyncio.Event()

    def hear(subject: str, _data: bytes) -> None:
        live.append(subject)
        mine.set()

    for subject in (SUBJECTS.tail_all, SUBJECTS.tail_pool("*.*"), SUBJECTS.tail_of("bob")):
        await alice.listen(subject, hear)
    await alice.listen(SUBJECTS.tail_of("alice"), hear)
    await tell(gateway, 3)
    await asyncio.wait_for(mine.wait(), PATIENCE_S)
    await alice.last_sequence(SPEC.name)  # whatever else was on its way has come before this answer
    assert [SUBJECTS.tail("alice", 1, 0, "job.held")] == live


async def test_a_monitor_reads_everything_and_writes_nothing(connect: Connect) -> None:
    """Its credential is made for dashboards: all events, and no command."""
    monitor = await connect("monitor")
    assert 3 == len(await heard(monitor, ">"))
    with pytest.raises(RefusedError):
        await monitor.append(SUBJECTS.tail_pool("machine.left"), b"forged")


@pytest.mark.parametrize("who", ["alice", "bob", "startd", "schedd", "monitor"])
async def test_nobody_else_publishes_events(connect: Connect, who: str) -> None:
    """What is told is what the log says."""
    with pytest.raises(RefusedError):
        await (await connect(who)).append(SUBJECTS.tail("alice", 1, 0, "job.held"), b"forged")


@pytest.mark.parametrize("who", ["startd", "schedd"])
async def test_services_have_no_business_with_it(connect: Connect, who: str) -> None:
    """They know what happens without it."""
    with pytest.raises(RefusedError):
        await heard(await connect(who), ">")
