"""Each role can do what it is for, on a real server, and cannot do what it is not for."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, aclosing
from typing import Any

import msgspec
import pytest
import pytest_asyncio

from kettle.auth.bus_permissions import SHARDS
from kettle.bus.leases import KeyLeases
from kettle.bus.nats import NatsBus
from kettle.bus.ports import BucketSpec, NoResponderError, RefusedError, ReplyTimeoutError, Served, StreamSpec
from kettle.embedded import EmbeddedNats
from kettle.testing.patience import PATIENCE_S
from kettle.testing.servers.embedded import server_directory
from kettle.testing.servers.members import Members
from kettle_wire.commands import (
    accounting,
    attempt_reports,
    collector,
    master,
    negotiator,
    questions,
    schedd,
    shadow,
    startd,
)
from kettle_wire.endpoint import Endpoint
from kettle_wire.identity import Identity, daemon, user, worker
from kettle_wire.jobs import JobId
from kettle_wire.subjects import Subjects, ad_key, machine_key, slot_key, token

SUBJECTS = Subjects("pool")
ROLES = ("schedd", "shadow", "collector", "negotiator", "accounting", "master")
WHO: dict[str, tuple[str, Identity]] = {role: (role, daemon(role)) for role in ROLES} | {
    "startd": ("startd", worker("host")),
    "neighbour": ("startd", worker("other.host")),
    "user": ("user", user("alice")),
    "other": ("user", user("bob")),
    "administrator": ("administrator", user("grace")),
}
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


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def guarded() -> AsyncIterator[EmbeddedNats]:
    with server_directory() as directory:
        async with EmbeddedNats(
            directory / "nats", trust=Members(directory / "keys", SUBJECTS, WHO)
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
                    identity=claiming or WHO[name][1],
                    credentials=str(guarded.credentials(name)),
                    patience=PATIENCE_S,
                    deadline=PATIENCE_S,
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
    ("shadow", attempt_reports.SYNC, attempt_reports.ShadowSync(shadow="s", attempts=[])),
    ("shadow", attempt_reports.REPORT, attempt_reports.ReportAttempts(shadow="s", reports=[])),
    ("startd", shadow.FETCH_INPUT, FETCH),
    ("startd", shadow.ANSWER, ASK),
    ("startd", shadow.OFFER_INPUT, OFFER),
    ("negotiator", schedd.MATCHED, schedd.Matched(cycle=1, matches=[])),
]
FORBIDDEN: list[tuple[str, Endpoint[Any, Any], msgspec.Struct]] = [
    ("user", startd.ACTIVATE, startd.Activate(activations=[])),
    ("user", schedd.MATCHED, schedd.Matched(cycle=1, matches=[])),
    ("user", attempt_reports.REPORT, attempt_reports.ReportAttempts(shadow="s", reports=[])),
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

    service, name = await connect(endpoint.role), WHO[endpoint.role][1].name
    await service.serve(
        endpoint.role,
        name,
        [Served(endpoint, refuse, lambda: [WHO["administrator"][1].name])],
        version="1.0.0",
    )
    with pytest.raises(RefusedError) as answer:
        await (await connect(asker)).call(endpoint, name, request, deadline=PATIENCE_S)
    assert "heard" == answer.value.code
    assert [WHO[asker][1]] == heard


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
    await mine.listen(f"_INBOX.{victim.token}.>", lambda subject, _data: replies.append(subject))
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
KEYS = {"Machine": machine_key("host", "slot1@host"), "StartDaemon": ad_key("StartDaemon", "host")}


@pytest.mark.parametrize(("role", "ad_type"), ADS)
async def test_each_advertises_itself_and_no_other(connect: Connect, role: str, ad_type: str) -> None:
    """A role puts ads of its own types; collector and negotiator see them."""
    bus, spec = await connect(role), BucketSpec(name=SUBJECTS.ads, ttl=60.0)
    for maker in (await connect("collector"), bus):  # a startd finds it, and makes none
        await maker.ensure_bucket(spec)
    key = KEYS.get(ad_type) or ad_key(ad_type, f"{role}@host.example")
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
                await bus.update(SUBJECTS.ads, KEYS.get(other) or ad_key(other, "forged"), b"ad", expect=0)


@pytest.mark.parametrize(
    "key", [machine_key("host", "slot1@host"), ad_key("StartDaemon", "host")], ids=["slot", "startd"]
)
async def test_no_startd_advertises_another(connect: Connect, key: str) -> None:
    """Each has its own key, and its name is a part of what it may write."""
    await (await connect("collector")).ensure_bucket(BucketSpec(name=SUBJECTS.ads, ttl=60.0))
    with pytest.raises(RefusedError) as answer:
        await (await connect("neighbour")).update(SUBJECTS.ads, key, b"forged", expect=0)
    assert "not_permitted" == answer.value.code


async def test_no_startd_speaks_or_listens_for_another(connect: Connect) -> None:
    """It reports in its own name alone, asks shadows in no other, and hears no commands but its own."""
    neighbour, asker = await connect("neighbour"), await connect("schedd")
    await (await connect("shadow")).ensure_stream(WORK)
    with pytest.raises(RefusedError) as answer:
        await neighbour.append(SUBJECTS.work("schedd", "host"), b"forged", deadline=PATIENCE_S)
    assert "not_permitted" == answer.value.code
    heard: list[str] = []
    for subject in (SUBJECTS.commands_of("startd", "host"), SUBJECTS.commands_at("startd"), "_R_.>"):
        await neighbour.listen(subject, lambda subject, _data: heard.append(subject))
    with pytest.raises(NoResponderError):
        await asker.call(startd.RELEASE, "host", startd.Release(claims=[], reason=""))
    assert [] == heard
    with pytest.raises(RefusedError) as answer:
        await (await connect("neighbour", claiming=WHO["startd"][1])).call(
            shadow.FETCH_INPUT, "x", FETCH, deadline=PATIENCE_S
        )
    assert "not_permitted" == answer.value.code


async def test_capabilities_are_for_startd_and_negotiator(connect: Connect) -> None:
    """The one writes, the other reads, nobody else does either."""
    bus = await connect("startd")
    spec = BucketSpec(name=SUBJECTS.private_ads, ttl=60.0)
    for maker in (await connect("collector"), await connect("negotiator"), bus):
        await maker.ensure_bucket(spec)
    await bus.update(spec.name, slot_key("host", "slot1"), b"secret", expect=0)
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
    for role in ("collector", "schedd", "shadow", "negotiator", "user", "neighbour"):
        with pytest.raises(RefusedError):
            await (await connect(role)).update(spec.name, slot_key("host", "slot2"), b"forged", expect=0)


@pytest.mark.parametrize("role", ["schedd", "collector", "negotiator", "accounting"])
async def test_owners_of_shards_contend_by_lease(connect: Connect, role: str) -> None:
    """A lease is got, renewed and released; those of other shards are closed to it."""
    bus, own = await connect(role), SHARDS[role][0]
    await bus.ensure_bucket(BucketSpec(name=SUBJECTS.leases, memory=False))
    async with asyncio.timeout(PATIENCE_S):
        lease = await KeyLeases(bus, SUBJECTS.leases).acquire(token(own), "me", ttl=5.0)
        await lease.release()
    for (other,) in (shards for name, shards in SHARDS.items() if name != role):
        with pytest.raises(RefusedError):
            await bus.update(SUBJECTS.leases, token(other), b"me", expect=0)


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
