"""
Attacks that have somebody else write what the attacker may not, by naming that as the place for an answer; and what
becomes of a credential that is not trusted any more.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest
import pytest_asyncio
from nats.aio.client import Client
from nats.errors import Error

from kettle.auth.bus_permissions import MONITOR as MONITORING
from kettle.auth.trust.files import key_in
from kettle.auth.trust.jwts import encode
from kettle.auth.trust.keys import KeyPair
from kettle.auth.trust.keys import Kind as KeyKind
from kettle.auth.trust.pool import Kind
from kettle.auth.trust.server import UNLIMITED, Permissions
from kettle.bus.credentials import Credential
from kettle.bus.nats import NatsBus
from kettle.bus.ports import BucketSpec, NoResponderError, RefusedError, Served, StreamSpec
from kettle.embedded import EmbeddedNats
from kettle.testing.patience import PATIENCE_S
from kettle.testing.servers.embedded import server_directory
from kettle.testing.servers.members import Members
from kettle_services.collector.readers import Readers
from kettle_wire.commands import collector, schedd, startd
from kettle_wire.endpoint import Endpoint
from kettle_wire.identity import Identity, daemon, user, visitor, worker
from kettle_wire.subjects import API, GUESTS_API, Subjects, machine_key

SUBJECTS = Subjects("pool")
WHO: dict[str, tuple[str, Identity]] = {
    role: (role, daemon(role)) for role in ("schedd", "shadow", "collector", "negotiator", "gateway")
} | {
    "startd": ("startd", worker("host")),
    "neighbour": ("startd", worker("other.host")),
    "ada": ("user", user("ada")),
    "bob": ("user", user("bob")),
    "administrator": ("administrator", user("grace")),
    "monitor": (MONITORING, daemon(MONITORING)),
    "visitor": ("visitor", visitor("ap@home")),
}
EVENTS = StreamSpec(name=SUBJECTS.event_stream("schedd.schedd"), subjects=[SUBJECTS.events("schedd.schedd")])
MONITOR = StreamSpec(
    name=SUBJECTS.monitor_stream, subjects=[SUBJECTS.tail_all], transform=SUBJECTS.monitor_transform
)
RawConnect = Callable[[str], Awaitable[Client]]


class Pool:
    """A server with what a pool has on it, and a schedd that answers."""

    def __init__(self, server: EmbeddedNats, members: Members, stack: AsyncExitStack) -> None:
        self.server, self.members, self._stack = server, members, stack
        self.heard: list[str] = []

    async def bus(self, name: str) -> NatsBus:
        return await self._stack.enter_async_context(
            NatsBus.connect(
                self.server.url,
                subjects=SUBJECTS,
                identity=WHO[name][1],
                credentials=str(self.server.credentials(name)),
                patience=PATIENCE_S,
                deadline=PATIENCE_S,
            )
        )

    async def raw(self, name: str, credentials: Path | None = None) -> Client:
        """A client that publishes whatever it likes."""
        client = Client()
        self._stack.push_async_callback(client.close)  # also of one that was refused
        await client.connect(
            self.server.url,
            user_credentials=str(credentials or self.server.credentials(name)),
            inbox_prefix=WHO[name][1].inbox.encode(),
            error_cb=_quiet,
            connect_timeout=int(PATIENCE_S),
            allow_reconnect=False,
        )
        return client

    async def answer(self, bus: NatsBus, name: str) -> None:
        async def heard(_request: msgspec.Struct, caller: Identity) -> msgspec.Struct:
            self.heard.append(caller.token)
            raise RefusedError("heard", "a refusal is an answer")

        role, _, own = name.partition("/")
        await bus.serve(role, own, [Served(_ENDPOINTS[role], heard)], version="1.0.0")


_ENDPOINTS: dict[str, Endpoint[Any, Any]] = {
    "schedd": schedd.QUERY_JOBS,
    "startd": startd.RELEASE,
    "collector": collector.QUERY_ADS,
}


async def _quiet(_error: Exception) -> None:
    pass


@pytest_asyncio.fixture
async def pool() -> AsyncIterator[Pool]:
    async with AsyncExitStack() as stack:
        directory = stack.enter_context(server_directory())
        members = Members(directory / "keys", SUBJECTS, WHO)
        server = await stack.enter_async_context(EmbeddedNats(directory / "nats", trust=members))
        made = Pool(server, members, stack)
        await (await made.bus("gateway")).ensure_stream(MONITOR)
        await (await made.bus("schedd")).ensure_stream(EVENTS)
        collector = await made.bus("collector")
        await collector.ensure_bucket(BucketSpec(name=SUBJECTS.ads, ttl=60.0))
        await collector.answer(SUBJECTS.readers(">"), Readers(collector, SUBJECTS, time.monotonic).answer)
        yield made


async def settled(client: Client) -> None:
    """What it has published has been dealt with, and so have the answers."""
    for _ in range(3):
        await client.flush()
    with pytest.raises(Error):
        await client.request("nobody", b"", timeout=0.3)


ASKED = [
    ("ada", SUBJECTS.command("schedd", "ap", "query_jobs", user("ada").token)),
    ("ada", f"{GUESTS_API}.STREAM.INFO.{MONITOR.name}"),
    ("startd", f"$KV.{SUBJECTS.ads}.{machine_key('host', 'slot1@host')}"),
    ("startd", f"{GUESTS_API}.STREAM.INFO.{SUBJECTS.work_stream}"),
    ("shadow", SUBJECTS.command("schedd", "ap", "query_jobs", daemon("shadow").token)),
]


@pytest.mark.parametrize("place", [SUBJECTS.events("schedd.schedd"), f"{API}.STREAM.DELETE.{EVENTS.name}"])
@pytest.mark.parametrize(("who", "asked"), ASKED, ids=[f"{who}-{at}" for at, (who, _) in enumerate(ASKED)])
async def test_no_answer_goes_where_the_asker_may_not_publish(
    pool: Pool, who: str, asked: str, place: str
) -> None:
    """Neither a service nor JetStream adds to the log, or deletes it, for somebody else."""
    service = await pool.bus("schedd")
    await pool.answer(service, "schedd/ap")
    attacker = await pool.raw(who)
    request = msgspec.msgpack.encode(schedd.QueryJobs(select=schedd.Select()))
    await attacker.publish(asked, request, reply=place)
    await settled(attacker)
    assert 0 == await service.last_sequence(EVENTS.name)


EVERYTHING = f"{GUESTS_API}.CONSUMER.CREATE.{MONITOR.name}.{'n' * 22}"
OWN = f"{GUESTS_API}.CONSUMER.CREATE.{MONITOR.name}.mine.{SUBJECTS.monitor('ada')}"
WORK = StreamSpec(name=SUBJECTS.work_stream, subjects=[SUBJECTS.work_all])
REPORTS = f"{SUBJECTS.work_reader('ap@home')}.{SUBJECTS.work_of('ap@home')}"
TO_VISITOR = f"{GUESTS_API}.CONSUMER.CREATE.{WORK.name}.{REPORTS}"


@pytest.mark.parametrize("more", [{}, {"deliver_group": "g", "flow_control": True, "idle_heartbeat": 10**9}])
@pytest.mark.parametrize(
    ("who", "asked", "of"),
    [
        ("administrator", EVERYTHING, ""),
        ("monitor", EVERYTHING, ""),
        ("ada", OWN, SUBJECTS.monitor("ada")),
        ("visitor", TO_VISITOR, SUBJECTS.work_of("ap@home")),
    ],
)
async def test_jetstream_delivers_nowhere_for_a_guest(
    pool: Pool, who: str, asked: str, of: str, more: dict[str, object]
) -> None:
    """
    A consumer that delivers by itself, into the log for example, is made for nobody; one that is pulled from is.
    """
    owner, gateway, shadow = await pool.bus("schedd"), await pool.bus("gateway"), await pool.bus("shadow")
    await shadow.ensure_stream(WORK)
    client = await pool.raw(who)
    filters = {"filter_subject": of} if of else {}
    pushed = {"deliver_subject": EVENTS.subjects[0], "ack_policy": "none", **filters, **more}
    answer = await client.request(asked, msgspec.json.encode({"config": pushed}), timeout=PATIENCE_S)
    assert b"make one that is pulled from" in answer.data
    await gateway.append(SUBJECTS.tail("ada", 1, 0, "job.held"), b"forged")
    await (await pool.bus("startd")).append(SUBJECTS.work("ap@home", "host"), b"forged")
    await settled(client)
    assert 0 == await owner.last_sequence(EVENTS.name)
    pulled = msgspec.json.encode({"config": {"ack_policy": "none", **filters}})
    made = msgspec.json.decode((await client.request(asked, pulled, timeout=PATIENCE_S)).data)
    assert 1 == made["num_pending"]


async def test_a_guessable_name_is_not_read_from(pool: Pool) -> None:
    """
    Who knows a consumer's name reads from it, so one that reads everything has a name that nobody guesses.
    """
    client = await pool.raw("monitor")
    for name in ("prometheus", "n", "a.b", "x" * 300):
        asked = f"{GUESTS_API}.CONSUMER.CREATE.{MONITOR.name}.{name}"
        body = msgspec.json.encode({"config": {"durable_name": name, "ack_policy": "explicit"}})
        with suppress(Error):  # where the name makes it another subject, the server lets nobody ask
            assert b'"error"' in (await client.request(asked, body, timeout=0.5)).data


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"null",
        b"[" * 100_000,
        b'{"config":' * 5_000,
        b'{"config":{"metadata":{"a":"%s"}}}' % (b"x" * 8_000_000),
        b'{"config":{"description":"\\ud800"}}',
        b'{"config":{"max_deliver":%s}}' % (b"9" * 400),
        b'{"config":{"inactive_threshold":1e999}}',
        b'{"config":{"inactive_threshold":-1}}',
        b'{"config":{"filter_subjects":{"a":[1]}}}',
        b'{"config":{"name":7,"durable_name":[]}}',
    ],
    ids=range(11),
)
async def test_what_is_no_consumer_is_refused(pool: Pool, body: bytes) -> None:
    """With a sentence, and the collector goes on."""
    client = await pool.raw("administrator")
    for asked in (EVERYTHING, f"{EVERYTHING}.>"):
        assert b'"error"' in (await client.request(asked, body, timeout=PATIENCE_S)).data
    pulled = msgspec.json.encode({"config": {"ack_policy": "none"}})
    assert b'"error"' not in (await client.request(EVERYTHING, pulled, timeout=PATIENCE_S)).data


async def test_nobody_changes_the_consumer_of_somebody_else(pool: Pool) -> None:
    """What has the name of another's consumer is not made; that one stays as it was."""
    name = "n" * 22
    everything = f"{GUESTS_API}.CONSUMER.CREATE.{MONITOR.name}.{name}"
    body = msgspec.json.encode({"config": {"durable_name": name, "ack_policy": "explicit"}})
    monitor, ada = await pool.raw("monitor"), await pool.raw("ada")
    assert b'"error"' not in (await monitor.request(everything, body, timeout=PATIENCE_S)).data
    mine = SUBJECTS.monitor("ada")
    config = {"durable_name": name, "ack_policy": "explicit", "filter_subject": mine}
    for action in ("", "create", "update"):
        asked = msgspec.json.encode({"config": config, "action": action})
        answer = await ada.request(f"{everything}.{mine}", asked, timeout=PATIENCE_S)
        assert b'"error"' in answer.data


async def test_no_answer_is_taken_for_a_frame(pool: Pool) -> None:
    """
    Answers of services and of JetStream, stored events among them, reach the subject of frames in the account of people; who
    follows frames hears what their owner has stored.
    """
    owner, gateway, follower = await pool.bus("schedd"), await pool.bus("gateway"), await pool.bus("ada")
    await pool.answer(owner, "schedd/ap")
    await gateway.append(SUBJECTS.tail("bob", 1, 0, "job.held"), b"stored")
    heard: list[bytes] = []
    everything: list[bytes] = []
    place = EVENTS.subjects[0]
    await follower.listen(place, lambda _subject, data: heard.append(data), guarded=True)
    await follower.listen(SUBJECTS.events_all, lambda _subject, data: everything.append(data))
    attacker, of = await pool.raw("bob"), SUBJECTS.monitor("bob")
    made = f"{GUESTS_API}.CONSUMER.CREATE.{MONITOR.name}.mine.{of}"
    config = {"filter_subject": of, "ack_policy": "none"}
    await attacker.request(made, msgspec.json.encode({"config": config}), timeout=PATIENCE_S)
    asked = SUBJECTS.command("schedd", "ap", "query_jobs", user("bob").token)
    await attacker.publish(f"{GUESTS_API}.CONSUMER.MSG.NEXT.{MONITOR.name}.mine", b"1", reply=place)
    await attacker.publish(f"{GUESTS_API}.STREAM.INFO.{MONITOR.name}", b"", reply=place)
    await attacker.publish(
        asked, msgspec.msgpack.encode(schedd.QueryJobs(select=schedd.Select())), reply=place
    )
    await settled(attacker)
    await owner.append(place, b"a frame", expect_last=0)
    async with asyncio.timeout(PATIENCE_S):
        while not heard or len(everything) < 4:
            await asyncio.sleep(0.01)
    assert [b"a frame"] == heard
    assert b"stored" in everything


@pytest.mark.parametrize(
    ("who", "asked"),
    [
        ("ada", SUBJECTS.command("schedd", "ap", "query_jobs", user("ada").token)),
        ("startd", SUBJECTS.work("schedd", "host")),
        ("shadow", SUBJECTS.notice("shadow", "x")),
    ],
)
async def test_no_trace_goes_where_its_sender_may_not_publish(pool: Pool, who: str, asked: str) -> None:
    """
    A message can ask the server to tell somewhere what becomes of it; the server lets nobody name the log as that place, nor
    somebody else's inbox.
    """
    owner, other, attacker = await pool.bus("schedd"), await pool.raw("bob"), await pool.raw(who)
    heard = await other.subscribe(f"{user('bob').inbox}.x")  # pyright: ignore[reportUnknownMemberType]
    for place in (EVENTS.subjects[0], f"{user('bob').inbox}.x", f"{API}.STREAM.DELETE.{EVENTS.name}"):
        for more in ({}, {"Nats-Trace-Only": "true"}):
            await attacker.publish(asked, b"", headers={"Nats-Trace-Dest": place, **more})
    await settled(attacker)
    assert 0 == await owner.last_sequence(EVENTS.name)
    assert 0 == heard.pending_msgs


async def test_an_answer_is_no_command(pool: Pool) -> None:
    """
    What a service or JetStream says to a startd that names another's subject does not reach that one as an order.
    """
    victim, attacker = await pool.bus("neighbour"), await pool.raw("startd")
    await pool.answer(victim, "startd/other.host")
    order = SUBJECTS.command("startd", "other.host", "release", daemon("schedd").token)
    await attacker.publish(f"$KV.{SUBJECTS.ads}.{machine_key('host', 'slot1@host')}", b"ad", reply=order)
    await attacker.publish(f"{GUESTS_API}.STREAM.INFO.{SUBJECTS.work_stream}", b"", reply=order)
    await settled(attacker)
    assert [] == pool.heard
    with pytest.raises(RefusedError):
        await (await pool.bus("schedd")).call(
            startd.RELEASE, "other.host", startd.Release(claims=[], reason=""), deadline=PATIENCE_S
        )
    assert [daemon("schedd").token] == pool.heard


async def test_a_service_gives_itself_no_right(pool: Pool) -> None:
    """
    A message that it sends to itself, with what it would like to write as the place for the answer, permits nothing.
    """
    attacker, owner = await pool.raw("shadow"), await pool.bus("schedd")
    notice = SUBJECTS.notice("shadow", "x")
    heard = await attacker.subscribe(notice)  # pyright: ignore[reportUnknownMemberType]
    await attacker.publish(notice, b"", reply=EVENTS.subjects[0])
    await heard.next_msg(timeout=PATIENCE_S)
    await attacker.publish(EVENTS.subjects[0], b"forged")
    await settled(attacker)
    assert 0 == await owner.last_sequence(EVENTS.name)


@pytest.mark.parametrize("signs", ["sign-person", "sign-worker", "account-PEOPLE"])
async def test_a_stolen_key_makes_members_of_its_kind_only(pool: Pool, signs: str, tmp_path: Path) -> None:
    """It signs for no other account, whatever account is named, and gives nobody permissions of his own."""
    trust = Path(pool.server.credentials("ada")).parent / "trust"
    signer = KeyPair((trust / f"{signs}.nk").read_text())
    for account in ("POOL", "WORKERS", "PEOPLE", "SYSTEM"):
        of = KeyPair((trust / f"account-{account}.nk").read_text()).public
        own = (signs, account) in {("sign-person", "PEOPLE"), ("sign-worker", "WORKERS")}
        key = KeyPair.new(KeyKind.USER)
        for claims in ({}, UNLIMITED | Permissions((">",), (">",)).claims()):
            said = {"type": "user", "version": 2, "issuer_account": of, **claims}
            forged = Credential(key.seed, encode(signer, key.public, said, name="eve", issued=1)).text()
            (file := tmp_path / "forged.creds").write_text(forged)
            if own and not claims:
                await pool.raw("ada", file)
            elif (signs, account) != ("account-PEOPLE", "PEOPLE"):
                with pytest.raises(Error, match="Authorization Violation"):
                    await pool.raw("ada", file)


async def test_who_is_not_trusted_any_more_is_cut_off(pool: Pool) -> None:
    """
    For good.  Others of its account stay connected, and in other accounts what is on its way is answered.
    """
    gone, stays, owner = await pool.raw("ada"), await pool.bus("bob"), await pool.bus("schedd")
    answer, arrived = asyncio.Event(), asyncio.Event()

    async def slow(_request: startd.Release, _caller: Identity) -> startd.Done:
        arrived.set()
        await answer.wait()
        raise RefusedError("heard", "at last")

    served = [Served(startd.RELEASE, slow)]
    await (await pool.bus("startd")).serve("startd", "host", served, version="1.0.0")
    release = startd.Release(claims=[], reason="")
    asking = asyncio.create_task(owner.call(startd.RELEASE, "host", release, deadline=PATIENCE_S))
    await asyncio.wait_for(arrived.wait(), PATIENCE_S)
    key = key_in(pool.server.credentials("ada"))
    assert key is not None
    pool.members.revoke(Kind.PERSON, [key.public])
    pool.server.trust_again()
    async with asyncio.timeout(PATIENCE_S):
        while not gone.is_closed:
            await asyncio.sleep(0.01)
    with pytest.raises(Error, match="Authorization Violation"):
        await pool.raw("ada")
    answer.set()
    with pytest.raises(RefusedError, match="at last"):
        await asking
    with pytest.raises(NoResponderError):
        await stays.call(schedd.QUERY_JOBS, "nobody", schedd.QueryJobs(select=schedd.Select()))
