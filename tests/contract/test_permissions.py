"""Each role can do what it is for, on a real server, and cannot do what it is not for."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, aclosing
from typing import Any

import msgspec
import pytest
import pytest_asyncio

from kettle.auth.bus_permissions import permissions
from kettle.bus.leases import KeyLeases
from kettle.bus.nats import NatsBus
from kettle.bus.ports import BucketSpec, NoResponderError, RefusedError, ReplyTimeoutError, Served, StreamSpec
from kettle.embedded import EmbeddedNats, Permissions
from kettle.testing.servers.embedded import server_directory
from kettle_wire.commands import accounting, collector, master, negotiator, questions, schedd, shadow, startd
from kettle_wire.endpoint import Endpoint
from kettle_wire.identity import Identity, daemon, user
from kettle_wire.jobs import JobId
from kettle_wire.subjects import Subjects, ad_key

SUBJECTS = Subjects("pool")
ROLES = ("schedd", "shadow", "startd", "collector", "negotiator", "accounting", "master")
WHO: dict[str, Identity] = {role: daemon(role) for role in ROLES} | {
    "user": user("alice"),
    "other": user("bob"),
    "administrator": user("grace"),
}
PATIENCE_S = 10.0
WORK = StreamSpec(name=SUBJECTS.work_stream, subjects=[SUBJECTS.work_all])
EVENTS = StreamSpec(name=SUBJECTS.event_stream("schedd.schedd"), subjects=[SUBJECTS.events("schedd.schedd")])
FETCH = shadow.FetchInput(
    key=startd.ClaimKey("c", "s"), job=JobId(1, 0), attempt=1, name="f", offset=0, length=1
)
ASK = questions.Ask(
    key=startd.ClaimKey("c", "s"), job=JobId(1, 0), attempt=1, question=questions.SignUrls([])
)
OFFER = shadow.OfferInput(key=startd.ClaimKey("c", "s"), job=JobId(1, 0), attempt=1, name="f")
OBJECTS = StreamSpec(name=SUBJECTS.object_stream, subjects=[SUBJECTS.objects_all], objects=True)
Connect = Callable[..., Awaitable[NatsBus]]


def allowed(name: str, identity: Identity) -> Permissions:
    role = "user" if identity.kind == "user" and name != "administrator" else name
    publish, subscribe = permissions(role, SUBJECTS, identity)
    return Permissions(publish=publish, subscribe=subscribe, replies=identity.kind == "daemon")


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def guarded() -> AsyncIterator[EmbeddedNats]:
    with server_directory() as directory:
        rights = {name: allowed(name, identity) for name, identity in WHO.items()}
        async with EmbeddedNats(
            directory / "nats", credentials=directory / "keys", permissions=rights
        ) as server:
            yield server


@pytest_asyncio.fixture
async def connect(guarded: EmbeddedNats) -> AsyncIterator[Connect]:
    """Connects with the credential of one of `WHO`, claiming to be it or somebody else."""
    async with AsyncExitStack() as stack:

        async def one(name: str, *, claiming: Identity | None = None) -> NatsBus:
            return await stack.enter_async_context(
                NatsBus.connect(
                    guarded.url,
                    subjects=SUBJECTS,
                    identity=claiming or WHO[name],
                    credentials=str(guarded.credentials(name)),
                    patience=PATIENCE_S,
                )
            )

        yield one


REQUESTS: list[tuple[str, Endpoint[Any, Any], msgspec.Struct]] = [
    ("user", schedd.SUBMIT, schedd.Submit(id="1", ad={}, columns=[], rows=[[]])),
    ("user", schedd.ASK_ROOM, schedd.AskRoom(jobs=1)),
    ("user", schedd.ACT, schedd.Act(id="1", action="hold", select=schedd.Select())),
    ("user", schedd.QUERY_JOBS, schedd.QueryJobs(select=schedd.Select())),
    ("user", schedd.QUERY_EVENTS, schedd.QueryEvents(job=JobId(1, 0))),
    ("user", schedd.EXPLAIN, schedd.Explain(job=JobId(1, 0))),
    ("user", schedd.EXPLAIN_JOBS, schedd.ExplainJobs(select=schedd.Select())),
    ("user", collector.QUERY_ADS, collector.QueryAds()),
    ("user", negotiator.WHY, negotiator.Why(submitter="a", schedd="s", autocluster=1)),
    ("user", negotiator.QUERY_PRIORITIES, negotiator.QueryPriorities()),
    ("user", accounting.QUERY_HISTORY, accounting.QueryHistory()),
    ("user", accounting.QUERY_USAGE, accounting.QueryUsage()),
    ("administrator", schedd.QUERY_JOBS, schedd.QueryJobs(select=schedd.Select())),
    ("administrator", master.CONTROL, master.Control(id="1", action="off")),
    ("administrator", master.QUERY_DAEMONS, master.QueryDaemons()),
    ("administrator", negotiator.RESET_USAGE, negotiator.ResetUsage(id="1", name=None)),
    ("schedd", startd.ALIVE, startd.Alive(schedd="s", claims=[], deadline=None)),
    ("schedd", startd.RELEASE, startd.Release(claims=[], reason="")),
    ("schedd", shadow.LOOK_AFTER, shadow.LookAfter()),
    ("shadow", startd.ACTIVATE, startd.Activate(activations=[])),
    ("shadow", startd.CONFIRM, startd.Confirm(recorded=[])),
    ("shadow", schedd.SYNC, schedd.ShadowSync(shadow="s", attempts=[])),
    ("shadow", schedd.REPORT, schedd.ReportAttempts(shadow="s", reports=[])),
    ("startd", shadow.FETCH_INPUT, FETCH),
    ("startd", shadow.ANSWER, ASK),
    ("startd", shadow.OFFER_INPUT, OFFER),
    ("negotiator", schedd.MATCHED, schedd.Matched(cycle=1, matches=[])),
]
FORBIDDEN: list[tuple[str, Endpoint[Any, Any], msgspec.Struct]] = [
    ("user", startd.ACTIVATE, startd.Activate(activations=[])),
    ("user", schedd.MATCHED, schedd.Matched(cycle=1, matches=[])),
    ("user", schedd.REPORT, schedd.ReportAttempts(shadow="s", reports=[])),
    ("user", shadow.FETCH_INPUT, FETCH),
    ("user", shadow.ANSWER, ASK),
    ("user", master.CONTROL, master.Control(id="1", action="off")),
    ("user", master.QUERY_DAEMONS, master.QueryDaemons()),
    ("user", negotiator.RESET_USAGE, negotiator.ResetUsage(id="1", name=None)),
    ("startd", master.CONTROL, master.Control(id="1", action="off")),
    ("master", master.CONTROL, master.Control(id="1", action="off")),
    ("startd", startd.ALIVE, startd.Alive(schedd="s", claims=[], deadline=None)),
    ("startd", schedd.SUBMIT, schedd.Submit(id="1", ad={}, columns=[], rows=[[]])),
    ("shadow", schedd.MATCHED, schedd.Matched(cycle=1, matches=[])),
    ("schedd", shadow.FETCH_INPUT, FETCH),
    ("schedd", shadow.ANSWER, ASK),
    ("schedd", shadow.OFFER_INPUT, OFFER),
    ("negotiator", startd.ALIVE, startd.Alive(schedd="s", claims=[], deadline=None)),
    ("collector", schedd.ACT, schedd.Act(id="1", action="remove", select=schedd.Select())),
    ("accounting", schedd.ACT, schedd.Act(id="1", action="remove", select=schedd.Select())),
    ("master", startd.RELEASE, startd.Release(claims=[], reason="")),
]


def named(case: tuple[str, Endpoint[Any, Any], msgspec.Struct]) -> str:
    return f"{case[0]} {case[1].role}.{case[1].verb}"


@pytest.mark.parametrize("case", REQUESTS, ids=named)
async def test_a_role_may_ask_what_it_needs(
    connect: Connect, case: tuple[str, Endpoint[Any, Any], Any]
) -> None:
    """The question arrives under the asker's identity, and the answer comes back."""
    asker, endpoint, request = case
    heard: list[Identity] = []

    async def refuse(_request: msgspec.Struct, caller: Identity) -> msgspec.Struct:
        heard.append(caller)
        raise RefusedError("heard", "a refusal is an answer")

    service = await connect(endpoint.role)
    await service.serve(
        endpoint.role, "x", [Served(endpoint, refuse, lambda: [WHO["administrator"].name])], version="1.0.0"
    )
    with pytest.raises(RefusedError) as answer:
        await (await connect(asker)).call(endpoint, "x", request, deadline=PATIENCE_S)
    assert "heard" == answer.value.code
    assert [WHO[asker]] == heard


@pytest.mark.parametrize("case", FORBIDDEN, ids=named)
async def test_a_role_may_not_ask_anything_else(
    connect: Connect, case: tuple[str, Endpoint[Any, Any], Any]
) -> None:
    """The server stops it, and the asker is told."""
    asker, endpoint, request = case
    with pytest.raises(RefusedError) as answer:
        await (await connect(asker)).call(endpoint, "x", request, deadline=PATIENCE_S)
    assert "not_permitted" == answer.value.code


@pytest.mark.parametrize("victim", [user("bob"), daemon("schedd"), daemon("negotiator")], ids=str)
async def test_nobody_speaks_or_listens_for_another(connect: Connect, victim: Identity) -> None:
    """A person can neither ask under another identity nor read another's replies."""
    with pytest.raises((RefusedError, ReplyTimeoutError)):
        await (await connect("user", claiming=victim)).call(
            schedd.QUERY_JOBS, "x", schedd.QueryJobs(select=schedd.Select()), deadline=0.5
        )
    mine = await connect("user")
    replies: list[str] = []
    await mine.listen(f"_INBOX_{victim.token}.>", lambda subject, _data: replies.append(subject))
    await mine.listen("kettle.pool.>", lambda subject, _data: replies.append(subject))
    if victim == user("bob"):
        await echo(connect, "other")
    assert [] == replies


async def echo(connect: Connect, asker: str) -> None:
    with pytest.raises(NoResponderError):
        await (await connect(asker)).call(
            schedd.QUERY_JOBS, "nobody", schedd.QueryJobs(select=schedd.Select())
        )


async def test_a_schedd_owns_its_stream(connect: Connect) -> None:
    """It makes it and appends frames; shadow and accounting follow them."""
    owner = await connect("schedd")
    last = await owner.ensure_stream(EVENTS)
    await owner.append(EVENTS.subjects[0], b"frame", expect_last=last)
    for role in ("shadow", "accounting"):
        bus = await connect(role)
        for ephemeral in (False, True):
            reading = bus.consume(
                EVENTS.name, f"{role}_1", subject=EVENTS.subjects[0], after=last, ephemeral=ephemeral
            )
            async with aclosing(reading) as batches, asyncio.timeout(PATIENCE_S):
                batch = await anext(batches)
                assert b"frame" == batch.messages[0].data
                await batch.ack()


@pytest.mark.parametrize(
    "role", ["user", "shadow", "startd", "collector", "negotiator", "accounting", "master"]
)
async def test_nobody_else_writes_the_events_of_a_schedd(connect: Connect, role: str) -> None:
    """The log speaks with one voice."""
    await (await connect("schedd")).ensure_stream(EVENTS)
    with pytest.raises(RefusedError) as answer:
        await (await connect(role)).append(EVENTS.subjects[0], b"forged", deadline=PATIENCE_S)
    assert "not_permitted" == answer.value.code


@pytest.mark.parametrize("role", ["user", "startd", "master"])
async def test_events_are_followed_by_those_who_need_them(connect: Connect, role: str) -> None:
    """Events of other people's jobs are not for everybody."""
    await (await connect("schedd")).ensure_stream(EVENTS)
    bus = await connect(role)
    with pytest.raises(RefusedError):
        await asyncio.wait_for(anext(bus.consume(EVENTS.name, "x", subject=EVENTS.subjects[0])), PATIENCE_S)


async def test_startds_report_and_shadows_read(connect: Connect) -> None:
    """Worker reports go one way."""
    worker, reader = await connect("startd"), await connect("shadow")
    await reader.ensure_stream(WORK)
    last = await worker.append(SUBJECTS.work("schedd", "host"), b"report")
    reading = reader.consume(WORK.name, "shadow", subject=SUBJECTS.work_of("schedd"), after=last - 1)
    async with aclosing(reading) as batches, asyncio.timeout(PATIENCE_S):
        batch = await anext(batches)
        assert b"report" == batch.messages[-1].data
        await batch.ack()
    with pytest.raises(RefusedError):
        await asyncio.wait_for(anext(worker.consume(WORK.name, "w", subject=SUBJECTS.work_all)), PATIENCE_S)
    for role in ("shadow", "schedd", "user"):
        with pytest.raises(RefusedError):
            await (await connect(role)).append(
                SUBJECTS.work("schedd", "host"), b"forged", deadline=PATIENCE_S
            )


ADS = [
    ("startd", "Machine"),
    ("startd", "StartDaemon"),
    ("schedd", "Scheduler"),
    ("schedd", "Submitter"),
    ("collector", "Collector"),
    ("collector", "Absent"),
    ("negotiator", "Negotiator"),
    ("accounting", "Accounting"),
    ("master", "DaemonMaster"),
]


@pytest.mark.parametrize(("role", "ad_type"), ADS)
async def test_each_advertises_itself_and_no_other(connect: Connect, role: str, ad_type: str) -> None:
    """A role puts ads of its own types; collector and negotiator see them."""
    bus = await connect(role)
    await bus.ensure_bucket(BucketSpec(name=SUBJECTS.ads, ttl=60.0))
    key = ad_key(ad_type, f"{role}@host.example")
    for reader in ("collector", "negotiator"):
        async with aclosing((await connect(reader)).watch(SUBJECTS.ads, f"{ad_type}.>")) as changes:
            async with asyncio.timeout(PATIENCE_S):
                while await anext(changes) is not None:
                    pass
                await bus.put(SUBJECTS.ads, key, b"ad")
                change = await anext(changes)
            assert change is not None
            assert (key, b"ad") == (change.key, change.value)
    for _, other in ADS:
        if (role, other) not in ADS:
            with pytest.raises(RefusedError):
                await bus.update(SUBJECTS.ads, ad_key(other, "forged"), b"ad", expect=0)


async def test_capabilities_are_for_startd_and_negotiator(connect: Connect) -> None:
    """The one writes, the other reads, nobody else does either."""
    bus = await connect("startd")
    spec = BucketSpec(name=SUBJECTS.private_ads, ttl=60.0)
    for maker in (bus, await connect("collector"), await connect("negotiator")):
        await maker.ensure_bucket(spec)
    await bus.update(spec.name, "slot1", b"secret", expect=0)
    async with (
        aclosing((await connect("negotiator")).watch(spec.name)) as changes,
        asyncio.timeout(PATIENCE_S),
    ):
        change = await anext(changes)
    assert change is not None
    assert b"secret" == change.value
    for role in ("collector", "schedd", "shadow", "accounting", "master", "user", "startd"):
        with pytest.raises(RefusedError):
            await asyncio.wait_for(anext((await connect(role)).watch(spec.name)), PATIENCE_S)
    for role in ("collector", "schedd", "shadow", "negotiator", "user"):
        with pytest.raises(RefusedError):
            await (await connect(role)).update(spec.name, "slot2", b"forged", expect=0)


@pytest.mark.parametrize("role", ["schedd", "collector", "negotiator", "accounting"])
async def test_owners_of_shards_contend_by_lease(connect: Connect, role: str) -> None:
    """A lease is got, renewed and released."""
    bus = await connect(role)
    await bus.ensure_bucket(BucketSpec(name=SUBJECTS.leases, memory=False))
    async with asyncio.timeout(PATIENCE_S):
        lease = await KeyLeases(bus, SUBJECTS.leases).acquire(role, "me", ttl=5.0)
        await lease.release()


async def test_a_notice_is_given_by_its_own_kind(connect: Connect) -> None:
    """A schedd says that it is there; a shadow hears it."""
    heard = asyncio.Event()
    await (await connect("shadow")).listen(
        SUBJECTS.notice("schedd", "x"), lambda _subject, _data: heard.set()
    )
    await (await connect("schedd")).publish(SUBJECTS.notice("schedd", "x"), b"")
    await asyncio.wait_for(heard.wait(), PATIENCE_S)


async def test_a_shadow_stores_objects_and_a_startd_reads_them(connect: Connect) -> None:
    """Neither does the other's part, and people none."""
    sender, machine, person = await connect("shadow"), await connect("startd"), await connect("user")
    piece = SUBJECTS.object_piece("a", 0)
    await sender.ensure_stream(OBJECTS)
    await sender.append(piece, b"data", ttl=60.0)
    assert b"data" == await machine.newest(OBJECTS.name, piece)
    for other in (machine, person):
        with pytest.raises((RefusedError, ReplyTimeoutError)):
            await other.append(piece, b"other", ttl=60.0, deadline=1.0)
    for other in (sender, person):
        with pytest.raises((RefusedError, ReplyTimeoutError)):
            await other.newest(OBJECTS.name, piece, deadline=1.0)
