import asyncio
import os
import signal
from contextlib import AsyncExitStack

import msgspec
import pytest

from kettle.bus.nats import NatsBus
from kettle.bus.ports import RefusedError
from kettle.client.connections import retry
from kettle.client.connections.retry import ask_with_retry as ask_again
from kettle.runtime import SettingsError
from kettle.testing.patience import PATIENCE_S
from kettle.testing.services import Backend, eventually, hosted
from kettle_services.collector.settings import CollectorSettings
from kettle_services.collector.wiring import serve
from kettle_wire.ads.daemon import SubmitterAd
from kettle_wire.ads.types import Ad
from kettle_wire.commands.collector import QUERY_ADS, Ads, QueryAds
from kettle_wire.events import MachineJoined, MachineLeft, decode
from kettle_wire.events.machine import AdHeard, AdKept
from kettle_wire.identity import user
from kettle_wire.subjects import ad_key, forwarded_key, machine_key

encode = msgspec.msgpack.encode


def settings(backend: Backend, lifetime: float = 900.0, **more: object) -> CollectorSettings:
    return backend.settings(CollectorSettings, classad_lifetime=lifetime, housekeeping=0.05, **more)


async def put_slot(backend: Backend, bus: NatsBus, name: str, machine: str, memory: int = 1024) -> None:
    ad: Ad = {
        "Name": name,
        "Machine": machine,
        "MyType": "Machine",
        "Memory": memory,
        "TotalCpus": 4,
        "ClaimId": "s",
    }
    await bus.put(backend.subjects.ads, machine_key(name.partition("@")[2], name), encode(ad))


async def ask(bus: NatsBus, kind: str = "", constraint: str = "", **more: object) -> Ads:
    return await bus.call(
        QUERY_ADS, "collector", msgspec.convert({"type": kind, "constraint": constraint} | more, QueryAds)
    )


async def names(bus: NatsBus, kind: str = "Machine", constraint: str = "") -> list[object]:
    return [ad["Name"] for ad in (await ask(bus, kind, constraint)).ads]


async def recorded(backend: Backend) -> list[object]:
    return [decode(e.data) async for frame in backend.log.read("collector") for e in frame.entries]


async def test_ads_are_found(backend: Backend) -> None:
    """Ads that were there before the collector and ads that come later are answered, cut down as asked."""
    async with hosted("collector", settings(backend), serve), backend.bus(user("test")) as bus:
        await put_slot(backend, bus, "slot1@a", "a", 2048)
        demand = SubmitterAd(name="alice", schedd="ap", idle=3, running=0, held=0, requests=[])
        await bus.put(backend.subjects.ads, ad_key("Submitter", "alice"), encode(demand))
        await eventually(lambda: _found(bus, "Submitter", 1))
    async with hosted("collector", settings(backend), serve), backend.bus(user("test")) as bus:
        await put_slot(backend, bus, "slot1@b", "b")
        await eventually(lambda: _found(bus, "Machine", 2))
        assert ["slot1@a"] == await names(bus, constraint="Memory > 1024")
        answer = await ask(bus, "Machine", "", projection=["memory"], limit=1)
        assert [{"Memory": 2048, "MyType": "Machine"}] == answer.ads
        assert ["Collector"] == [ad["MyType"] for ad in (await ask(bus, "Collector")).ads]


async def test_several_collectors_answer(backend: Backend) -> None:
    """
    The one that stands by knows all ads and answers, too: each tells how many updates it has seen itself, so both are heard.
    """

    async def update(bus: NatsBus, number: int) -> None:
        ad: Ad = {
            "Name": "slot1@a",
            "MyType": "Machine",
            "DaemonStartTime": 100,
            "UpdateSequenceNumber": number,
        }
        await bus.put(backend.subjects.ads, machine_key("a", "slot1@a"), encode(ad))

    async def told(bus: NatsBus) -> object:
        # As clients do: a question that is on its way to one that goes away is asked again.
        (ad,) = (
            await retry.ask_with_retry(bus, QUERY_ADS, "collector", QueryAds(type="Machine"), deadline=1.0)
        ).ads
        return ad["UpdatesTotal"]

    async def all_tell(bus: NatsBus, counts: set[object]) -> None:
        found = set[object]()
        async with asyncio.timeout(PATIENCE_S):
            while found != counts:
                found.add(await told(bus))
                assert found <= counts

    async with hosted("collector", settings(backend), serve), backend.bus(user("test")) as bus:
        await update(bus, 1)
        await eventually(lambda: _found(bus, "Machine", 1))
        await update(bus, 2)
        async with asyncio.timeout(PATIENCE_S):
            while await told(bus) != 2:
                await asyncio.sleep(0.01)
        async with hosted("collector", settings(backend), serve):
            await all_tell(bus, {2, 1})
        assert {2} == {await told(bus) for _ in range(20)}


async def test_updates_that_never_came_are_counted(backend: Backend) -> None:
    """
    A gap in an ad's numbers is lost updates, and it stays known when the ad went in between; a new start is none.
    """

    async def update(bus: NatsBus, number: int, *, started: int = 100) -> None:
        ad: Ad = {
            "Name": "slot1@a", "Machine": "a", "DaemonStartTime": started, "UpdateSequenceNumber": number,
        }  # fmt: skip
        await bus.put(backend.subjects.ads, machine_key("a", "slot1@a"), encode(ad))

    async def counted(bus: NatsBus, *expected: int) -> bool:
        ads = (await ask(bus, "Machine", "UpdatesTotal > 0")).ads
        return [list(expected)] == [
            [ad[f"Updates{name}"] for name in ("Total", "Sequenced", "Lost")] for ad in ads
        ]

    async with hosted("collector", settings(backend), serve), backend.bus(user("test")) as bus:
        await update(bus, 5)
        await eventually(lambda: counted(bus, 1, 0, 0))
        await update(bus, 8)
        await eventually(lambda: counted(bus, 2, 3, 2))
        await bus.delete(backend.subjects.ads, machine_key("a", "slot1@a"))
        await eventually(lambda: _found(bus, "Machine", 0))
        await update(bus, 10)
        await eventually(lambda: counted(bus, 3, 5, 3))
        await update(bus, 1, started=200)
        await eventually(lambda: counted(bus, 4, 5, 3))


async def _found(bus: NatsBus, kind: str, count: int) -> bool:
    return len((await ask(bus, kind)).ads) == count


async def test_a_bad_constraint(backend: Backend) -> None:
    """What is no expression is refused with a sentence."""
    async with hosted("collector", settings(backend), serve), backend.bus(user("test")) as bus:
        with pytest.raises(RefusedError, match="the constraint is not an expression") as refused:
            await ask(bus, "Machine", "Memory >")
        assert "bad_constraint" == refused.value.code


async def test_machines_come_and_go(backend: Backend) -> None:
    """
    A machine joins with its first ad, leaves with its last one, and a restarted collector says nothing again.
    """
    async with hosted("collector", settings(backend), serve), backend.bus(user("test")) as bus:
        await put_slot(backend, bus, "slot1@a", "a")
        await put_slot(backend, bus, "slot2@a", "a")
        await eventually(lambda: _found(bus, "Machine", 2))
        await eventually(lambda: _count(backend, 1))
    joined = MachineJoined(machine="a", cpus=4, memory=1024)
    async with hosted("collector", settings(backend), serve), backend.bus(user("test")) as bus:
        await eventually(lambda: _found(bus, "Machine", 2))
        assert [joined] == await recorded(backend)
        for name in ("slot1@a", "slot2@a"):
            await bus.delete(backend.subjects.ads, machine_key(name.partition("@")[2], name))
        await eventually(lambda: _count(backend, 2))
        await put_slot(backend, bus, "slot1@a", "a")
        await eventually(lambda: _count(backend, 3))
    assert [joined, MachineLeft(machine="a", reason="drained"), joined] == await recorded(backend)
    rows = await backend.log.stream("collector", "machine/a")
    assert [1, 2, 3] == [frame.entries[0].version for frame, _ in rows]


async def _count(backend: Backend, count: int) -> bool:
    return len(await recorded(backend)) >= count


async def test_a_collector_that_stands_by_answers_and_writes_when_it_is_its_turn(backend: Backend) -> None:
    """What it saw while it stood by neither joins again nor is lost."""
    async with backend.bus(user("test")) as bus, AsyncExitStack() as first:
        await first.enter_async_context(hosted("collector", settings(backend), serve))
        await put_slot(backend, bus, "slot1@a", "a")
        await eventually(lambda: _count(backend, 1))
        async with hosted("collector", settings(backend), serve):
            await first.aclose()
            # As clients do: what a collector that ends leaves unanswered is asked again.
            found = await ask_again(bus, QUERY_ADS, "collector", QueryAds(type="Machine"))
            assert ["slot1@a"] == [ad["Name"] for ad in found.ads]
            await put_slot(backend, bus, "slot1@b", "b")
            await eventually(lambda: _count(backend, 2))
            await bus.delete(backend.subjects.ads, machine_key("a", "slot1@a"))
            await eventually(lambda: _count(backend, 3))
    assert [
        MachineJoined(machine="a", cpus=4, memory=1024),
        MachineJoined(machine="b", cpus=4, memory=1024),
        MachineLeft(machine="a", reason="drained"),
    ] == await recorded(backend)


async def test_many_ads_come_in_pages(backend: Backend) -> None:
    """A page says from where to go on; all of them together are all ads."""
    wide: Ad = {f"Attribute{number}": "x" * 100 for number in range(1_000)}
    async with hosted("collector", settings(backend), serve), backend.bus(user("test")) as bus:
        for number in range(20):
            key = ad_key("Generic", f"g{number:02}")
            await bus.put(backend.subjects.ads, key, encode({**wide, "Name": f"g{number:02}"}))
        await eventually(lambda: _complete(bus))
        first = await ask(bus, "Generic")
        second = await ask(bus, "Generic", after=first.rest)
    found = [[ad["Name"] for ad in part.ads] for part in (first, second)]
    assert [[f"g{number:02}" for number in range(10)], [f"g{number:02}" for number in range(10, 20)]] == found
    assert second.rest is None


async def test_a_long_answer_keeps_no_other_waiting(backend: Backend) -> None:
    """Who asks after somebody who gets many pages is answered before these are through."""
    wide: Ad = {f"Attribute{number}": "x" * 100 for number in range(1_000)}
    answered: list[str] = []

    async def all_of(bus: NatsBus) -> None:
        rest, pages = None, 0
        while pages == 0 or rest is not None:
            part = await ask(bus, "Generic", after=rest)
            rest, pages = part.rest, pages + 1
        answered.append(f"{pages} pages")

    async def one_of(bus: NatsBus) -> None:
        assert ["g07"] == [ad["Name"] for ad in (await ask(bus, constraint='Name == "g07"')).ads]
        answered.append("one")

    async with hosted("collector", settings(backend), serve), backend.bus(user("test")) as bus:
        for number in range(20):
            key = ad_key("Generic", f"g{number:02}")
            await bus.put(backend.subjects.ads, key, encode({**wide, "Name": f"g{number:02}"}))
        await eventually(lambda: _complete(bus))
        async with asyncio.TaskGroup() as both:
            both.create_task(all_of(bus))
            both.create_task(one_of(bus))
    assert ["one", "2 pages"] == answered


async def _complete(bus: NatsBus) -> bool:
    return 20 == len((await ask(bus, "Generic", projection=["Name"])).ads)


async def test_an_ad_that_is_not_updated(backend: Backend) -> None:
    """It is not answered any more after its lifetime, and its machine has left."""
    async with hosted("collector", settings(backend, lifetime=2.0), serve), backend.bus(user("test")) as bus:
        await put_slot(backend, bus, "slot1@a", "a")
        await eventually(lambda: _count(backend, 2))
        assert [] == await names(bus)
    assert MachineLeft(machine="a", reason="expired") == (await recorded(backend))[1]


async def test_an_absent_machine_is_seen_until_it_is_back(backend: Backend) -> None:
    """
    Of a machine that fell silent the slots that are expected back stay, also when another collector comes.
    """
    absent = settings(backend, lifetime=2.0, absent_requirements="Memory > 1024")

    async def seen(bus: NatsBus, *expected: tuple[str, bool]) -> bool:
        return list(expected) == [(ad["Name"], "Absent" in ad) for ad in (await ask(bus, "Machine")).ads]

    async with hosted("collector", absent, serve), backend.bus(user("test")) as bus:
        await put_slot(backend, bus, "slot1@a", "a", 2048)
        await put_slot(backend, bus, "slot2@a", "a", 1024)
        await eventually(lambda: seen(bus, ("slot1@a", True)))
    (left,) = [event for event in await recorded(backend) if isinstance(event, MachineLeft)]
    assert ["slot1@a"] == [slot["Name"] for slot in left.slots]
    async with hosted("collector", absent, serve), backend.bus(user("test")) as bus:
        await bus.delete(backend.subjects.ads, ad_key("Absent", "slot1@a"))
        await eventually(lambda: seen(bus, ("slot1@a", True)))

        async def back() -> bool:
            await put_slot(backend, bus, "slot1@a", "a", 2048)  # again and again, as a machine that lives
            return await seen(bus, ("slot1@a", False))

        await eventually(back)


async def test_a_registered_entrypoint_that_is_silent_is_listed_until_it_is_back(backend: Backend) -> None:
    """
    As absent, with when it was heard last, also by the next collector, and after the bus has lost it; an ad of another type is not kept,
    and what nobody has heard of for too long is forgotten.
    """
    registry = settings(backend, registered_types=["Scheduler"], ad_interval=0.2)
    key = forwarded_key("view@ce.site.example", "Scheduler.ce")

    async def seen(*expected: tuple[str, bool]) -> bool:
        found = (await ask(bus, forwarded=True, constraint="ForwardedFrom isnt undefined")).ads
        return sorted(expected) == sorted((str(ad["Name"]), "Absent" in ad) for ad in found)

    async with backend.bus(user("test")) as bus:
        async with hosted("collector", registry, serve):
            await bus.put(backend.subjects.ads, key, encode({"Name": "ce.site.example"}))
            other = forwarded_key("view@ce.site.example", "Machine.x")
            await bus.put(backend.subjects.ads, other, encode({"Name": "x"}))
            await eventually(lambda: seen(("ce.site.example", False), ("x", False)))
            for each in (key, other):
                await bus.delete(backend.subjects.ads, each)
            await eventually(lambda: seen(("ce.site.example", True)))
        async with hosted("collector", registry, serve):
            await bus.delete(backend.subjects.ads, f"Silent.{key}")
            await eventually(lambda: seen(("ce.site.example", True)))
            await bus.put(backend.subjects.ads, key, encode({"Name": "ce.site.example"}))
            await eventually(lambda: seen(("ce.site.example", False)))
            await bus.delete(backend.subjects.ads, key)
            await eventually(lambda: seen(("ce.site.example", True)))
        kinds = [type(event) for event in await recorded(backend)]
        assert [AdKept, AdHeard, AdKept] == kinds
        impatient = settings(backend, registered_types=["Scheduler"], registered_expire=0.5, ad_interval=0.1)
        async with hosted("collector", impatient, serve):
            await eventually(seen)


async def test_requirements_that_are_no_expression(backend: Backend) -> None:
    """They refuse the start with what is wrong."""
    with pytest.raises(ExceptionGroup) as refused:
        async with hosted("collector", settings(backend, absent_requirements="Memory >"), serve):
            pytest.fail("it started")
    assert refused.group_contains(
        SettingsError, match="KETTLE_COLLECTOR_ABSENT_REQUIREMENTS: 'Memory >' is no"
    )


@pytest.mark.breaks_servers
@pytest.mark.parametrize("server", ["nats", "postgres"])
async def test_servers_that_restart(backend: Backend, server: str) -> None:
    """The collector goes on answering and recording after either server was killed and came back."""
    async with hosted("collector", settings(backend), serve), backend.bus(user("test")) as bus:
        await put_slot(backend, bus, "slot1@a", "a")
        await eventually(lambda: _count(backend, 1))
        victim = backend.servers.nats if server == "nats" else backend.servers.postgres
        os.kill(victim.pid, signal.SIGKILL)
        await victim.wait()
        await victim.start()
        number = 0
        async with asyncio.timeout(PATIENCE_S):
            while len(await recorded(backend)) < 2:
                await put_slot(backend, bus, "slot1@b", "b", memory=1024 + number)
                await asyncio.sleep(0.05)
                number += 1
        await eventually(lambda: _found(bus, "Machine", 2))
    assert ["a", "b"] == [
        event.machine for event in await recorded(backend) if isinstance(event, MachineJoined)
    ]
