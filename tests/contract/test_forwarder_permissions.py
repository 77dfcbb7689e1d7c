"""
What a collector of another pool may do on the bus, on a real server: put ads under its own name, and nothing else.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, aclosing
from typing import Any

import msgspec
import pytest
import pytest_asyncio

from kettle.bus.nats import NatsBus
from kettle.bus.ports import BucketSpec, RefusedError, Served, StreamSpec, WrongSequenceError
from kettle.embedded import EmbeddedNats
from kettle.testing.patience import PATIENCE_S
from kettle.testing.servers.embedded import server_directory
from kettle.testing.servers.members import Members
from kettle_wire.commands import collector, schedd, startd
from kettle_wire.endpoint import Endpoint
from kettle_wire.identity import Identity, daemon, visitor, worker
from kettle_wire.subjects import Subjects, ad_key, forwarded_key, machine_key, submitters_key

SUBJECTS = Subjects("pool")
US, OTHERS = "view@home.example", "view@other.example"
WHO: dict[str, tuple[str, Identity]] = {
    "collector": ("collector", daemon("collector")),
    "startd": ("startd", worker("host")),
    "forwarder": ("forwarder", visitor(US)),
    "visitor": ("visitor", visitor("ap@home.example")),
}
OWN = forwarded_key(US, machine_key("host", "slot1@host"))
Connect = Callable[[str], Awaitable[NatsBus]]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def guarded() -> AsyncIterator[EmbeddedNats]:
    with server_directory() as directory:
        async with EmbeddedNats(
            directory / "nats", trust=Members(directory / "keys", SUBJECTS, WHO)
        ) as server:
            yield server


@pytest_asyncio.fixture
async def connect(guarded: EmbeddedNats) -> AsyncIterator[Connect]:
    """Connects as one of `WHO`; the bucket of ads is there."""
    async with AsyncExitStack() as stack:

        async def one(name: str) -> NatsBus:
            return await stack.enter_async_context(
                NatsBus.connect(
                    guarded.url,
                    subjects=SUBJECTS,
                    identity=WHO[name][1],
                    credentials=str(guarded.credentials(name)),
                    patience=PATIENCE_S,
                    deadline=PATIENCE_S,
                )
            )

        await (await one("collector")).ensure_bucket(BucketSpec(name=SUBJECTS.ads, ttl=60.0))
        yield one


async def test_it_puts_ads_under_its_own_name_and_takes_them_away(connect: Connect) -> None:
    """The pool's collectors see both; those who follow its machines see nothing."""
    bus, watcher = await connect("forwarder"), await connect("collector")
    async with aclosing(watcher.watch(SUBJECTS.ads)) as changes, asyncio.timeout(PATIENCE_S):
        while await anext(changes) is not None:
            pass
        await bus.put(SUBJECTS.ads, OWN, b"ad")
        change = await anext(changes)
        assert change is not None
        assert (OWN, b"ad") == (change.key, change.value)
        await bus.delete(SUBJECTS.ads, OWN)
        change = await anext(changes)
        assert change is not None
        assert (OWN, None) == (change.key, change.value)
    async with aclosing(watcher.watch(SUBJECTS.ads, "Machine.>")) as changes, asyncio.timeout(PATIENCE_S):
        await bus.put(SUBJECTS.ads, OWN, b"ad")
        assert await anext(changes) is None, "there are no machines"


async def test_it_finds_out_whether_it_may_without_writing(connect: Connect) -> None:
    """
    A write that no bucket can take is answered as one, not as one that is forbidden; with a pass of another kind it is.
    """
    with pytest.raises(WrongSequenceError):
        await (await connect("forwarder")).update(SUBJECTS.ads, OWN, b"", expect=1 << 62)
    with pytest.raises(RefusedError):
        await (await connect("visitor")).update(
            SUBJECTS.ads, forwarded_key("ap@home.example", "Collector.x"), b"", expect=1 << 62
        )


@pytest.mark.parametrize(
    "place",
    [
        machine_key("host", "slot1@host"),
        ad_key("Scheduler", US),
        ad_key("Collector", "collector"),
        submitters_key(US, "a@home.example"),
        forwarded_key(OTHERS, machine_key("host", "slot1@host")),
    ],
)
async def test_it_puts_no_other_ads(connect: Connect, place: str) -> None:
    """Neither those of the pool, nor what another forwarder, or a schedd that visits, may put."""
    with pytest.raises(RefusedError):
        await (await connect("forwarder")).update(SUBJECTS.ads, place, b"forged", expect=0)


async def test_it_reads_nothing_and_makes_nothing(connect: Connect) -> None:
    """No ads, not even its own; no stream, no bucket."""
    bus = await connect("forwarder")
    for bucket in (SUBJECTS.ads, SUBJECTS.private_ads):
        with pytest.raises(RefusedError):
            await asyncio.wait_for(anext(bus.watch(bucket)), PATIENCE_S)
    with pytest.raises(RefusedError):
        await asyncio.wait_for(anext(bus.watch(SUBJECTS.ads, f"{OWN}.>")), PATIENCE_S)
    with pytest.raises(RefusedError):
        await bus.ensure_stream(StreamSpec(name="OTHER", subjects=["other.>"]))


ASKED: list[tuple[Endpoint[Any, Any], msgspec.Struct]] = [
    (collector.QUERY_ADS, collector.QueryAds()),
    (startd.RELEASE, startd.Release(claims=[], reason="")),
    (startd.DRAIN, startd.Drain(id="1")),
    (schedd.SUBMIT, schedd.Submit(id="1", ad={}, columns=[], rows=[[]])),
]


@pytest.mark.parametrize("case", ASKED, ids=lambda case: f"{case[0].role}.{case[0].verb}")
async def test_it_asks_nobody_anything(connect: Connect, case: tuple[Endpoint[Any, Any], Any]) -> None:
    """The server stops it."""
    with pytest.raises(RefusedError) as answer:
        await (await connect("forwarder")).call(case[0], "x", case[1], deadline=PATIENCE_S)
    assert "not_permitted" == answer.value.code


async def test_it_answers_nobody_and_overhears_nothing(connect: Connect) -> None:
    """Neither commands nor notices nor the inboxes of others."""
    bus = await connect("forwarder")
    heard: list[str] = []
    for subject in ("kettle.pool.>", "_INBOX.d-collector.>", SUBJECTS.events_all, SUBJECTS.notices("startd")):
        await bus.listen(subject, lambda subject, _data: heard.append(subject))
    answerer = await connect("startd")

    async def refuse(_request: msgspec.Struct, _caller: Identity) -> msgspec.Struct:
        raise RefusedError("heard", "a refusal is an answer")

    await answerer.serve("startd", "host", [Served(startd.RELEASE, refuse)], version="1.0.0")
    await answerer.publish(SUBJECTS.notice("startd", "x"), b"")
    with pytest.raises(RefusedError):
        await (await connect("visitor")).call(
            startd.RELEASE, "host", startd.Release(claims=[], reason=""), deadline=PATIENCE_S
        )
    assert [] == heard
