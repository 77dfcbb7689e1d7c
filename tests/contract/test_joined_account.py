"""
The account of access points that have joined: what they do there arrives in the pool, what others ask them arrives there, and nobody
writes in the pool for them what they may not.
"""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, aclosing, suppress
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest
import pytest_asyncio
from nats.aio.client import Client
from nats.errors import Error

from kettle.auth.bus_permissions import JOINED
from kettle.auth.private_files import write_private
from kettle.auth.trust.files import write
from kettle.auth.trust.jwts import encode
from kettle.auth.trust.keys import KeyPair
from kettle.auth.trust.keys import Kind as KeyKind
from kettle.auth.trust.pool import AccessPoint, PoolTrust
from kettle.auth.trust.server import PROBE, Statements
from kettle.bus.credentials import ACCESS_POINT, Credential
from kettle.bus.leases import KeyLeases
from kettle.bus.nats import NatsBus
from kettle.bus.ports import BucketSpec, BusError, RefusedError, Served, StreamSpec
from kettle.embedded import EmbeddedNats
from kettle.testing.patience import PATIENCE_S
from kettle.testing.servers.embedded import server_directory
from kettle.testing.servers.members import Members
from kettle_services.collector.domain.stream_requests import LARGEST
from kettle_services.collector.readers import Readers
from kettle_wire.commands import log, schedd, shadow, startd
from kettle_wire.endpoint import Endpoint
from kettle_wire.identity import Identity, daemon, user, worker
from kettle_wire.subjects import API, GUESTS_API, Subjects, ad_key

SUBJECTS = Subjects("pool")
WHO: dict[str, tuple[str, Identity]] = {
    role: (role, daemon(role)) for role in ("schedd", "shadow", "collector", "negotiator", "accounting")
} | {
    "startd": ("startd", worker("host")),
    "ada": ("user", user("ada")),
    **{
        f"{role} of {access_point}": (joined, daemon(role, access_point))
        for joined, role in JOINED.items()
        for access_point in ("ap1", "ap2")
    },
}
OWN = StreamSpec(
    name=SUBJECTS.event_stream("schedd.ap1"),
    subjects=[SUBJECTS.events("schedd.ap1")],
    max_bytes=LARGEST,
    first_sequence=5,
)
EVENTS = StreamSpec(name=SUBJECTS.event_stream("schedd.schedd"), subjects=[SUBJECTS.events("schedd.schedd")])
WORK = StreamSpec(name=SUBJECTS.work_stream, subjects=[SUBJECTS.work_all])
LEASE = "schedd=2Eap1"


class Pool:
    """A server, and a collector at its work."""

    def __init__(self, server: EmbeddedNats, stack: AsyncExitStack) -> None:
        self.server, self._stack = server, stack

    def bus_for_now(self, name: str) -> AbstractAsyncContextManager[NatsBus]:
        return NatsBus.connect(
            self.server.url,
            subjects=SUBJECTS,
            identity=WHO[name][1],
            credentials=str(self.server.credentials(name)),
            patience=PATIENCE_S,
            deadline=PATIENCE_S,
        )

    async def bus(self, name: str) -> NatsBus:
        return await self._stack.enter_async_context(self.bus_for_now(name))

    async def raw(self, name: str) -> Client:
        """A client that publishes whatever it likes."""
        client = Client()
        self._stack.push_async_callback(client.close)
        await client.connect(
            self.server.url,
            user_credentials=str(self.server.credentials(name)),
            inbox_prefix=WHO[name][1].inbox.encode(),
            error_cb=_quiet,
            connect_timeout=int(PATIENCE_S),
            allow_reconnect=False,
        )
        return client


async def _quiet(_error: Exception) -> None:
    pass


@pytest_asyncio.fixture
async def pool() -> AsyncIterator[Pool]:
    async with AsyncExitStack() as stack:
        directory = stack.enter_context(server_directory())
        members = Members(directory / "keys", SUBJECTS, WHO)
        server = await stack.enter_async_context(EmbeddedNats(directory / "nats", trust=members))
        made = Pool(server, stack)
        collector = await made.bus("collector")
        await collector.ensure_bucket(BucketSpec(name=SUBJECTS.ads, ttl=60.0))
        readers = Readers(collector, SUBJECTS, time.monotonic)
        await collector.answer(SUBJECTS.readers(">"), readers.answer)
        await collector.answer(SUBJECTS.stream_requests("*"), readers.make_stream)
        own = await made.bus("schedd")
        await own.ensure_stream(EVENTS)
        await own.ensure_bucket(BucketSpec(name=SUBJECTS.leases, ttl=0.0, memory=False))
        await (await made.bus("shadow")).ensure_stream(WORK)
        yield made


async def settled(client: Client) -> None:
    """What it has published has been dealt with, and so have the answers."""
    for _ in range(3):
        await client.flush()
    with pytest.raises(Error):
        await client.request("nobody", b"", timeout=0.3)


async def test_its_frames_are_in_the_pool_and_are_read_on_both_sides(pool: Pool) -> None:
    """
    The stream is made where it has asked for it; accounting reads it as it does any, and its shadow through a collector.
    """
    owner = await pool.bus("schedd of ap1")
    assert 4 == await owner.ensure_stream(OWN)
    assert 4 == await owner.ensure_stream(OWN)
    assert 5 == await owner.append(OWN.subjects[0], b"a frame", expect_last=4)
    for name in ("accounting", "shadow of ap1"):
        reader = await pool.bus(name)
        consuming = reader.consume(OWN.name, "", subject=OWN.subjects[0], after=4, ephemeral=True)
        async with asyncio.timeout(PATIENCE_S), aclosing(consuming) as batches:
            batch = await anext(batches)
            assert [(5, b"a frame")] == [(each.sequence, each.data) for each in batch.messages]


async def test_it_has_its_lease_and_puts_its_ads(pool: Pool) -> None:
    """By the same calls as the pool's own services."""
    owner = await pool.bus("schedd of ap1")
    lease = await KeyLeases(owner, SUBJECTS.leases).acquire(LEASE, "me", ttl=60.0)

    other = await pool.bus("collector")
    await owner.put(SUBJECTS.ads, ad_key("Scheduler", "ap1"), b"an ad", ttl=60.0)
    async with asyncio.timeout(PATIENCE_S), aclosing(other.watch(SUBJECTS.ads, "Scheduler.>")) as changes:
        async for change in changes:
            if change is not None and change.value == b"an ad":
                break
    await lease.release()


ASKED: list[tuple[str, str, str, Endpoint[Any, Any], msgspec.Struct]] = [
    ("ada", "schedd of ap1", "ap1", schedd.QUERY_JOBS, schedd.QueryJobs(select=schedd.Select())),
    ("accounting", "schedd of ap1", "schedd.ap1", log.READ_FRAMES, log.ReadFrames(after=0)),
    ("shadow of ap1", "schedd of ap1", "schedd.ap1", log.READ_FRAMES, log.ReadFrames(after=0)),
    ("schedd of ap1", "shadow of ap1", "ap1", shadow.LOOK_AFTER, shadow.LookAfter()),
    ("schedd of ap1", "startd", "host", startd.RELEASE, startd.Release(claims=[], reason="")),
]


async def test_commands_cross(pool: Pool) -> None:
    """From people and services of the pool to an access point, within it, and from it to machines."""
    for who, whom, name, endpoint, request in ASKED:
        heard: list[str] = []

        async def handle(
            _request: msgspec.Struct, caller: Identity, heard: list[str] = heard
        ) -> msgspec.Struct:
            heard.append(caller.token)
            raise RefusedError("heard", "a refusal is an answer")

        async with pool.bus_for_now(whom) as answering, pool.bus_for_now(who) as asking:
            await answering.serve(endpoint.role, name, [Served(endpoint, handle)], version="1.0.0")
            with pytest.raises(RefusedError, match="a refusal is an answer"):
                await asking.call(endpoint, name, request, deadline=PATIENCE_S)
        assert [WHO[who][1].token] == heard


async def test_notices_cross(pool: Pool) -> None:
    """Who has just started is seen on the other side."""
    for teller, kind, hearer in (
        ("schedd of ap1", "schedd", "negotiator"),
        ("negotiator", "negotiator", "schedd of ap1"),
        ("startd", "startd", "schedd of ap1"),
    ):
        heard: asyncio.Queue[str] = asyncio.Queue()
        name = WHO[teller][1].access_point or WHO[teller][1].name

        def note(subject: str, _data: bytes, heard: asyncio.Queue[str] = heard) -> None:
            heard.put_nowait(subject)

        async with pool.bus_for_now(hearer) as listening, pool.bus_for_now(teller) as telling:
            await listening.listen(SUBJECTS.notices(kind), note)
            await telling.publish(SUBJECTS.notice(kind, name), b"")
            async with asyncio.timeout(PATIENCE_S):
                assert SUBJECTS.notice(kind, name) == await heard.get()


async def test_reports_of_machines_reach_its_shadow(pool: Pool) -> None:
    """And are acknowledged through the other account."""
    machine, own = await pool.bus("startd"), await pool.bus("shadow of ap1")
    await machine.append(SUBJECTS.work("ap1", "host"), b"a report")
    consuming = own.consume(WORK.name, SUBJECTS.work_reader("ap1"), subject=SUBJECTS.work_of("ap1"))
    async with asyncio.timeout(PATIENCE_S), aclosing(consuming) as batches:
        batch = await anext(batches)
        assert [b"a report"] == [each.data for each in batch.messages]
        await batch.ack()


PLACES = [
    EVENTS.subjects[0],
    SUBJECTS.events("schedd.ap2"),
    f"{API}.STREAM.DELETE.{EVENTS.name}",
    f"$KV.{SUBJECTS.leases}.schedd=2Eschedd",
]


async def test_no_answer_to_it_goes_where_it_may_not_publish(pool: Pool) -> None:
    """Neither what JetStream says, nor messages of its own that it pulls, with headers that it has chosen."""
    owner, reader = await pool.bus("schedd of ap1"), await pool.bus("shadow of ap1")
    await owner.ensure_stream(OWN)
    await owner.append(OWN.subjects[0], b"forged", expect_last=4)
    schedd_, shadow_ = await pool.raw("schedd of ap1"), await pool.raw("shadow of ap1")
    made = f"{GUESTS_API}.CONSUMER.CREATE.{OWN.name}.mine.{OWN.subjects[0]}"
    config = {"filter_subject": OWN.subjects[0], "ack_policy": "none"}
    answer = await shadow_.request(made, msgspec.json.encode({"config": config}), timeout=PATIENCE_S)
    assert b'"error"' not in answer.data
    for place in PLACES:
        await shadow_.publish(f"{GUESTS_API}.CONSUMER.MSG.NEXT.{OWN.name}.mine", b"1", reply=place)
        await schedd_.publish(f"{GUESTS_API}.STREAM.INFO.{OWN.name}", b"", reply=place)
        await schedd_.publish(OWN.subjects[0], b"more", reply=place)
        await schedd_.publish(f"$KV.{SUBJECTS.ads}.{ad_key('Scheduler', 'ap1')}", b"ad", reply=place)
    await settled(schedd_)
    await settled(shadow_)
    assert 0 == await (await pool.bus("schedd")).last_sequence(EVENTS.name)
    watching = (await pool.bus("schedd")).watch(SUBJECTS.leases, "schedd=2Eschedd")
    async with asyncio.timeout(PATIENCE_S), aclosing(watching) as changes:
        assert await anext(changes) is None
    assert reader.connected


async def test_jetstream_delivers_nowhere_for_it(pool: Pool) -> None:
    """A consumer that delivers by itself is not made."""
    await (await pool.bus("schedd of ap1")).ensure_stream(OWN)
    shadow_, schedd_ = await pool.raw("shadow of ap1"), await pool.raw("schedd of ap1")
    lease = f"$KV.{SUBJECTS.leases}.{LEASE}"
    for client, stream, name, of in (
        (shadow_, OWN.name, "mine", OWN.subjects[0]),
        (shadow_, WORK.name, SUBJECTS.work_reader("ap1"), SUBJECTS.work_of("ap1")),
        (schedd_, f"KV_{SUBJECTS.leases}", "mine", lease),
    ):
        for more in ({}, {"deliver_group": "g", "flow_control": True, "idle_heartbeat": 10**9}):
            config = {
                "deliver_subject": EVENTS.subjects[0],
                "ack_policy": "none",
                "filter_subject": of,
                **more,
            }
            asked = f"{GUESTS_API}.CONSUMER.CREATE.{stream}.{name}.{of}"
            answer = await client.request(asked, msgspec.json.encode({"config": config}), timeout=PATIENCE_S)
            assert b"make one that is pulled from" in answer.data


WRONG: dict[str, dict[str, object]] = {
    "copies what is stored": {"republish": {"src": ">", "dest": EVENTS.subjects[0]}},
    "takes from another": {"sources": [{"name": EVENTS.name}]},
    "is a copy": {"mirror": {"name": EVENTS.name}},
    "stores under another subject": {"subject_transform": {"src": ">", "dest": EVENTS.subjects[0]}},
    "lets marks remove all": {"allow_rollup_hdrs": True},
    "has more than its events": {"subjects": [OWN.subjects[0], SUBJECTS.events("schedd.ap2")]},
    "has the events of another": {"subjects": [SUBJECTS.events("schedd.ap2")]},
    "has no limit": {"max_bytes": -1},
    "has another name": {"name": EVENTS.name},
    "is none": {"subjects": 7},
}


async def test_no_other_stream_is_made_for_it(pool: Pool) -> None:
    """Than that of its own events; nothing comes to be by the request."""
    client = await pool.raw("schedd of ap1")
    right = {"name": OWN.name, "subjects": OWN.subjects, "max_bytes": LARGEST, "num_replicas": 1}
    asked = f"{GUESTS_API}.STREAM.CREATE.{OWN.name}"
    for how, wrong in WRONG.items():
        answer = await client.request(asked, msgspec.json.encode(right | wrong), timeout=PATIENCE_S)
        assert b'"error"' in answer.data, how
    assert await (await pool.bus("accounting")).last_sequence(OWN.name) is None
    answer = await client.request(asked, msgspec.json.encode(right), timeout=PATIENCE_S)
    assert b'"error"' not in answer.data


async def test_it_has_streams_made_that_the_pool_has_not(pool: Pool) -> None:
    """The pool's own server may have no queue, and nobody else who makes the stores of files and reports."""
    own = await pool.bus("shadow of ap1")
    objects = StreamSpec(
        name=SUBJECTS.object_stream,
        subjects=[SUBJECTS.objects_all],
        max_messages=100,
        objects=True,
        remake=False,
    )
    assert 0 == await own.ensure_stream(objects)
    assert 1 == await own.append(SUBJECTS.object_piece("0" * 64, 0), b"sealed", ttl=60.0)
    assert 1 == await (await pool.bus("shadow")).last_sequence(SUBJECTS.object_stream)


async def test_it_makes_no_stream_of_another(pool: Pool) -> None:
    """The server lets it ask under its own name only."""
    client = await pool.raw("schedd of ap1")
    other = SUBJECTS.event_stream("schedd.ap2")
    body = msgspec.json.encode({"name": other, "subjects": [SUBJECTS.events("schedd.ap2")], "max_bytes": 1})
    with suppress(Error, BusError):
        await client.request(f"{GUESTS_API}.STREAM.CREATE.{other}", body, timeout=0.5)
    assert await (await pool.bus("accounting")).last_sequence(other) is None


class Former:
    """A pool whose access point ap1 has joined before there was an account for it, as `Trust`."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.trust = PoolTrust(directory / "trust", SUBJECTS)
        self.people = KeyPair.new(KeyKind.ACCOUNT).public
        self.trust.keep_access_points({"ap1": AccessPoint(self.people)})

    def statements(self) -> Statements:
        return self.trust.statements()

    def credentials(self, name: str) -> Path:
        if name != "ap1":
            return write(self.directory / f"{name}.creds", partial(self.trust.service, name))
        key = KeyPair.new(KeyKind.USER)
        account = KeyPair((self.directory / "trust/account-POOL.nk").read_text()).public
        nats = {"type": "user", "version": 2, "issuer_account": account, "tags": [ACCESS_POINT]}
        signer = KeyPair((self.directory / "trust/sign-schedd.nk").read_text())
        jwt = encode(signer, key.public, nats, name="ap1", issued=int(time.time()))
        return write_private(self.directory / "ap1.creds", Credential(key.seed, jwt).text())

    def probe(self) -> str:
        return str(self.credentials(PROBE))

    def teller(self) -> Credential:
        return self.trust.teller()


async def test_one_that_has_joined_before_goes_on_until_it_joins_again() -> None:
    """
    In the account of the pool's own services; when it has joined again, nobody is believed there any more.
    """
    with server_directory() as directory:
        trust = Former(directory)
        async with EmbeddedNats(directory / "nats", trust=trust) as server:
            credentials = str(trust.credentials("ap1"))
            async with NatsBus.connect(
                server.url,
                subjects=SUBJECTS,
                identity=daemon("schedd", "ap1"),
                credentials=credentials,
                patience=PATIENCE_S,
                deadline=PATIENCE_S,
            ) as bus:
                assert 4 == await bus.ensure_stream(OWN)
                assert 5 == await bus.append(OWN.subjects[0], b"a frame", expect_last=4)
            trust.trust.keep_access_points({"ap1": AccessPoint(trust.people, apart=True)})
            server.trust_again()
            async with asyncio.timeout(PATIENCE_S):
                while await let_in(server, credentials):
                    await asyncio.sleep(0.01)


async def let_in(server: EmbeddedNats, credentials: str) -> bool:
    client = Client()
    try:
        await client.connect(
            server.url,
            user_credentials=credentials,
            allow_reconnect=False,
            error_cb=_quiet,
            connect_timeout=60,
        )
    except (Error, OSError):
        return False
    finally:
        await client.close()
    return True
