"""
Headers of a message to JetStream that ask for more than to have it stored, from those who may write one entry of a bucket or
report to one schedd: what others have written stays.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, aclosing

import pytest_asyncio
from nats.aio.client import Client

from kettle.bus.nats import NatsBus
from kettle.bus.ports import BucketSpec, StreamSpec
from kettle.embedded import EmbeddedNats
from kettle.testing.patience import PATIENCE_S
from kettle.testing.servers.embedded import server_directory
from kettle.testing.servers.members import Members
from kettle_wire.identity import Identity, daemon, visitor, worker
from kettle_wire.subjects import Subjects, forwarded_key, machine_key, slot_key, submitters_key, token

SUBJECTS = Subjects("pool")
WHO: dict[str, tuple[str, Identity]] = {
    role: (role, daemon(role)) for role in ("schedd", "shadow", "collector", "negotiator")
} | {
    "startd": ("startd", worker("host")),
    "neighbour": ("startd", worker("other.host")),
    "visitor": ("visitor", visitor("ap@home")),
    "forwarder": ("forwarder", visitor("view@home")),
}
WORK = StreamSpec(name=SUBJECTS.work_stream, subjects=[SUBJECTS.work_all])
ADS, PRIVATE, LEASES = SUBJECTS.ads, SUBJECTS.private_ads, SUBJECTS.leases
OWN = [
    ("startd", f"$KV.{ADS}.{machine_key('host', 'slot1@host')}"),
    ("startd", f"$KV.{PRIVATE}.{slot_key('host', 'slot1@host')}"),
    ("startd", SUBJECTS.work("schedd", "host")),
    ("visitor", f"$KV.{ADS}.{submitters_key('ap@home', 'a@home')}"),
    ("forwarder", f"$KV.{ADS}.{forwarded_key('view@home', 'Machine.host')}"),
    ("schedd", f"$KV.{LEASES}.{token('schedd.schedd')}"),
]
HOSTILE = [
    {"Nats-Rollup": "all"},
    {"Nats-Rollup": "sub"},
    {"KV-Operation": "PURGE", "Nats-Rollup": "all"},
    {"KV-Operation": "PURGE"},
    {"Nats-Marker-Reason": "Purge"},
    {"Nats-TTL": "never"},
    {"Nats-Msg-Id": "1"},
    {"Nats-Batch-Id": "b", "Nats-Batch-Sequence": "1", "Nats-Batch-Commit": "1"},
    {"Nats-Incr": "1"},
    {"Nats-Schedule": "@every 1s", "Nats-Schedule-Target": "$KV.KETTLE_pool_ADS.Machine.victim.1"},
]
Raw = Callable[[str], Awaitable[Client]]


@pytest_asyncio.fixture
async def pool() -> AsyncIterator[tuple[Callable[[str], Awaitable[NatsBus]], Raw]]:
    """The buckets and the stream of reports, and connections of both kinds by the name of their holder."""
    async with AsyncExitStack() as stack:
        directory = stack.enter_context(server_directory())
        server = await stack.enter_async_context(
            EmbeddedNats(directory / "nats", trust=Members(directory / "keys", SUBJECTS, WHO))
        )

        async def bus(name: str) -> NatsBus:
            return await stack.enter_async_context(
                NatsBus.connect(
                    server.url,
                    subjects=SUBJECTS,
                    identity=WHO[name][1],
                    credentials=str(server.credentials(name)),
                    patience=PATIENCE_S,
                    deadline=PATIENCE_S,
                )
            )

        async def raw(name: str) -> Client:
            client = Client()
            await client.connect(
                server.url,
                user_credentials=str(server.credentials(name)),
                inbox_prefix=WHO[name][1].inbox.encode(),
                connect_timeout=int(PATIENCE_S),
                allow_reconnect=False,
            )
            stack.push_async_callback(client.close)
            return client

        collector = await bus("collector")
        for bucket in (ADS, PRIVATE):
            await collector.ensure_bucket(BucketSpec(name=bucket, ttl=60.0))
        await (await bus("schedd")).ensure_bucket(BucketSpec(name=LEASES, ttl=60.0))
        await (await bus("shadow")).ensure_stream(WORK)
        yield bus, raw


async def test_no_header_takes_away_what_others_wrote(
    pool: tuple[Callable[[str], Awaitable[NatsBus]], Raw],
) -> None:
    """
    Each header by each of those who write, on what is his own; a neighbour's ads and reports, and a lease, are there still.
    """
    connect, raw = pool
    neighbour, negotiator = await connect("neighbour"), await connect("negotiator")
    await neighbour.update(ADS, machine_key("other.host", "slot1@other.host"), b"ad", expect=0)
    await neighbour.update(PRIVATE, slot_key("other.host", "slot1@other.host"), b"capability", expect=0)
    await neighbour.append(SUBJECTS.work("schedd", "other.host"), b"report")
    await negotiator.ensure_bucket(BucketSpec(name=LEASES, ttl=60.0))
    await negotiator.update(LEASES, token("negotiator"), b"holder", expect=0)
    for who, subject in OWN:
        client = await raw(who)
        for headers in HOSTILE:
            await client.request(subject, b"mine", headers=headers, timeout=PATIENCE_S)
    assert {b"ad", b"capability", b"holder"} <= {
        *await values(await connect("collector"), ADS, ">"),
        *await values(negotiator, PRIVATE, ">"),
        *await values(negotiator, LEASES, token("negotiator")),
    }
    shadow = await connect("shadow")
    reading = shadow.read(WORK.name, subject=SUBJECTS.work_all)
    async with asyncio.timeout(PATIENCE_S), aclosing(reading) as messages:
        assert b"report" in [message.data async for message in messages]


async def values(bus: NatsBus, bucket: str, keys: str) -> list[bytes | None]:
    """What is in a bucket now."""
    found: list[bytes | None] = []
    async with asyncio.timeout(PATIENCE_S), aclosing(bus.watch(bucket, keys)) as changes:
        async for change in changes:
            if change is None:
                break
            found.append(change.value)
    return found
