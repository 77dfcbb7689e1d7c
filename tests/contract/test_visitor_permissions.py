"""
What a schedd of another pool may do on the bus, on a real server: send jobs under its own name, and nothing else.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, aclosing
from typing import Any

import msgspec
import pytest
import pytest_asyncio

from kettle.bus.nats import NatsBus
from kettle.bus.ports import BucketSpec, RefusedError, ReplyTimeoutError, Served, StreamSpec
from kettle.embedded import EmbeddedNats
from kettle.testing.patience import PATIENCE_S
from kettle.testing.servers.embedded import server_directory
from kettle.testing.servers.members import Members
from kettle_services.collector.readers import Readers
from kettle_wire.commands import accounting, attempt_reports, collector, negotiator, schedd, shadow, startd
from kettle_wire.endpoint import Endpoint
from kettle_wire.identity import Identity, daemon, visitor, worker
from kettle_wire.jobs import JobId
from kettle_wire.subjects import Subjects, ad_key, machine_key, submitters_key

SUBJECTS = Subjects("pool")
US, OTHERS = "ap@home.example", "ap@other.example"
ROLES = ("schedd", "shadow", "collector", "negotiator")
WHO: dict[str, tuple[str, Identity]] = {role: (role, daemon(role)) for role in ROLES} | {
    "startd": ("startd", worker("host")),
    "visitor": ("visitor", visitor(US)),
    "another": ("visitor", visitor(OTHERS)),
}
WORK = StreamSpec(name=SUBJECTS.work_stream, subjects=[SUBJECTS.work_all])
KEY = startd.ClaimKey("c", "s")
FETCH = shadow.FetchInput(key=KEY, job=JobId(1, 0), attempt=1, name="f", offset=0, length=1)
Connect = Callable[..., Awaitable[NatsBus]]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def guarded() -> AsyncIterator[EmbeddedNats]:
    with server_directory() as directory:
        members = Members(directory / "keys", SUBJECTS, WHO)
        async with EmbeddedNats(directory / "nats", trust=members) as server:
            yield server


def _as(
    server: EmbeddedNats, name: str, claiming: Identity | None = None
) -> AbstractAsyncContextManager[NatsBus]:
    return NatsBus.connect(
        server.url,
        subjects=SUBJECTS,
        identity=claiming or WHO[name][1],
        credentials=str(server.credentials(name)),
        patience=PATIENCE_S,
        deadline=PATIENCE_S,
    )


@pytest_asyncio.fixture
async def connect(guarded: EmbeddedNats) -> AsyncIterator[Connect]:
    """Connects with the credential of one of `WHO`, claiming to be it or somebody else."""
    async with AsyncExitStack() as stack:

        async def one(name: str, *, claiming: Identity | None = None) -> NatsBus:
            return await stack.enter_async_context(_as(guarded, name, claiming))

        collector = await one("collector")
        readers = Readers(collector, SUBJECTS, time.monotonic)
        await collector.answer(SUBJECTS.readers(">"), readers.answer)
        yield one


MAY_ASK: list[tuple[Endpoint[Any, Any], msgspec.Struct]] = [
    (
        startd.REQUEST_CLAIMS,
        startd.RequestClaims(
            schedd=US, slot="s", capability="", submitter="a@home.example", job={}, claims=[], lease=1.0
        ),
    ),
    (startd.ALIVE, startd.Alive(schedd=US, claims=[], deadline=None)),
    (startd.RELEASE, startd.Release(claims=[], reason="")),
    (startd.ACTIVATE, startd.Activate(activations=[])),
    (startd.DEACTIVATE, startd.Deactivate(attempts=[])),
    (startd.SUSPEND, startd.Suspend(orders=[])),
    (startd.CONFIRM, startd.Confirm(recorded=[])),
    (
        startd.FETCH_OUTPUT,
        startd.FetchOutput(key=KEY, job=JobId(1, 0), attempt=1, name="f", offset=0, length=1),
    ),
]
MAY_NOT_ASK: list[tuple[Endpoint[Any, Any], msgspec.Struct]] = [
    (startd.DRAIN, startd.Drain(id="1")),
    (schedd.SUBMIT, schedd.Submit(id="1", ad={}, columns=[], rows=[[]])),
    (schedd.QUERY_JOBS, schedd.QueryJobs(select=schedd.Select())),
    (schedd.MATCHED, schedd.Matched(cycle=1, matches=[])),
    (attempt_reports.SYNC, attempt_reports.ShadowSync(shadow="s", attempts=[])),
    (attempt_reports.REPORT, attempt_reports.ReportAttempts(shadow="s", reports=[])),
    (shadow.LOOK_AFTER, shadow.LookAfter()),
    (shadow.FETCH_INPUT, FETCH),
    (collector.QUERY_ADS, collector.QueryAds()),
    (negotiator.WHY, negotiator.Why(submitter="a", schedd="s", autocluster=1)),
    (negotiator.QUERY_PRIORITIES, negotiator.QueryPriorities()),
    (negotiator.RESET_USAGE, negotiator.ResetUsage(id="1", name=None)),
    (accounting.QUERY_HISTORY, accounting.QueryHistory()),
]


def named(case: tuple[Endpoint[Any, Any], msgspec.Struct]) -> str:
    return f"{case[0].role}.{case[0].verb}"


async def answering(bus: NatsBus, endpoint: Endpoint[Any, Any], name: str) -> list[Identity]:
    """Make every service that gets a command refuse it; returns the identities of those that did."""
    heard: list[Identity] = []

    async def refuse(_request: msgspec.Struct, caller: Identity) -> msgspec.Struct:
        heard.append(caller)
        raise RefusedError("heard", "a refusal is an answer")

    await bus.serve(endpoint.role, name, [Served(endpoint, refuse)], version="1.0.0")
    return heard


@pytest.mark.parametrize("case", MAY_ASK, ids=named)
async def test_it_speaks_with_startds_about_claims(
    connect: Connect, case: tuple[Endpoint[Any, Any], Any]
) -> None:
    """Under the name by which it was admitted."""
    heard = await answering(await connect("startd"), case[0], "host")
    with pytest.raises(RefusedError) as answer:
        await (await connect("visitor")).call(case[0], "host", case[1], deadline=PATIENCE_S)
    assert "heard" == answer.value.code
    assert [visitor(US)] == heard


@pytest.mark.parametrize("case", MAY_NOT_ASK, ids=named)
async def test_it_asks_nobody_anything_else(connect: Connect, case: tuple[Endpoint[Any, Any], Any]) -> None:
    """The server stops it."""
    with pytest.raises(RefusedError) as answer:
        await (await connect("visitor")).call(case[0], "x", case[1], deadline=PATIENCE_S)
    assert "not_permitted" == answer.value.code


@pytest.mark.parametrize("victim", [daemon("schedd"), daemon("shadow"), visitor(OTHERS)], ids=str)
async def test_it_asks_under_no_other_name(connect: Connect, victim: Identity) -> None:
    """Neither as a daemon of the pool nor as another visitor."""
    await answering(await connect("startd"), startd.RELEASE, "impostors")
    bus = await connect("visitor", claiming=victim)
    with pytest.raises((RefusedError, ReplyTimeoutError)) as answer:
        await bus.call(startd.RELEASE, "impostors", startd.Release(claims=[], reason=""), deadline=0.5)
    assert not isinstance(answer.value, RefusedError) or "not_permitted" == answer.value.code


@pytest.mark.parametrize(
    ("endpoint", "asker", "request_"),
    [
        (schedd.MATCHED, "negotiator", schedd.Matched(cycle=1, matches=[])),
        (shadow.FETCH_INPUT, "startd", FETCH),
    ],
    ids=["matched", "fetch_input"],
)
async def test_it_answers_for_itself_alone(
    connect: Connect, endpoint: Endpoint[Any, Any], asker: str, request_: Any
) -> None:
    """
    Negotiator and startds reach it by its name; what they say to the pool's own, or to another visitor, it does not hear.
    """
    bus = await connect("visitor")
    heard = await answering(bus, endpoint, US)
    for name in (endpoint.role, OTHERS):
        overheard = await answering(bus, endpoint, name)
        with pytest.raises(Exception):  # noqa: B017 - nobody answers, however that is noticed
            await (await connect(asker)).call(endpoint, name, request_, deadline=0.5)
        assert [] == overheard
    with pytest.raises(RefusedError) as answer:
        await (await connect(asker)).call(endpoint, US, request_, deadline=PATIENCE_S)
    assert ("heard", [WHO[asker][1]]) == (answer.value.code, heard)


async def test_it_advertises_its_own_submitters_and_nothing_else(connect: Connect) -> None:
    """
    Its key is its own; those of the pool's submitters, of other visitors, and all other ads are closed to it, and it reads
    none at all.
    """
    bus, maker = await connect("visitor"), await connect("collector")
    await maker.ensure_bucket(BucketSpec(name=SUBJECTS.ads, ttl=60.0))
    key = submitters_key(US, "a@home.example")
    async with aclosing(maker.watch(SUBJECTS.ads, "Submitter.>")) as changes, asyncio.timeout(PATIENCE_S):
        while await anext(changes) is not None:
            pass
        await bus.put(SUBJECTS.ads, key, b"ad")
        change = await anext(changes)
    assert change is not None
    assert (key, b"ad") == (change.key, change.value)
    for other in (
        ad_key("Submitter", "alice"),
        submitters_key(OTHERS, "a@other.example"),
        machine_key("host", "slot1@host"),
        ad_key("Scheduler", US),
    ):
        with pytest.raises(RefusedError):
            await bus.update(SUBJECTS.ads, other, b"forged", expect=0)
    for bucket in (SUBJECTS.ads, SUBJECTS.private_ads):
        with pytest.raises(RefusedError):
            await asyncio.wait_for(anext(bus.watch(bucket)), PATIENCE_S)


async def test_it_reads_what_startds_report_to_it(connect: Connect) -> None:
    """And not what they report to others, of whom it can also take nothing away."""
    bus, other, worker = await connect("visitor"), await connect("another"), await connect("startd")
    await (await connect("shadow")).ensure_stream(WORK)
    for to in (US, OTHERS, "schedd"):
        await worker.append(SUBJECTS.work(to, "host"), to.encode())
    for reader, own in ((bus, US), (other, OTHERS)):
        reading = reader.consume(WORK.name, SUBJECTS.work_reader(own), subject=SUBJECTS.work_of(own))
        async with aclosing(reading) as batches, asyncio.timeout(PATIENCE_S):
            batch = await anext(batches)
            assert {own.encode()} == {message.data for message in batch.messages}
            await batch.ack()
    for durable, subject in (
        (SUBJECTS.work_reader(OTHERS), SUBJECTS.work_of(OTHERS)),
        (SUBJECTS.work_reader(US), SUBJECTS.work_of(OTHERS)),
        (SUBJECTS.work_reader(US), SUBJECTS.work_all),
        (SUBJECTS.work_reader("schedd"), SUBJECTS.work_of("schedd")),
    ):
        with pytest.raises(RefusedError):
            await asyncio.wait_for(anext(bus.consume(WORK.name, durable, subject=subject)), PATIENCE_S)
    with pytest.raises(RefusedError):
        await bus.append(SUBJECTS.work(US, "host"), b"forged", deadline=PATIENCE_S)


async def test_it_hears_nothing_of_the_pool(connect: Connect) -> None:
    """Neither commands nor events nor notices nor other inboxes."""
    bus = await connect("visitor")
    heard: list[str] = []
    for subject in (
        "kettle.pool.>",
        "_INBOX.d-schedd.>",
        SUBJECTS.events_all,
        SUBJECTS.notices("schedd"),
        SUBJECTS.commands_to("schedd"),
    ):
        await bus.listen(subject, lambda subject, _data: heard.append(subject))
    await (await connect("schedd")).publish(SUBJECTS.notice("schedd", "x"), b"")
    await answering(await connect("startd"), startd.RELEASE, "host")
    with pytest.raises(RefusedError):
        await (await connect("schedd")).call(
            startd.RELEASE, "host", startd.Release(claims=[], reason=""), deadline=PATIENCE_S
        )
    assert [] == heard
